// The producer of the wgmma family: one warp walks over the block's work tiles and over the
// tiles of each, and keeps the rings of attend/wgmma/layout/wgmma_shape.cuh full.
#pragma once

#include "attend/wgmma/gates/gate_votes.cuh"
#include "attend/wgmma/producers/step_loads.cuh"
#include "pipeline/work_tile_schedule.cuh"

namespace lacuna {

/// Does the look-up of a row take longer than a step? That is so where a mask has to be asked,
/// because it is more than ranges of keys, and where a parameter of each token gives the range. For
/// masks of several ranges the producer has too few registers to look up early.
template <class Config, class Hooks>
__host__ __device__ constexpr bool looks_up_early() {
  if constexpr (!Config::kHasMask || !WgmmaShape<Config>::kWalksMask) {
    return false;
  } else if constexpr (!kHasCheapMask<Config, Hooks>) {
    return true;
  } else {
    return Hooks::MaskRow::kRanges == 1 && Hooks::MaskRow::kReadsTokens;
  }
}

/// `Loads`: StepLoads, or CodeLoads where keys and values are codes.
template <class Config, class Hooks, class Args, class Loads = StepLoads<Config, Args>>
class WgmmaProducer {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Row = typename Shape::Row;
  using Walk = typename Config::Walk;
  /// A warp that brings keys brings values, too, a step later.
  static constexpr bool kBringsBoth =
      Loads::kBringsKeys && Loads::kBringsValues && !Shape::kLooksAhead;
  /// Is the next item asked for when it is wanted, because a walk over kept tiles leaves no
  /// register for one that is asked for ahead? Items of few queries are long.
  static constexpr bool kAsksLate = hides_rows<Config>();

 public:
  static constexpr int kWarps = 1;  ///< that run, if no other producer makes several of this

  /// `number`: this warp, of several that bring the same operands.
  __device__ __forceinline__ WgmmaProducer(const Args& args, const Smem& smem, int number = 0)
      : loads_(args, smem, number) {}

  /// By a whole warp, or by several that walk over the same rows and steps.
  __device__ __forceinline__ void run() {
    if constexpr (Shape::kProducerWarps > 1) {
      produce_together();
    } else if constexpr (has_sequence_tiles<Config>()) {
      produce_items();
    } else if constexpr (looks_up_early<Config, Hooks>()) {
      produce_rows_looked_up_early();
    } else if (block_index() < work_indices()) {
      produce_rows();
    }
    if constexpr (kBringsBoth) loads_.load_values();
    if (loads_.leads()) loads_.announce_end();
  }

  /// Of this warp, for a producer that adds some of its own.
  __device__ __forceinline__ Loads& loads() { return loads_; }

 private:
  /// Loads all rows of the block, step by step. The next row is looked up before the last step of a
  /// row waits for its slots. Done later, the look-up would delay the last values of the row, which
  /// consumers wait for.
  __device__ __forceinline__ void produce_rows() {
    RowCounter counter(loads_.args.schedule.next_row);
    counter.ask();
    int work_index = block_index();
    Row row = find_row(work_index);
    Walk walk = begin_walk(row, work_index);
    Message step = take_step(row, walk);
    while (work_index < work_indices()) {
      begin_row(row, work_index);
      bool is_first = true;
      // A loop of its own, in which the row does not change: it stays in uniform registers.
      Message next = take_step(row, walk);
      for (; next.tiles[0].exists(); next = take_step(row, walk)) {
        load_step_of_row(step, is_first, false);
        is_first = false;
        step = next;
      }
      work_index = next_index(counter);
      if (work_index < work_indices()) {
        row = find_row(work_index);
        walk = begin_walk(row, work_index);
        next = take_step(row, walk);
      }
      load_step_of_row(step, is_first, true);
      step = next;
    }
  }

  /// The steps of a row that are still to be loaded: `step`, then `next`, if that has a tile, then
  /// those that `walk` finds.
  struct StepsToLoad {
    Walk walk;
    Message step, next;
  };
  /// A row that was looked up and is noted in `rows`: its first step, and the walk over the others.
  struct NextRow {
    int work_index;
    Walk walk;
    Message first;
  };

  /// The same where a look-up takes so long that the last keys of the row under way would be loaded
  /// too late: each row is looked up before the second step of the row before it is loaded. At that
  /// time consumers still store O of the previous row and compute the first weights of this one, so
  /// they need the next keys later than at any other time. The registers do not hold two rows: one
  /// of them waits in shared memory.
  __device__ __forceinline__ void produce_rows_looked_up_early() {
    static_assert(Config::kStages + 3 + ceil_div(code_places<Config>(), 2) <= Shape::kRowSlots,
                  "a row is noted while the slot of the row before may still be awaited");
    RowCounter counter(loads_.args.schedule.next_row);
    look_up(block_index());
    while (next_row().work_index < work_indices()) {
      counter.ask();
      Row row = loads_.smem.control()->rows[loads_.rows.slot()];
      enter_row(row);
      StepsToLoad left{next_row().walk, next_row().first, {}};
      left.next = take_step(row, left.walk);
      bool is_first = true;
      if (left.next.tiles[0].exists()) load_and_go_on(row, left, is_first);
      put_aside(steps_left(), left);
      look_up(counter.take());
      left = steps_left();
      row = loads_.smem.control()->rows[loads_.rows.before().slot()];
      row.q0 = loads_.row.q0, row.h = loads_.row.h, row.b = loads_.row.b;  // in registers anyway
      while (left.next.tiles[0].exists()) load_and_go_on(row, left, is_first);
      load_step_of_row(left.step, is_first, true);
    }
  }

  __device__ __forceinline__ void load_and_go_on(const Row& row, StepsToLoad& left,
                                                 bool& is_first) {
    load_step_of_row(left.step, is_first, false);
    is_first = false;
    left.step = left.next;
    left.next = take_step(row, left.walk);
  }

  /// Notes the row at a work index, if there is one, in `rows`, and leaves the rest in next_row().
  __device__ __forceinline__ void look_up(int work_index) const {
    const Row row = find_row(work_index < work_indices() ? work_index : 0);
    if (elect_one())
      note_row(loads_.smem, loads_.rows.slot(), row, share_of_item<Config>(work_index));
    Walk walk = begin_walk(row, work_index);
    const Message first = take_step(row, walk);
    put_aside(next_row(), {work_index, walk, first});
  }

  __device__ __forceinline__ NextRow& next_row() const {
    static_assert(sizeof(NextRow) <= sizeof(loads_.smem.control()->next_row));
    return *reinterpret_cast<NextRow*>(loads_.smem.control()->next_row);
  }
  __device__ __forceinline__ StepsToLoad& steps_left() const {
    static_assert(sizeof(StepsToLoad) <= sizeof(loads_.smem.control()->steps_left));
    return *reinterpret_cast<StepsToLoad*>(loads_.smem.control()->steps_left);
  }
  template <class T>
  __device__ __forceinline__ static void put_aside(T& place, const T& value) {
    __syncwarp();
    if (elect_one()) place = value;
    __syncwarp();
  }

  /// Loads the items of all sequences, one after the other, without looking up the next one early:
  /// their loads need the registers.
  __device__ __forceinline__ void produce_items() {
    RowCounter counter(loads_.args.schedule.next_row);
    if constexpr (!kAsksLate) counter.ask();
    for (int item = block_index(); item < work_indices(); item = next_index(counter))
      produce_item(find_row(item), item);
  }

  /// The same by several warps. One of them leads: it finds rows and notes them for the others, as
  /// it does for consumers (row_noted).
  __device__ __forceinline__ void produce_together() {
    RowCounter counter(loads_.args.schedule.next_row);
    if (!kAsksLate && loads_.leads()) counter.ask();
    if constexpr (Loads::kKeepsRow) {
      for (Row row = next_noted_row(counter); row.b >= 0; row = next_noted_row(counter))
        produce_item(row, 0);
    } else {
      for (const Row* row = &next_noted_row(counter); row->b >= 0; row = &next_noted_row(counter))
        produce_item(*row, 0);
    }
  }

  /// The row of an item, or of sequence -1: there is none.
  __device__ __forceinline__ void note_item(int item, Row& place, const Mbarrier& noted) const {
    const bool exists = item < work_indices();
    if constexpr (hides_rows<Config>()) {  // by all lanes: the row is never whole in registers
      if (exists) place = sequence_tile<Config>(loads_.args, item);
      if (!exists) place.b = -1;
      __syncwarp();
      if (elect_one()) noted.arrive();
    } else {
      Row row;
      row.b = -1;
      if (exists) row = sequence_tile<Config>(loads_.args, item);
      if (elect_one()) {
        place = row;
        noted.arrive();
      }
    }
  }

  /// In registers or in shared memory, as the loads keep it. Of sequence -1: there is no other row.
  __device__ __forceinline__ decltype(auto) next_noted_row(RowCounter& counter) {
    Row& place = loads_.smem.control()->rows[loads_.rows.slot()];
    const Mbarrier noted = Smem::barrier(loads_.smem.control()->row_noted[loads_.rows.slot()]);
    if (loads_.leads()) {
      const int item = loads_.rows.count == 0 ? block_index() : next_index(counter);
      note_item(item, place, noted);
    }
    noted.wait(loads_.rows.phase());
    if constexpr (Loads::kKeepsRow) {
      const Row row = place;
      if (row.b >= 0) acquire_maps_of(row);
      return row;
    } else {
      if (place.b >= 0) acquire_maps_of(place);
      return (place);
    }
  }

  __device__ __forceinline__ void acquire_maps_of(const Row& row) const {
    if (row.b != loads_.row.b) acquire_maps<Config, Loads>(loads_.args, row.b, loads_.leads());
  }

  __device__ __forceinline__ void produce_item(const Row& row, int item) {
    begin_row(row, item);
    Walk walk = begin_walk(row, item);
    Message first = take_step(row, walk);
    if constexpr (Loads::kAsksAhead) loads_.ask_for_page(row, first);
    const auto load = [&](const Message& step, const Message& next, bool is_first, bool is_last) {
      if constexpr (Loads::kAsksAhead) loads_.ask_for_page(row, next);
      load_step_of_row(step, is_first, is_last);
    };
    const auto exists = [](const Message& step) { return step.tiles[0].exists(); };
    for_each_step(
        first, [&] { return take_step(row, walk); }, exists, load);
    // Before the next item is looked up, which would delay the last values of this one, for which
    // consumers wait.
    if constexpr (has_sequence_tiles<Config>() && kBringsBoth) loads_.load_values();
  }

  __device__ __forceinline__ int work_indices() const {
    if constexpr (has_sequence_tiles<Config>()) return scheduled_items(loads_.args);
    return scheduled_work_tiles<Config>(loads_.args.attend);
  }

  /// The work tile at a work index, or the item of one.
  __device__ __forceinline__ Row find_row(int work_index) const {
    if constexpr (has_sequence_tiles<Config>()) {
      const Row row = sequence_tile<Config>(loads_.args, work_index);
      acquire_maps_of(row);
      return row;
    } else {
      return scheduled_row<Config>(loads_.args.attend, loads_.args.schedule, work_index);
    }
  }

  /// What the counter gave; asks for the one behind it.
  __device__ __forceinline__ static int next_index(RowCounter& counter) {
    if constexpr (kAsksLate) return counter.take_next();
    const int work_index = counter.take();
    counter.ask();
    return work_index;
  }

  __device__ __forceinline__ Walk begin_walk(const Row& row, int work_index) const {
    if constexpr (has_sequence_tiles<Config>()) {
      return Walk(args_of_work_tile<Config>(loads_.args, row), row);
    } else {
      return lacuna::begin_walk<Config>(loads_.args, row, GatheredKeys{},
                                        share_of_item<Config>(work_index));
    }
  }

  __device__ __forceinline__ Message take_step(const Row& row, Walk& walk) const {
    decltype(auto) args = args_of_work_tile<Config>(loads_.args, row);
    Message step;
#pragma unroll
    for (int n = 0; n < Shape::kStepTiles; ++n) step.tiles[n] = walk.next(args, row);
    return step;
  }

  __device__ __forceinline__ u32 flags_of(const Message& step) const {
    bool needs_mask_or_report = wants_report(loads_.args.attend) || gates_rows<Config>();
#pragma unroll
    for (int n = 0; n < Shape::kStepTiles; ++n)
      needs_mask_or_report =
          needs_mask_or_report || !step.tiles[n].exists() || step.tiles[n].needs_mask();
    return needs_mask_or_report ? Message::kNeedsMaskOrReport : 0u;
  }

  /// Consumers find the row at `rows`.
  __device__ __forceinline__ void begin_row(const Row& row, int work_index) {
    if (Shape::kProducerWarps == 1 && elect_one())
      note_row(loads_.smem, loads_.rows.slot(), row, share_of_item<Config>(work_index));
    enter_row(row);
  }
  /// The row at `rows`, which is noted already.
  __device__ __forceinline__ void enter_row(const Row& row) {
    const int kv_head = kv_head_of(loads_.args, row);
    loads_.row = {row.q0, row.h, row.b, 0, kv_head};
    if constexpr (has_sequence_tiles<Config>()) loads_.row.n_k = row.n_k;
    loads_.row_slot = loads_.rows.slot();
    loads_.rows.advance();
  }

  __device__ __forceinline__ void load_step_of_row(Message step, bool is_first, bool is_last) {
    step.flags = flags_of(step) | (is_last ? Message::kLastOfRow : 0u);
    if constexpr (Shape::kLooksAhead)
      step.flags |= loads_.row_slot << Message::kRowShift | (is_first ? Message::kFirstOfRow : 0u);
    if constexpr (Shape::kMakesRows) {
      loads_.load_step(step, is_first && step.tiles[0].exists());
    } else if constexpr (!Loads::kBringsKeys) {
      loads_.load_values_of_sequence(step);
    } else {
      loads_.load_keys(step);
      if constexpr (kBringsBoth) loads_.load_values();  // of the step before
      if (is_first && step.tiles[0].exists() && loads_.leads())
        load_query_tiles<Config>(loads_.args, loads_.smem, loads_.queries, loads_.sequence_row());
      if constexpr (kBringsBoth) loads_.note_pending(step);
    }
  }

  Loads loads_;
};

}  // namespace lacuna

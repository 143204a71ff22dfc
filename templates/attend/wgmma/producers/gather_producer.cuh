// The producer of the wgmma family where columns of keys are gathered: one warp schedules rows,
// expands their bits and cuts them into steps (attend/wgmma/layout/gather_columns.cuh), one loads
// the keys of each step and one its values. Where these copy rows by lanes, a fourth loads the part
// of the values that comes by boxes (loader/gather_panels.cuh). The rings between producer and
// consumers are those of attend/wgmma/layout/wgmma_shape.cuh; a ring of steps connects the
// producer's warps.
#pragma once

#include "attend/wgmma/layout/gather_columns.cuh"
#include "attend/wgmma/producers/gather_loads.cuh"
#include "attend/wgmma/producers/step_loads.cuh"
#include "pipeline/work_tile_schedule.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class GatherProducer {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Row = typename Shape::Row;
  using Ring = ColumnRing<true, Config::kWorkTiles, Row>;
  using StepPosition = RingPosition<Ring::kSteps>;
  using Part = GatheredPart;
  /// Flags of a step without columns. (One work tile sees that there is no tile.)
  static constexpr u32 kOfNobody =
      Shape::kOwnRows ? ((1u << Config::kWorkTiles) - 1u) * GatheredStep::kKeepsNone : 0u;

 public:
  static constexpr int kWarps = 1 + Shape::kGatherLoaders;

  __device__ __forceinline__ GatherProducer(const Args& args, const Smem& smem)
      : args_(args), smem_(smem) {}

  __device__ __forceinline__ void run() {
    const int warp = warp_index() - Shape::kConsumerWarps;
    if (warp == 0) {
      announce_steps();
    } else {
      if (warp == 1) {
        load_keys();
      } else if (warp == 2) {
        load_values<Shape::kHasCopiedRows ? Part::kFirst : Part::kAll>();
      } else {
        load_values<Part::kRest>();
      }
      cp_async_commit();
      cp_async_wait<0>();  // copies do not outlive who issued them
    }
  }

 private:
  __device__ __forceinline__ void announce_steps() const {
    ColumnStream<Config, Args> columns(ring());
    StepPosition at;
    u32 rows = 0;
    if constexpr (has_sequence_tiles<Config>()) {
      for_each_item<Config>(args_, [&](const Row& row) {
        announce_row(columns, at, note_row_in_ring(rows++, row));  // which registers do not hold
      });
    } else {
      for_each_work_tile<Config>(args_, [&](const Row& row, int) {
        note_row_in_ring(rows++, row);
        announce_row(columns, at, row);
      });
    }
    Smem::barrier(ring().step_empty[at.slot()]).wait(at.phase() ^ 1);
    announce(at, {GatheredStep::kEnd, TileRef()});
  }

  /// For the warps that load. Nobody reads any more what the place held.
  __device__ __forceinline__ const Row& note_row_in_ring(u32 number, const Row& row) const {
    Row& place = ring().rows[number % Ring::kRowPlaces];
    if (lane_index() == 0) place = row;
    __syncwarp();
    return place;
  }

  __device__ __forceinline__ void announce_row(ColumnStream<Config, Args>& columns,
                                               StepPosition& at, const Row& row) const {
    columns.begin(args_of_work_tile<Config>(args_, row), row);
    u32 flags = GatheredStep::kFirstOfRow;
    GatheredStep step = take_step(columns, row);
    while ((flags & GatheredStep::kLastOfRow) == 0) {
      const GatheredStep next = take_step(columns, row);
      if (!next.tile.exists()) flags |= GatheredStep::kLastOfRow;
      Smem::barrier(ring().step_empty[at.slot()]).wait(at.phase() ^ 1);
      announce(at, {flags | step.flags, step.tile});
      flags &= ~GatheredStep::kFirstOfRow;
      step = next;
    }
  }

  /// Keys ascend: the mask is asked about all from the first to the last.
  __device__ __forceinline__ GatheredStep take_step(ColumnStream<Config, Args>& columns,
                                                    const Row& row) const {
    decltype(auto) args = args_of_work_tile<Config>(args_, row);
    const int position = columns.take(args);
    if (position < 0) return {kOfNobody, TileRef()};
    const TileRef tile(static_cast<u32>(position));
    const TileKeys<Config> keys(ring(), 0);
    const int k0 = keys.at(tile, 0), k1 = keys.at(tile, Config::kStepKeys - 1);
    bool full = k1 < args.attend.n_k;
    if constexpr (Config::kHasMask)
      full = full && Hooks::tile_full(args, row.q0, last_query(row), k0, k1, row.h, row.b);
    return {columns.note_kept(position), full ? tile : TileRef(tile.bits() | TileRef::kNeedsMask)};
  }

  /// Of all work tiles that the block takes together from `row` on.
  __device__ __forceinline__ int last_query(const Row& row) const {
    if constexpr (Config::kWorkTiles == 1) return row.q1;
    return smaller(row.q0 + Config::kWorkTiles * Config::kTileQ, queries_of(args_, row)) - 1;
  }

  __device__ __forceinline__ void announce(StepPosition& at, const GatheredStep& step) const {
    __syncwarp();
    if (lane_index() == 0) {
      ring().steps[at.slot()] = step;
      Smem::barrier(ring().step_full[at.slot()]).arrive();
    }
    at.advance();
  }

  __device__ __forceinline__ GatheredStep await_step(const StepPosition& at) const {
    Smem::barrier(ring().step_full[at.slot()]).wait(at.phase());
    return ring().steps[at.slot()];
  }
  __device__ __forceinline__ void release_step(StepPosition& at) const {
    __syncwarp();
    if (lane_index() == 0) Smem::barrier(ring().step_empty[at.slot()]).arrive();
    at.advance();
  }

  /// And the queries of rows, once their first keys are on their way.
  __device__ __forceinline__ void load_keys() const {
    StepPosition at;
    RingPosition<Config::kStages> keys;
    RingPosition<Config::kQueryBuffers> queries;
    RingPosition<Shape::kRowSlots> rows;
    GatherLoads<Config, Args, Part::kAll, true> loads(args_);
    for (GatheredStep step = await_step(at);; step = await_step(at)) {
      const Mbarrier full = Smem::barrier(smem_.control()->k_full[keys.slot()]);
      const Row& row = ring().rows[rows.count % Ring::kRowPlaces];
      if (step.has(GatheredStep::kFirstOfRow)) {
        loads.begin_row(row);
        acquire_rows(row);
      }
      look_up(loads, step);
      Smem::barrier(smem_.control()->k_empty[keys.slot()]).wait(keys.phase() ^ 1);
      load_step(loads, smem_.keys(keys.slot()), full, step);
      if (lane_index() == 0) {
        if (step.has(GatheredStep::kFirstOfRow)) smem_.control()->rows[rows.slot()] = row;
#pragma unroll
        for (int r = 0; r < Config::kWorkTiles; ++r)
          smem_.message(keys.slot(), r) = message(step, r);
        full.arrive();
      }
      if (step.has(GatheredStep::kEnd)) return;
      if (step.has(GatheredStep::kFirstOfRow) && (Shape::kOwnRows || step.tile.exists()))
        load_query_tiles<Config>(args_, smem_, queries, row);
      if (step.has(GatheredStep::kLastOfRow)) rows.advance();
      keys.advance();
      release_step(at);
    }
  }

  template <Part kPart>
  __device__ __forceinline__ void load_values() const {
    StepPosition at;
    RingPosition<Config::kStages> values;
    u32 rows = 0;
    GatherLoads<Config, Args, kPart, false> loads(args_);
    for (GatheredStep step = await_step(at); !step.has(GatheredStep::kEnd); step = await_step(at)) {
      if (step.has(GatheredStep::kFirstOfRow))
        loads.begin_row(ring().rows[rows % Ring::kRowPlaces]);
      look_up(loads, step);
      Smem::barrier(smem_.control()->v_empty[values.slot()]).wait(values.phase() ^ 1);
      load_step(loads, smem_.values(values.slot()),
                Smem::barrier(smem_.control()->v_full[values.slot()]), step);
      if (step.has(GatheredStep::kLastOfRow)) ++rows;
      values.advance();
      release_step(at);
    }
  }

  /// Of a batch of sequences: maps of queries, and of O, which consumers store behind what this
  /// warp tells them.
  __device__ __forceinline__ void acquire_rows(const Row& row) const {
    if constexpr (has_sequence_tiles<Config>()) {
      acquire_map(maps_of_sequence(args_, row.b)[kSequenceQueries]);
      acquire_map(maps_of_sequence(args_, row.b)[kSequenceOutput]);
    }
  }

  template <class Loads>
  __device__ __forceinline__ void look_up(Loads& loads, const GatheredStep& step) const {
    if (step.tile.exists()) loads.look_up(ring().columns + step.tile.index());
  }

  template <class Loads>
  __device__ __forceinline__ void load_step(const Loads& loads, u32 slot, Mbarrier full,
                                            const GatheredStep& step) const {
    if (step.tile.exists()) {
      loads.load(slot, full, ring().columns + step.tile.index());
    } else if (Loads::kCopies || lane_index() == 0) {
      full.arrive();
    }
  }

  /// For the work tile that is the block's r-th.
  __device__ __forceinline__ static Message message(const GatheredStep& step, int r) {
    Message message;
    message.flags = 0;
    if (step.has(GatheredStep::kEnd)) message.flags |= Message::kEnd;
    if (step.has(GatheredStep::kLastOfRow)) message.flags |= Message::kLastOfRow;
    if (step.has(GatheredStep::kKeepsNone, r)) message.flags |= Message::kSkipped;
    if (!step.tile.exists()) return message;
    if (step.tile.needs_mask()) message.flags |= Message::kNeedsMaskOrReport;
    if (step.has(GatheredStep::kLeavesSome, r))
      message.flags |= Message::kLeavesSome | Message::kNeedsMaskOrReport;
#pragma unroll
    for (int n = 0; n < Shape::kStepTiles; ++n)
      message.tiles[n] = TileRef(step.tile.bits() + n * (Config::kTileK / Config::kKeepK));
    return message;
  }

  __device__ __forceinline__ Ring& ring() const { return smem_.control()->ring; }

  const Args& args_;
  const Smem smem_;
};

}  // namespace lacuna

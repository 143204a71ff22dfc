// The producer of the wgmma family where columns of keys are gathered: one warp schedules rows,
// expands their bits and cuts them into steps (attend/wgmma/layout/gather_columns.cuh), one loads
// the keys of each step and one its values. Where these copy rows by lanes, a fourth loads the part
// of the values that comes by boxes (loader/gather_panels.cuh). The rings between producer and
// consumers are those of attend/wgmma/layout/wgmma_shape.cuh; a ring of steps connects the
// producer's warps.
#pragma once

#include "attend/wgmma/layout/gather_columns.cuh"
#include "attend/wgmma/producers/step_loads.cuh"
#include "loader/gather_panels.cuh"
#include "pipeline/work_tile_schedule.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class GatherProducer {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Ring = ColumnRing<true, Config::kWorkTiles>;
  using StepPosition = RingPosition<Ring::kSteps>;
  /// Of a step's rows: where they are copied, those of values that are, and those that are not.
  enum class Part { kAll, kFirst, kRest };
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
    RowCounter counter(args_.schedule.next_row);
    ColumnStream<Config, Args> columns(ring());
    StepPosition at;
    u32 rows = 0;
    int work_index = block_index();
    while (work_index < scheduled_work_tiles<Config>(args_.attend)) {
      counter.ask();
      const WorkTile row = scheduled_row<Config>(args_.attend, args_.schedule, work_index);
      columns.begin(args_, row);
      u32 flags = GatheredStep::kFirstOfRow;
      GatheredStep step = take_step(columns, row);
      while ((flags & GatheredStep::kLastOfRow) == 0) {
        const GatheredStep next = take_step(columns, row);
        if (!next.tile.exists()) flags |= GatheredStep::kLastOfRow;
        Smem::barrier(ring().step_empty[at.slot()]).wait(at.phase() ^ 1);
        if ((flags & GatheredStep::kFirstOfRow) != 0 && lane_index() == 0)
          ring().rows[rows % Ring::kSteps] = row;
        announce(at, {flags | step.flags, step.tile});
        flags &= ~GatheredStep::kFirstOfRow;
        step = next;
      }
      ++rows;
      work_index = counter.take();
    }
    Smem::barrier(ring().step_empty[at.slot()]).wait(at.phase() ^ 1);
    announce(at, {GatheredStep::kEnd, TileRef()});
  }

  /// Keys ascend: the mask is asked about all from the first to the last.
  __device__ __forceinline__ GatheredStep take_step(ColumnStream<Config, Args>& columns,
                                                    const WorkTile& row) const {
    const int position = columns.take(args_);
    if (position < 0) return {kOfNobody, TileRef()};
    const TileRef tile(static_cast<u32>(position));
    const TileKeys<Config> keys(ring(), 0);
    const int k0 = keys.at(tile, 0), k1 = keys.at(tile, Config::kStepKeys - 1);
    bool full = k1 < args_.attend.n_k;
    if constexpr (Config::kHasMask)
      full = full && Hooks::tile_full(args_, row.q0, last_query(row), k0, k1, row.h, row.b);
    return {columns.note_kept(position), full ? tile : TileRef(tile.bits() | TileRef::kNeedsMask)};
  }

  /// Of all work tiles that the block takes together from `row` on.
  __device__ __forceinline__ int last_query(const WorkTile& row) const {
    if constexpr (Config::kWorkTiles == 1) return row.q1;
    return smaller(row.q0 + Config::kWorkTiles * Config::kTileQ, args_.attend.n_q) - 1;
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
    GatheredHead head;
    for (GatheredStep step = await_step(at);; step = await_step(at)) {
      const Mbarrier full = Smem::barrier(smem_.control()->k_full[keys.slot()]);
      Smem::barrier(smem_.control()->k_empty[keys.slot()]).wait(keys.phase() ^ 1);
      const WorkTile& row = ring().rows[rows.count % Ring::kSteps];
      if (step.has(GatheredStep::kFirstOfRow)) head = head_of(args_.attend.k, row);
      load_step<Part::kAll>(args_.maps.k, smem_.keys(keys.slot()), full, head, step);
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
    GatheredHead head;
    for (GatheredStep step = await_step(at); !step.has(GatheredStep::kEnd); step = await_step(at)) {
      Smem::barrier(smem_.control()->v_empty[values.slot()]).wait(values.phase() ^ 1);
      if (step.has(GatheredStep::kFirstOfRow))
        head = head_of(args_.attend.v, ring().rows[rows % Ring::kSteps]);
      load_step<kPart>(args_.maps.v, smem_.values(values.slot()),
                       Smem::barrier(smem_.control()->v_full[values.slot()]), head, step);
      if (step.has(GatheredStep::kLastOfRow)) ++rows;
      values.advance();
      release_step(at);
    }
  }

  /// Asked once for each row: it takes a division.
  __device__ __forceinline__ GatheredHead head_of(const TensorArg& x, const WorkTile& row) const {
    const int head = row.h / args_.attend.heads_per_kv;
    const auto* data = static_cast<const typename Config::Element*>(x.data) + row.b * x.stride_b +
                       head * x.stride_h;
    const auto row_bytes = static_cast<int>(x.stride_n * static_cast<int>(sizeof(*data)));
    return {data, row_bytes, args_.attend.n_k, head, row.b};
  }

  template <Part kPart>
  __device__ __forceinline__ void load_step(const TensorMap& map, u32 slot, Mbarrier full,
                                            const GatheredHead& head,
                                            const GatheredStep& step) const {
    using Tile = typename Shape::StepTile;
    constexpr bool kCopies = Shape::kHasCopiedRows && kPart != Part::kRest;
    if (!step.tile.exists()) {
      if (kCopies || lane_index() == 0) full.arrive();
      return;
    }
    const int* const columns = ring().columns + step.tile.index();
    if constexpr (kCopies) {
      copy_panels<Tile, kPart == Part::kAll ? Tile::kRows : Shape::kCopiedValues>(slot, full, head,
                                                                                  columns);
    } else {
      load_boxes<Tile, Config::kKeepK, kPart == Part::kRest ? Shape::kCopiedValues : 0>(
          map, slot, full, head, columns);
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

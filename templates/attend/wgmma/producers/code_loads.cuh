// Loads of e4m3 codes in the wgmma family: in place of StepLoads (step_loads.cuh), for the warp
// that walks. What a place holds is told to all warps that convert by its ticket.
#pragma once

#include "arch/copy/cp_async.cuh"
#include "args/kv_scale_args.cuh"
#include "attend/wgmma/producers/code_converter.cuh"

namespace lacuna {

template <class Config, class Args>
struct CodeLoads {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Ring = decltype(WgmmaControl<Config>::codes);
  using Ticket = typename Ring::Ticket;
  static constexpr bool kHasPages = attends_to_pages<Config>();
  static constexpr bool kBringsKeys = true, kBringsValues = true;
  static constexpr bool kAsksAhead = kHasPages;

  __device__ __forceinline__ CodeLoads(const Args& launch, const Smem& shared, int)
      : args(launch), smem(shared), converter(launch, shared, 0) {}

  /// Of sequences: the page of the step that was asked for before is this one's, and that of the
  /// step behind it is on its way. This warp converts in between, and has no time to wait for it.
  template <class Row>
  __device__ __forceinline__ void ask_for_page(const Row& of, const Message& next) {
    page = next_page;
    next_page = page_of_lane<Config, typename Shape::KeyCodes>(args, of, next,
                                                               page_shift_of(args.sequences));
  }

  /// Keys of the step, then values of the step before. The row's queries come behind both.
  __device__ __forceinline__ void load_step(const Message& step, bool wants_queries) {
    const u32 flags = wants_queries ? Ticket::kLoadsQueries : 0u;
    load<typename Shape::KeyCodes>(step, page, row.b, row.kv_head, row.n_k,
                                   has_pending ? 0u : flags);
    load_values(flags);
    pending = step;
    has_pending = true;
    pending_head = row.kv_head, pending_batch = row.b;
    if constexpr (has_sequence_tiles<Config>()) pending_n_k = row.n_k, pending_page = page;
  }

  __device__ __forceinline__ void load_values(u32 flags = 0) {
    if (!has_pending) return;
    load<typename Shape::ValueCodes>(pending, pending_page, pending_batch, pending_head,
                                     pending_n_k, flags | Ticket::kValues);
    has_pending = false;
  }

  /// Behind all steps; returns once this warp has converted its share of them.
  __device__ __forceinline__ void announce_end() {
    await_place();
    if (elect_one()) {
      Ticket& ticket = smem.control()->codes.tickets[at.slot()];
      ticket.flags = 0;
      ticket.step.flags = Message::kEnd;
    }
    give_place<typename Shape::KeyCodes>(false);
    while (converter.convert_next()) {
    }
  }

 private:
  /// Who waits for a place first does what it is held by itself.
  __device__ __forceinline__ void await_place() {
    while (at.count - converter.count() >= static_cast<u32>(code_places<Config>()))
      converter.convert_next();
    Smem::barrier(smem.control()->codes.empty[at.slot()]).wait(at.phase() ^ 1);
  }

  /// The place's loads are issued, and its ticket is written.
  template <class Slot>
  __device__ __forceinline__ void give_place(bool has_codes) {
    const Mbarrier full = Smem::barrier(smem.control()->codes.full[at.slot()]);
    __syncwarp();
    if (elect_one()) {
      if (has_codes) {
        full.arrive_expecting(Slot::kBytes);
      } else {
        full.arrive();
      }
    }
    full.arrive_after_copies();
    at.advance();
  }

  template <class Slot>
  __device__ __forceinline__ void load(const Message& step, int page_of_step, int b, int head,
                                       int n_k, u32 flags) {
    await_place();
    Ticket& ticket = smem.control()->codes.tickets[at.slot()];
    if (elect_one()) {
      ticket.flags = flags;
      ticket.row = row_slot;
      ticket.step = step;
    }
    const bool has_codes = step.tiles[0].exists();
    if (has_codes) {
      load_boxes<Slot>(step, page_of_step, b, head, n_k, (flags & Ticket::kValues) != 0);
      load_scales(ticket, page_of_step, b, head, (flags & Ticket::kValues) != 0);
    }
    give_place<Slot>(has_codes);
  }

  template <class Slot>
  __device__ __forceinline__ void load_boxes(const Message& step, int page_of_step, int b, int head,
                                             int n_k, bool are_values) const {
    const Mbarrier full = Smem::barrier(smem.control()->codes.full[at.slot()]);
    const u32 place = smem.codes(at.slot());
    if constexpr (has_sequence_tiles<Config>()) {
      const SequenceRows from = are_values ? values_of_sequence<Config>(args, b, head, n_k)
                                           : keys_of_sequence<Config>(args, b, head, n_k);
      with_page_shift<Config, Slot>(args, [&](auto page_shift) {
        using Boxes = TileBoxes<Slot, Config, page_shift.kValue>;
        load_sequence_step<Boxes>(from, step, PagesOfLanes{page_of_step}, place, full);
      });
    } else if (elect_one()) {
      load_step_tiles<Config, Slot>(are_values ? args.maps.v : args.maps.k, place, full, step,
                                    args.attend.k_tiles, head, b);
    }
  }

  /// Of each piece of the step the scale of its rows, by a lane: of pages that of its page, which
  /// is 1 where there is none.
  __device__ __forceinline__ void load_scales(Ticket& ticket, int page_of_step, int b, int head,
                                              bool are_values) const {
    const KvScaleArgs& from = args.kv_scales;
    const float* scales = are_values ? from.values : from.keys;
    const long long stride_b = are_values ? from.values_stride_b : from.keys_stride_b;
    const long long stride_h = are_values ? from.values_stride_h : from.keys_stride_h;
    int entry = b;
    if constexpr (kHasPages) {
      const int box_shift =
          smaller(page_shift_of(args.sequences), log2_of(Config::kTileK)) - log2_of(kScaleRows);
      entry = __shfl_sync(kAllLanes, page_of_step, lane_index() >> box_shift);
    }
    if (lane_index() >= Ring::kPieces) return;
    float* const scale = ticket.scales + lane_index();
    if (scales == nullptr || entry < 0) {
      *scale = 1.0f;
    } else {
      cp_async_4(shared_address(scale), scales + entry * stride_b + head * stride_h);
    }
  }

 public:
  const Args& args;
  const Smem smem;
  __device__ __forceinline__ static bool leads() { return true; }
  RingPosition<code_places<Config>()> at;
  CodeConverter<Config, Args> converter;
  RingPosition<Shape::kRowSlots> rows;
  Message pending;  ///< whose V is still to be loaded
  bool has_pending = false;
  LoadedRow row;     ///< whose steps these are
  u32 row_slot = 0;  ///< where consumers find it
  int pending_head = 0, pending_batch = 0;
  /// Of sequences: the lane's page of the step that comes next, of this one, and of the values that
  /// are still to be loaded.
  int next_page = 0, page = 0, pending_page = 0, pending_n_k = 0;
};

}  // namespace lacuna

// 16-bit rows of e4m3 codes, in the wgmma family: what each warp of the producer makes of the
// places of attend/wgmma/layout/code_places.cuh, one after the other. A number is its code times
// the scale of its row, rounded once.
//
// A warp takes 8 rows at a time, of which 4 lanes each take 64 codes, so that the 8 lanes which
// reach shared memory together meet no conflict: they read 128 bytes of different banks and write
// chunks of two rows, whose permutations differ. Where two panels lie in one line of codes, the
// lanes of odd rows begin with the second.
#pragma once

#include "attend/wgmma/producers/step_loads.cuh"
#include "quantise/e4m3_rows.cuh"

namespace lacuna {

/// Rows that a warp makes at a time.
inline constexpr int kGroupRows = 8;

/// Rows of `tile` from codes: `groups` groups from `first` on. Neighbours: where warps take groups
/// in turns, a decode takes a quarter more time.
template <class Element, class Codes, class Tile>
__device__ __forceinline__ void make_rows(const unsigned char* codes, unsigned char* tile,
                                          const float* scales, int first, int groups) {
  constexpr int kLaneChunks = 4, kPanels = Tile::kPanels;
  constexpr u32 kChunkBytes = 16;
  static_assert(Codes::kRows == Tile::kRows && kScaleRows % kGroupRows == 0);
  const int row = lane_index() / kLaneChunks, chunk = lane_index() % kLaneChunks;
  constexpr bool kSwapsPanels = Codes::kRowBytes == 2 * kPanelElements;
  // Both permutations repeat every 8 rows, and panels of one line of codes lie behind those of the
  // line before: a lane's offsets in the first line of a group are all that it has to know.
  constexpr int kLinePanels = kSwapsPanels ? 2 : 1;
  u32 sources[kLinePanels], targets[kLinePanels];
#pragma unroll
  for (int n = 0; n < kLinePanels; ++n) {
    const int place = (kSwapsPanels ? n ^ (row & 1) : n) * kLaneChunks + chunk;
    sources[n] = Codes::chunk_offset(row, place);
    targets[n] = Tile::offset(row, 2 * place);
  }
#pragma unroll 1
  for (int group = first; group < first + groups; ++group) {
    const float scale = scales[group * kGroupRows / kScaleRows];
#pragma unroll 1  // more lines at a time, and the producer's 40 registers do not suffice
    for (int line = 0; line < kPanels / kLinePanels; ++line) {
      const unsigned char* const from =
          codes + (line * Codes::kRows + group * kGroupRows) * Codes::kRowBytes;
      unsigned char* const to =
          tile + line * kLinePanels * Tile::kPanelBytes + group * kGroupRows * kPanelRowBytes;
      uint4 ahead = *reinterpret_cast<const uint4*>(from + sources[0]);
#pragma unroll
      for (int n = 0; n < kLinePanels; ++n) {
        const uint4 of_lane = ahead;
        if (n + 1 < kLinePanels) ahead = *reinterpret_cast<const uint4*>(from + sources[n + 1]);
        // The second chunk lies beside the first, on the side that the permutation says.
        *reinterpret_cast<uint4*>(to + targets[n]) =
            numbers_of_eight<Element>(of_lane.x, of_lane.y, scale);
        *reinterpret_cast<uint4*>(to + (targets[n] ^ kChunkBytes)) =
            numbers_of_eight<Element>(of_lane.z, of_lane.w, scale);
      }
    }
  }
}

/// kStandsIn: by a consumer warpgroup without queries, which has nothing else to do. Each of its
/// warps makes all but one of the groups that a warp of the producer makes without that help; the
/// four that are left are made by three warps of the producer, while the first walks and loads.
template <class Config, class Args, bool kStandsIn = false>
class CodeConverter {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Ticket = typename decltype(WgmmaControl<Config>::codes)::Ticket;
  using Element = typename Config::Element;

 public:
  /// `warp`: of its warpgroup.
  __device__ __forceinline__ CodeConverter(const Args& args, const Smem& smem, int warp)
      : args_(args), smem_(smem), warp_(warp) {
    const bool has_help = warps_of_launch<Config>(args).convert > kConvertingWarps;
    if (kStandsIn) {
      groups_ = kGroups - 1;
      first_ = kConvertingWarps + warp * groups_;
    } else if (has_help) {
      groups_ = warp == 0 ? 0 : warp == 1 ? 2 : 1;
      first_ = warp <= 1 ? 0 : warp;
    } else {
      groups_ = kGroups;
      first_ = warp * kGroups;
    }
  }

  /// Places that it has converted.
  __device__ __forceinline__ u32 count() const { return at_.count; }

  /// This warp's share of the next place, once its codes have come; by a whole warp. False: there
  /// are no others.
  __device__ __forceinline__ bool convert_next() {
    const u32 place = at_.slot();
    Smem::barrier(smem_.control()->codes.full[place]).wait(at_.phase());
    const Ticket& ticket = smem_.control()->codes.tickets[place];
    const bool is_end = ticket.step.has(Message::kEnd);
    const bool loads_queries = ticket.has(Ticket::kLoadsQueries);
    const u32 row = ticket.row;
    if (ticket.has(Ticket::kValues)) {
      take_slot(smem_.control()->v_empty[values_.slot()], values_.phase());
      if (ticket.step.tiles[0].exists()) make_values(ticket, place);
      give_slot(smem_.control()->v_full[values_.slot()], place);
      values_.advance();
    } else {
      take_slot(smem_.control()->k_empty[keys_.slot()], keys_.phase());
      if (ticket.step.tiles[0].exists() && !is_end) make_keys(ticket, place);
      if (!kStandsIn && warp_ == 0 && elect_one()) smem_.message(keys_.slot(), 0) = ticket.step;
      give_slot(smem_.control()->k_full[keys_.slot()], place);
      keys_.advance();
    }
    at_.advance();
    if (!kStandsIn && loads_queries && warp_ == kQueryWarp) load_queries(row);
    return !is_end;
  }

 private:
  /// Of a place, for each of four warps.
  static constexpr int kGroups = Config::kStepKeys / kGroupRows / kConvertingWarps;

  /// Not the first: while it waits for the queries' place it would load no codes.
  static constexpr int kQueryWarp = 1;

  __device__ __forceinline__ static void take_slot(const unsigned long long& empty, u32 phase) {
    Smem::barrier(empty).wait(phase ^ 1);
  }

  /// Its rows are written, and the codes are read.
  __device__ __forceinline__ void give_slot(const unsigned long long& full, u32 place) const {
    fence_proxy_async();
    __syncwarp();
    if (elect_one()) {
      Smem::barrier(full).arrive();
      Smem::barrier(smem_.control()->codes.empty[place]).arrive();
    }
  }

  __device__ __forceinline__ void make_keys(const Ticket& ticket, u32 place) const {
    make_rows<Element, typename Shape::KeyCodes, typename Shape::KeySlot::Tile>(
        codes(place), smem_.dynamic + Shape::kKeysOffset + keys_.slot() * Shape::KeySlot::kBytes,
        ticket.scales, first_, groups_);
  }
  __device__ __forceinline__ void make_values(const Ticket& ticket, u32 place) const {
    make_rows<Element, typename Shape::ValueCodes, typename Shape::ValueSlot::Tile>(
        codes(place),
        smem_.dynamic + Shape::kValuesOffset + values_.slot() * Shape::ValueSlot::kBytes,
        ticket.scales, first_, groups_);
  }
  __device__ __forceinline__ const unsigned char* codes(u32 place) const {
    return smem_.dynamic + Shape::kCodesOffset + place * Shape::kCodePlaceBytes;
  }

  __device__ __forceinline__ void load_queries(u32 slot) {
    const typename Shape::Row& row = smem_.control()->rows[slot];
    const LoadedRow place{row.q0, row.h, row.b, 0};
    if constexpr (has_sequence_tiles<Config>())
      acquire_map(maps_of_sequence(args_, place.b)[kSequenceQueries]);
    load_query_tiles<Config>(args_, smem_, queries_, place);
  }

  const Args& args_;
  const Smem smem_;
  const int warp_;
  int first_, groups_;  ///< groups of rows of a place
  RingPosition<code_places<Config>()> at_;
  RingPosition<Config::kStages> keys_;
  RingPosition<Config::kValueStages> values_;
  RingPosition<Config::kQueryBuffers> queries_;
};

}  // namespace lacuna

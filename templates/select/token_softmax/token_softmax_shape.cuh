// How a block of predict_token_softmax (select/token_softmax/token_softmax.cuh) shares out its
// work, and what lies in its shared memory: read this first.
//
//   warpgroup w  queries 64 w .. 64 w + 63 of a query tile, against all keys of each step
//   last warp    the producer: queries of a row, and keys of each step with their numbers
//
//   queries      of the query tile
//     queries_free  an arrival of each warp that computes, after its last product of a row
//   slot n       128 keys of a step, and what belongs to them: message, scale, bias
//     full[n]       1 arrival: the producer, when what it wrote and copied is there
//     empty[n]      an arrival of each warp that computes, after its last read
//
// Rows, a query tile each, come in the order of a counter that all blocks share; the producer says
// in a step's message whose it is. A step has two parts of 64 keys, and those are runs of one to
// four tiles that the row sees (of a larger tile, two runs), in ascending order. Runs may be
// missing in the last step of a row, which then has the keys of the first once more, for no row to
// see. A row that sees nothing has one step without keys. The first step of a row brings its
// queries too.
//
// A warpgroup reduces a product before it issues the next; until then the tensor cores compute
// those of the other warpgroups. The warpgroups of a block take turns at the exponentials. At the
// end of a row they wait for one another: both publish their sums (`log2_sum`), pass their barrier,
// and decide. Sums, and the weights in global memory, have two places that rows take in turns: a
// warpgroup that is a row ahead writes the other one, and it can be no further ahead, because of
// that barrier.
#pragma once

#include "arch/copy/mbarrier.cuh"
#include "arch/copy/tma.cuh"
#include "arch/warpgroup.cuh"
#include "base/kinds.cuh"
#include "base/pin.cuh"
#include "quantise/groups.cuh"
#include "select/four_consumers.cuh"
#include "select/keep/decide_row.cuh"
#include "shared/estimate_block.cuh"
#include "tile/byte_panel.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

template <class Config>
struct TokenSoftmaxShape {
  static constexpr int kWarpgroups = Config::kTileQ / kWarpgroupRows;
  static constexpr int kWarps = 4 * kWarpgroups;  ///< that compute
  static constexpr int kConsumers = 32 * kWarps;
  static constexpr int kFullArrivals = 1, kEmptyArrivals = kWarps;
  static constexpr int kStages = softmax_stages(Config::kTileQ), kStepKeys = kSoftmaxStepKeys;
  static constexpr int kPartKeys = kSoftmaxPartKeys, kParts = kStepKeys / kPartKeys;
  static constexpr int kBlocks = kPartKeys / 8;  ///< accumulators of 8 keys, in a part
  static constexpr int kRunKeys = smaller(Config::kTileK, kPartKeys);
  static constexpr int kRunsOfTile = Config::kTileK / kRunKeys;
  static constexpr int kRunsOfPart = kPartKeys / kRunKeys, kRuns = kParts * kRunsOfPart;
  /// Keys of which a lane holds those of one scale.
  static constexpr int kUnitKeys = smaller(kRunKeys, 32), kUnits = kPartKeys / kUnitKeys;
  /// Places for rows in turns; a warpgroup alone is never ahead of another.
  static constexpr int kPlaces = kWarpgroups > 1 ? 2 : 1;
  /// Is a step waited for before that ahead of it is reduced? It is announced when the producer has
  /// the slot of the next one: with three slots, that which was given back just now.
  static constexpr bool kAwaitsEarly = kStages > 3;
  static constexpr bool kOrders = Config::kOrdersTiles || Config::kKeepsFirst;

  using KeyPanel = BytePanel<kStepKeys, Config::kHeadDim>;
  using RunTile = ByteTile<kRunKeys, Config::kHeadDim>;
  static constexpr int kKeyBytes = KeyPanel::kBytes;  ///< of a slot
  using QueryPanel = BytePanel<Config::kTileQ, Config::kHeadDim>;
  using QueryTile = ByteTile<Config::kTileQ, Config::kHeadDim>;
  using KeyGroups = QuantGroups<Config::kGroup, false, larger(Config::kTileK, 32)>;
  using QueryGroups = QuantGroups<Config::kGroup, true, Config::kTileQ>;

  /// What comes in a slot.
  struct alignas(8) Message {
    int row;         ///< its number; less than 0: there are no more
    int tiles;       ///< of the row's last step: how many tiles the row sees; 0 of others
    int is_partial;  ///< Are there keys that some row of the tile may not see?
    int key[kRuns];  ///< the first of each run; the first one less than 0: the row sees nothing
  };

  /// Behind the slots of keys and the queries.
  struct alignas(16) Control {
    unsigned long long full[kStages], empty[kStages], queries_free;
    Message messages[kStages];
    /// Of the keys that one lane of a quad has.
    alignas(16) float scale[kStages][4][kParts][kUnits];
    /// In log2, of the same and each accumulator. Two more than there are, so that the four lanes
    /// meet different banks.
    alignas(16) float bias[kStages][kParts][4][kBlocks + 2][2];
    /// log2 of each row's sum of exp(logit); inf for a row that takes no part.
    alignas(16) float log2_sum[kPlaces][Config::kTileQ];
    int row[kPlaces];  ///< its number
    int scratch;       ///< of sequences: which of row_weights the block has
    SelectScratch select;
    OrderScratch<kOrders ? kWarps : 1> order;
  };
  static constexpr int kQueryOffset = kStages * kKeyBytes;
  static constexpr int kControlOffset = kQueryOffset + QueryPanel::kBytes;

  static_assert(Config::kThreads == kConsumers + 32);
  static_assert(kControlOffset == token_softmax_tile_bytes(Config::kTileQ, Config::kHeadDim));
  static_assert(kControlOffset + static_cast<int>(sizeof(Control)) <= Config::kSmemBytes);
  static_assert(Config::kTileQ % kWarpgroupRows == 0 && Config::kTileK % kRunKeys == 0);
  static_assert(kPartKeys % kRunKeys == 0 && kRunKeys >= 16);
  static_assert((Config::kBits == 8 || Config::kBits == 4) && Config::kCell == 1 &&
                Config::kLastRows == 0);
  static_assert(Config::kNormalise == Normalise::kSoftmax && !Config::kUsesScore &&
                !Config::kHasExclude);
  static_assert(Config::kDecidingThreads == kConsumers);
};

/// The warpgroups of a block weigh one after the other: exponentials take most of the time, and one
/// unit of a scheduler computes those of all its warps. Warps that share it end together, and then
/// have it idle together while they wait for products and scale them. In turns, one's exponentials
/// are under way while another does the rest. That is all: what is right does not depend on it.
template <int kWarpgroups>
struct SoftmaxTurn {
  __device__ __forceinline__ static void begin() {
    if (kWarpgroups > 1 && warpgroup() == kWarpgroups - 1) barrier(0).arrive();
  }
  __device__ __forceinline__ static void await() {
    if constexpr (kWarpgroups > 1) barrier(warpgroup()).sync();
  }
  __device__ __forceinline__ static void pass() {
    if constexpr (kWarpgroups > 1) barrier((warpgroup() + 1) % kWarpgroups).arrive();
  }

 private:
  static constexpr int kFirst = 2;  ///< 1 is that of the team that decides
  /// Pinned, because the compiler would hold the barriers' ids in registers, of which none is left.
  __device__ __forceinline__ static int warpgroup() {
    int thread = thread_index();
    pin(thread);
    return thread / kWarpgroupThreads;
  }
  __device__ __forceinline__ static NamedBarrier barrier(int warpgroup) {
    return {kFirst + warpgroup, 2 * kWarpgroupThreads};
  }
};

template <class Config>
using TokenSoftmaxSmem = FourConsumersSmem<TokenSoftmaxShape<Config>>;

/// Of sequences each has a counter, behind the numbers that say who has which scratch.
template <class Config, class Args>
__device__ __forceinline__ u32* row_counter(const Args& args) {
  u32* const numbers = args.predict.next_estimate;
  if constexpr (has_sequences<Config>())
    return numbers + args.predict.softmax_blocks + args.sequences.entry;
  return numbers;
}

/// Rows are numbered from the last query tile on, because under a causal mask those are the
/// longest; all heads of a query tile follow one another.
template <class Config, class Args>
__device__ __forceinline__ KeepRow softmax_row(const Args& args, int number) {
  const int heads = args.attend.n_b * args.attend.n_h;
  const int from_end = number / heads, head = number - from_end * heads;
  const int b = head / args.attend.n_h;
  return keep_row_of<Config>(args, b, head - b * args.attend.n_h,
                             args.predict.keep_q_tiles - 1 - from_end);
}

/// The tiles of a row that take part, by a whole warp: 32 at once, a bit each.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ u32 seen_tiles(const Args& args, const KeepRow& row, int word) {
  const int j = word * 32 + lane_index();
  return __ballot_sync(kAllLanes,
                       j < args.predict.keep_k_tiles && sees_tile<Config, Hooks>(args, row, j));
}

}  // namespace lacuna

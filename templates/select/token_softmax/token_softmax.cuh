// `estimate` of pairs of tokens in integers, relative to the softmax of their row over the tiles
// that take part (all that the mask shows, or those that the step before kept), by wgmma (sm_90a);
// then `select`.
//
// A block takes one query tile after the other and walks along its keys once. Of each run, which is
// a tile or 64 keys of it, it stores the weight of each row: the largest exponential, or their sum.
// When the rows' sums are known, each warp finds p of 32 tiles from those, and the block decides.
//
//   predict.row_weights  [block][place of the row][run][query of the tile]  weights, in log2
//                        [block][plane][tile]  p, and the order of the tiles, where `keep` asks for
//                        it
//
// select/tokens/tokens.cuh computes the same for other targets, and walks twice.
#pragma once

#include "arch/multiply/wgmma_8bit.cuh"
#include "base/pin.cuh"
#include "select/token_softmax/token_softmax_producer.cuh"
#include "select/token_softmax/token_softmax_rows.cuh"

namespace lacuna {

/// A warpgroup that computes: 64 queries of a tile.
template <class Config, class Hooks, class Args>
class TokenSoftmaxConsumer {
  using Shape = TokenSoftmaxShape<Config>;
  using Smem = TokenSoftmaxSmem<Config>;
  using Message = typename Shape::Message;
  using Rows = TokenSoftmaxRows<Config, Hooks, Args>;
  using Sums = typename Rows::Sums;
  using Ring = RingPosition<Shape::kStages>;
  using Team = DecidingTeam<Config>;
  using Turn = SoftmaxTurn<Shape::kWarpgroups>;

 public:
  __device__ __forceinline__ TokenSoftmaxConsumer(const Args& args, const Smem& smem)
      : args_(args),
        smem_(smem),
        queries_(Shape::QueryPanel::along_rows(uniform_over_warp(
            smem.queries() +
            static_cast<u32>(warp_index() / 4 * kWarpgroupRows * Config::kHeadDim)))),
        keys_(Shape::KeyPanel::along_rows(uniform_over_warp(smem.keys(0)))) {}

  __device__ __forceinline__ void run() {
    Turn::begin();
    Ring at;
    int place = 0;
#pragma unroll 1
    for (Message message = await(at); message.row >= 0; message = await(at)) {
      auto& number = smem_.control().row[place];
      if (thread_index() == 0) number = message.row;
      const int tiles = estimate(softmax_row<Config>(args_, message.row), at, message, place);
      Team::sync();
      // Found again, instead of held in registers.
      decide(softmax_row<Config>(args_, number), tiles, place);
      if constexpr (Shape::kPlaces > 1) {
        place ^= 1;
      } else {
        Team::sync();  // what was read may be written again
      }
    }
  }

 private:
  /// The message of a slot, once its step is there.
  __device__ __forceinline__ Message await(const Ring& at) const {
    smem_.await(at);
    return smem_.control().messages[at.slot()];
  }
  __device__ __forceinline__ void release_queries() const {
    if (lane_index() == 0) Smem::barrier(smem_.control().queries_free).arrive();
  }

  /// The sums of a row become known, and the weights of its steps, from that in slot `at` on. The
  /// block's barrier comes behind it. Returns how many tiles the row sees.
  __device__ __forceinline__ int estimate(const KeepRow& row, Ring& at, const Message& message,
                                          int place) const {
    Rows rows(args_, row);
    const int tiles = message.key[0] < 0 ? 0 : take_steps(rows, at, message.tiles, place);
    smem_.release(at);
    at.advance();
    release_queries();
    rows.publish(smem_.control().log2_sum[place]);
    return tiles;
  }

  /// Takes the steps of a row, from that in slot `at` on. `at` becomes the slot of the last one,
  /// which is not released yet. Returns how many tiles the row sees.
  __device__ __forceinline__ int take_steps(Rows& rows, Ring& at, int tiles, int place) const {
    Sums sums;
    float* const stored = stored_weights(rows, place);
    multiply(sums, at);
    await_product(sums);
    // The next product is under way while the weights are stored, and before the loop begins again
    // it has ended. No branch leads around it, because the compiler would wait for it at once:
    // behind the last step comes its own product once more, which nobody takes.
#pragma unroll 1
    while (true) {
      Ring next = at;
      if (tiles == 0) next.advance();
      // Then the product needs no more than the end of the exponentials.
      int next_tiles = 0;
      if constexpr (Shape::kAwaitsEarly) next_tiles = await(next).tiles;
      rows.take(sums, smem_.control(), at.slot());
      if constexpr (!Shape::kAwaitsEarly) next_tiles = await(next).tiles;
      multiply(sums, next);
      store(rows, at.slot(), stored);
      if (tiles == 0) smem_.release(at);
      await_product(sums);
      if (tiles != 0) return tiles;
      at = next;
      tiles = next_tiles;
    }
  }

  __device__ __forceinline__ static void await_product(Sums& sums) {
    wgmma_wait<0>();
    fence_accumulator(sums[0]);
    fence_accumulator(sums[1]);
  }

  /// Where the lane stores weights of the row's first run. Pinned, because the compiler would work
  /// it out in every step, and there the next product waits.
  __device__ __forceinline__ float* stored_weights(const Rows& rows, int place) const {
    float* first = weights_of_row(place) + rows.in_tile(0);
    pin(first);
    return first;
  }

  /// The weights of the step in a slot, by run and row.
  __device__ __forceinline__ void store(const Rows& rows, u32 slot, float* first) const {
    const auto stored = rows.share_weights();
#pragma unroll
    for (int n = 0; n < stored.kCount; ++n) {
      const int key = smem_.control().messages[slot].key[stored.run(n)];
      if (key >= args_.attend.n_k) continue;
      first[weights_place(key) + 8 * stored.row(n)] = stored.log2_weight[n];
    }
  }

  /// Issues the products of the warpgroup's queries with the keys in a slot, of all its parts
  /// together.
  __device__ __forceinline__ void multiply(Sums& sums, const Ring& at) const {
    const int first = static_cast<int>(at.slot()) * Shape::kKeyBytes;
    wgmma_begin();
    auto& all = reinterpret_cast<int(&)[Shape::kParts * Shape::kBlocks][4]>(sums);
#pragma unroll
    for (int step = 0; step < Config::kHeadDim / 32; ++step) {
      wgmma_from_smem_s8(all, queries_.at(Shape::QueryPanel::along_step(step)),
                         keys_.at(first + Shape::KeyPanel::along_step(step)), step != 0);
    }
    wgmma_commit();
  }

  /// By all warps that compute.
  __device__ __forceinline__ void decide(const KeepRow& row, int visible, int place) const {
    if constexpr (Shape::kOrders) {
      auto& control = smem_.control();
      float* const p = planes();
      for_each_word(row, place, [&](int, int j, bool, float p_of_tile) {
        if (j < args_.predict.keep_k_tiles) p[j] = p_of_tile;
      });
      Team::sync();
      int* const order = reinterpret_cast<int*>(p + args_.predict.keep_k_tiles);
      decide_row<Config, Hooks>(args_, row, p, nullptr, order, control.order, control.select);
      Team::sync();
    } else {
      unsigned* const kept = kept_words<Config>(args_, row);
      for_each_word(row, place, [&](int word, int j, bool is_seen, float p) {
        TileValue value;
        value.p = p;
        const bool keep = is_seen && keeps_tile<Config, Hooks>(args_, row, j, value, visible);
        const u32 bits = __ballot_sync(kAllLanes, keep);
        if (lane_index() == 0) kept[word] = bits;
      });
    }
  }

  /// Calls take(word, j, is_seen, p) for each word of 32 tiles that is the warp's; j: the lane's
  /// tile, with its p, which is 0 unless the row sees it.
  template <class Take>
  __device__ __forceinline__ void for_each_word(const KeepRow& row, int place,
                                                const Take& take) const {
    const float share = row_share(place);
#pragma unroll 1
    for (int word = warp_index(); word < args_.predict.keep_words; word += Shape::kWarps) {
      const u32 seen = seen_tiles<Config, Hooks>(args_, row, word);
      const float p = seen != 0 ? find_p(seen, word, place, share) : 0.0f;
      take(word, word * 32 + lane_index(), (seen >> lane_index() & 1) != 0, p);
    }
  }

  /// What the weights of each row count where they are summed: one over the rows that take part. By
  /// whole warps.
  __device__ __forceinline__ float row_share(int place) const {
    if constexpr (!Config::kSums) return 1.0f;
    int rows = 0;
#pragma unroll
    for (int r = lane_index(); r < Config::kTileQ; r += 32)
      rows += __popc(__ballot_sync(kAllLanes, smem_.control().log2_sum[place][r] < kInfinity));
    return rows > 0 ? 1.0f / static_cast<float>(rows) : 1.0f;
  }

  /// p of a word's tiles that are seen, of each in its lane; 0 of others. By a whole warp.
  ///
  /// Half a warp reads a tile, so that a request is whole lines; if lanes read tiles of their own,
  /// each would be 32. Each lane then has a part of 16 tiles, and the exchange leaves it one of
  /// them.
  __device__ __forceinline__ float find_p(u32 seen, int word, int place, float share) const {
    constexpr int kTiles = 16, kAtOnce = 4;
    const int j = word * 32 + lane_index() / kTiles * kTiles;
    const u32 of_half = seen >> lane_index() / kTiles * kTiles;
    const float* const first =
        weights_of_row(place) + weights_place(j * Config::kTileK) + lane_index() % kTiles * 4;
    float parts[kTiles];
#pragma unroll
    for (int n = 0; n < kTiles; n += kAtOnce) {
      constexpr u32 kOfBoth = ((1u << kAtOnce) - 1) * 0x10001u;
#pragma unroll
      for (int i = n; i < n + kAtOnce; ++i) parts[i] = Config::kSums ? 0.0f : -kInfinity;
      if ((seen & kOfBoth << n) == 0) continue;
#pragma unroll
      for (int i = n; i < n + kAtOnce; ++i)
        parts[i] = part_of_tile(first + i * kWeightsOfTile, j + i, (of_half >> i & 1) != 0, place);
    }
    share_parts<kTiles / 2>(parts);
    return Config::kSums ? parts[0] * share : exp2_approx(parts[0]);
  }

  /// Lanes `kLanes` apart have parts of the same tiles, twice as many. Each gives half of them
  /// away, and merges the other half with what it is given; and so on, until one is left.
  template <int kLanes>
  __device__ __forceinline__ static void share_parts(float (&parts)[2 * kLanes]) {
    const bool takes_second = (lane_index() & kLanes) != 0;
    float half[kLanes];
#pragma unroll
    for (int n = 0; n < kLanes; ++n) {
      const float first = parts[n], second = parts[n + kLanes];
      const float given = __shfl_xor_sync(kAllLanes, takes_second ? first : second, kLanes);
      const float own = takes_second ? second : first;
      half[n] = Config::kSums ? own + given : fmaxf(own, given);
    }
    if constexpr (kLanes > 1) share_parts<kLanes / 2>(half);
    parts[0] = half[0];
  }

  /// Of the tile's weights those that the lane reads: their largest, relative to the sums of their
  /// rows, or their sum.
  __device__ __forceinline__ float part_of_tile(const float* weights, int j, bool is_seen,
                                                int place) const {
    const float* const sums = smem_.control().log2_sum[place] + lane_index() % 16 * 4;
    float largest = -kInfinity, sum = 0.0f;
#pragma unroll
    for (int at = 0; at < kWeightsOfTile; at += 64) {
      const int key = j * Config::kTileK + at / Config::kTileQ * Shape::kRunKeys;
      float4 x = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
      // Of a run past the end there are no weights.
      if (is_seen && (Shape::kRunsOfTile == 1 || key < args_.attend.n_k))
        x = *reinterpret_cast<const float4*>(weights + at);
      const float4 all = *reinterpret_cast<const float4*>(sums + at % Config::kTileQ);
      if constexpr (Config::kSums) {
        sum += (probability(x.x, all.x) + probability(x.y, all.y)) +
               (probability(x.z, all.z) + probability(x.w, all.w));
      } else {
        largest =
            fmaxf(largest, fmaxf(fmaxf(x.x - all.x, x.y - all.y), fmaxf(x.z - all.z, x.w - all.w)));
      }
    }
    return Config::kSums ? sum : largest;
  }

  /// Of a row that takes no part there is none, whatever its weight.
  __device__ __forceinline__ static float probability(float log2_weight, float log2_sum) {
    return log2_sum < kInfinity ? exp2_approx(log2_weight - log2_sum) : 0.0f;
  }

  /// Where those of the run that begins at `key` are among those of the row.
  __device__ __forceinline__ static int weights_place(int key) {
    return static_cast<int>(static_cast<u32>(key) / Shape::kRunKeys * Config::kTileQ);
  }
  /// Of the block, in that place.
  __device__ __forceinline__ float* weights_of_row(int place) const {
    return args_.predict.row_weights +
           (static_cast<long long>(scratch()) * Shape::kPlaces + place) * weights_of_place();
  }
  /// p and the order of the tiles, of the block.
  __device__ __forceinline__ float* planes() const {
    constexpr int kPlanes = softmax_planes(Config::kOrdersTiles);
    return args_.predict.row_weights +
           static_cast<long long>(args_.predict.softmax_blocks) * Shape::kPlaces *
               weights_of_place() +
           static_cast<long long>(scratch()) * kPlanes * scratch_tiles();
  }
  __device__ __forceinline__ int scratch() const {
    return has_sequences<Config>() ? smem_.control().scratch : block_index();
  }
  __device__ __forceinline__ int weights_of_place() const {
    return scratch_tiles() * kWeightsOfTile;
  }
  /// For which there is scratch. Blocks of all sequences share it, so that it is laid out for the
  /// longest one.
  __device__ __forceinline__ int scratch_tiles() const {
    if constexpr (has_sequences<Config>()) return ceil_div(args_.predict.k_padded, Config::kTileK);
    return args_.predict.keep_k_tiles;
  }
  static constexpr int kWeightsOfTile = Shape::kRunsOfTile * Config::kTileQ;
  static_assert(kWeightsOfTile % 64 == 0);

  const Args& args_;
  const Smem smem_;
  const OperandDescriptor queries_;  ///< of the warpgroup
  const OperandDescriptor keys_;     ///< of the ring's first slot
};

/// Of sequences there is as much scratch as blocks can run at once, though the grid has blocks for
/// each sequence. A block takes what is free, one of its own first, and gives it back in the end.
/// By one thread.
template <class Args>
__device__ __forceinline__ int take_scratch(const Args& args) {
  const int count = args.predict.softmax_blocks;
  int n = (args.sequences.entry + block_index()) % count;
  while (!take_if_free(args.predict.next_estimate + n)) n = n + 1 < count ? n + 1 : 0;
  return n;
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_token_softmax(const Args& args) {
  extern __shared__ __align__(1024) unsigned char token_softmax_smem[];
  using Shape = TokenSoftmaxShape<Config>;
  if (is_beyond<Config>(block_index(), args.attend.n_h * args.predict.keep_q_tiles)) return;
  const TokenSoftmaxSmem<Config> smem{token_softmax_smem};
  if (thread_index() < Shape::kStages) smem.init_slot(thread_index());
  if (thread_index() == 0) smem.barrier(smem.control().queries_free).init(Shape::kWarps);
  if constexpr (has_sequences<Config>()) {
    if (thread_index() == 0) smem.control().scratch = take_scratch(args);
  }
  fence_mbarrier_init();
  __syncthreads();
  if (warp_index() < Shape::kWarps) {
    TokenSoftmaxConsumer<Config, Hooks, Args>(args, smem).run();
  } else {
    TokenSoftmaxProducer<Config, Hooks, Args>(args, smem).run();
  }
  if constexpr (has_sequences<Config>()) {
    __syncthreads();
    if (thread_index() == 0) give_back(args.predict.next_estimate + smem.control().scratch);
  }
}

}  // namespace lacuna

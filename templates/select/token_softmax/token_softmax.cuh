// `estimate` of pairs of tokens in integers, relative to the softmax of their row over the tiles
// that take part (all that the mask shows, or those that the step before kept), by wgmma (sm_90a);
// then `select`.
//
// A block takes one query tile after the other and walks along its keys once. Of each run, which is
// a tile or 64 keys of it, it stores the weight of each row: the largest exponential, or their sum.
// When the rows' sums are known, one thread finds p of a tile from those, and the block decides.
//
//   predict.scores  [block][place of the row][run][query of the tile]  weights, in log2
//                   [block][plane][tile]  p, and the order of the tiles, where `keep` asks for it
//
// select/tokens/tokens.cuh computes the same for other targets, and walks twice.
#pragma once

#include "arch/multiply/wgmma_8bit.cuh"
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

 public:
  __device__ __forceinline__ TokenSoftmaxConsumer(const Args& args, const Smem& smem)
      : args_(args),
        smem_(smem),
        queries_(Shape::QueryPanel::along_rows(uniform_over_warp(
            smem.queries() +
            static_cast<u32>(warp_index() / 4 * kWarpgroupRows * Config::kHeadDim)))),
        keys_(Shape::KeyPanel::along_rows(uniform_over_warp(smem.keys(0)))) {}

  __device__ __forceinline__ void run() {
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
    multiply(sums, at);
    await_product(sums);
    // The next product is under way while the weights are stored, and before the loop begins again
    // it has ended. No branch leads around it, because the compiler would wait for it at once:
    // behind the last step comes its own product once more, which nobody takes.
#pragma unroll 1
    while (true) {
      rows.take(sums, smem_.control(), at.slot());
      Ring next = at;
      if (tiles == 0) next.advance();
      const int next_tiles = await(next).tiles;
      multiply(sums, next);
      store(rows, at.slot(), place);
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

  /// The weights of the step in a slot, by run and row.
  __device__ __forceinline__ void store(const Rows& rows, u32 slot, int place) const {
    const auto stored = rows.share_weights();
    float* const of_row = weights_of_row(place);
#pragma unroll
    for (int n = 0; n < stored.kCount; ++n) {
      const int key = smem_.control().messages[slot].key[stored.run(n)];
      if (key >= args_.attend.n_k) continue;
      of_row[weights_place(key) + rows.in_tile(stored.row(n))] = stored.log2_weight[n];
    }
  }

  /// Issues the products of the warpgroup's queries with the keys in a slot: of each part by
  /// itself, because an instruction cannot have more accumulators than a thread has registers at
  /// the start.
  __device__ __forceinline__ void multiply(Sums& sums, const Ring& at) const {
    const int first = static_cast<int>(at.slot()) * Shape::kKeyBytes;
    wgmma_begin();
#pragma unroll
    for (int part = 0; part < Shape::kParts; ++part) {
#pragma unroll
      for (int step = 0; step < Config::kHeadDim / 32; ++step) {
        const int place = Shape::KeyPanel::along_step(step, part * Shape::kPartKeys);
        wgmma_from_smem_s8(sums[part], queries_.at(Shape::QueryPanel::along_step(step)),
                           keys_.at(first + place), step != 0);
      }
    }
    wgmma_commit();
  }

  /// By all warps that compute.
  __device__ __forceinline__ void decide(const KeepRow& row, int visible, int place) const {
    if constexpr (Shape::kOrders) {
      auto& control = smem_.control();
      float* const p = planes();
      const float share = row_share(place);
#pragma unroll 1
      for (int j = thread_index(); j < args_.predict.keep_k_tiles; j += Shape::kConsumers)
        p[j] = sees_tile<Config, Hooks>(args_, row, j) ? find_p(j, place, share) : 0.0f;
      Team::sync();
      int* const order = reinterpret_cast<int*>(p + args_.predict.keep_k_tiles);
      decide_row<Config, Hooks>(args_, row, p, nullptr, order, control.order, control.select);
      Team::sync();
    } else {
      decide_by_words(row, visible, place);
    }
  }

  /// A warp decides 32 tiles, a word of the kept bits, a lane one of them.
  __device__ __forceinline__ void decide_by_words(const KeepRow& row, int visible,
                                                  int place) const {
    unsigned* const kept = kept_words<Config>(args_, row);
    const float share = row_share(place);
#pragma unroll 1
    for (int word = warp_index(); word < args_.predict.keep_words; word += Shape::kWarps) {
      bool keep = false;
      if ((seen_tiles<Config, Hooks>(args_, row, word) >> lane_index() & 1) != 0) {
        const int j = word * 32 + lane_index();
        TileValue value;
        value.p = find_p(j, place, share);
        keep = keeps_tile<Config, Hooks>(args_, row, j, value, visible);
      }
      const u32 bits = __ballot_sync(kAllLanes, keep);
      if (lane_index() == 0) kept[word] = bits;
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

  /// p of tile j of the row: the largest weight, or their sum.
  __device__ __forceinline__ float find_p(int j, int place, float share) const {
    const float* const of_tile = weights_of_row(place) + weights_place(j * Config::kTileK);
    const auto& log2_sum = smem_.control().log2_sum[place];
    float largest = -kInfinity, sum = 0.0f;
#pragma unroll 1
    for (int run = 0; run < Shape::kRunsOfTile; ++run) {
#pragma unroll 8
      for (int r = 0; r < Config::kTileQ; r += 4) {
        const float4 x = *reinterpret_cast<const float4*>(of_tile + run * Config::kTileQ + r);
        const float4 all = *reinterpret_cast<const float4*>(&log2_sum[r]);
        if constexpr (Config::kSums) {
          sum += probability(x.x, all.x) + probability(x.y, all.y) + probability(x.z, all.z) +
                 probability(x.w, all.w);
        } else {
          largest = fmaxf(largest,
                          fmaxf(fmaxf(x.x - all.x, x.y - all.y), fmaxf(x.z - all.z, x.w - all.w)));
        }
      }
    }
    return Config::kSums ? sum * share : exp2_approx(largest);
  }

  /// Of a row that takes no part there is none, whatever its weight.
  __device__ __forceinline__ static float probability(float log2_weight, float log2_sum) {
    return log2_sum < kInfinity ? exp2_approx(log2_weight - log2_sum) : 0.0f;
  }

  /// Where those of the run that begins at `key` are among those of the row.
  __device__ __forceinline__ static int weights_place(int key) {
    return key / Shape::kRunKeys * Config::kTileQ;
  }
  /// Of the block, in that place.
  __device__ __forceinline__ float* weights_of_row(int place) const {
    return args_.predict.scores +
           (static_cast<long long>(block_index()) * Shape::kPlaces + place) * weights_of_place();
  }
  /// p and the order of the tiles, of the block.
  __device__ __forceinline__ float* planes() const {
    constexpr int kPlanes = softmax_planes(Config::kOrdersTiles);
    return args_.predict.scores +
           static_cast<long long>(gridDim.x) * Shape::kPlaces * weights_of_place() +
           static_cast<long long>(block_index()) * kPlanes * args_.predict.keep_k_tiles;
  }
  __device__ __forceinline__ int weights_of_place() const {
    return args_.predict.keep_k_tiles * (Shape::kRunsOfTile * Config::kTileQ);
  }
  const Args& args_;
  const Smem smem_;
  const OperandDescriptor queries_;  ///< of the warpgroup
  const OperandDescriptor keys_;     ///< of the ring's first slot
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_token_softmax(const Args& args) {
  extern __shared__ __align__(1024) unsigned char token_softmax_smem[];
  using Shape = TokenSoftmaxShape<Config>;
  const TokenSoftmaxSmem<Config> smem{token_softmax_smem};
  if (thread_index() < Shape::kStages) smem.init_slot(thread_index());
  if (thread_index() == 0) smem.barrier(smem.control().queries_free).init(Shape::kWarps);
  fence_mbarrier_init();
  __syncthreads();
  if (warp_index() < Shape::kWarps) {
    TokenSoftmaxConsumer<Config, Hooks, Args>(args, smem).run();
  } else {
    TokenSoftmaxProducer<Config, Hooks, Args>(args, smem).run();
  }
}

}  // namespace lacuna

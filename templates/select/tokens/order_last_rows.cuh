// The order of a head's tiles by descending p, ties by index, of an estimate from its last rows
// (last_rows.cuh). There are few heads, so kOrderShares blocks take a share of the tiles each:
//
//   order_shares   a share by itself, and the keys of its tiles along its order
//   order          the place of each tile: that in its share, and how many tiles of each other
//   share
//                  go before it
#pragma once

#include "select/keep/select.cuh"

namespace lacuna {

/// A block's share, and where its head's numbers lie in predict.scores.
template <class Config>
struct OrderShare {
  int tiles, size;  ///< of the head, of a share but the last ones
  int number;
  float* p;
  int *order, *share_order;  ///< share_order: numbers of tiles within the share
  u32* keys;                 ///< along share_order

  template <class Args>
  __device__ __forceinline__ OrderShare(const Args& args, int head, int share)
      : tiles(args.predict.keep_k_tiles), size(ceil_div(tiles, kOrderShares)), number(share) {
    const int b = head / args.attend.n_h, h = head - b * args.attend.n_h;
    const auto plane = [&](int n) { return last_rows_plane<Config>(args, b, h, n); };
    p = plane(0);
    order = reinterpret_cast<int*>(plane(2)), share_order = reinterpret_cast<int*>(plane(3));
    keys = reinterpret_cast<u32*>(plane(4));
  }

  __device__ __forceinline__ int first() const { return number * size; }
  __device__ __forceinline__ int count_of(int share) const {
    return clamp_to(tiles - share * size, size);
  }

 private:
  __device__ __forceinline__ static int clamp_to(int count, int most) {
    return larger(0, smaller(count, most));
  }
};

/// body(share) for the block's share, if its head is one of the launch.
template <class Config, class Args, class Body>
__device__ __forceinline__ void on_order_share(const Args& args, Body body) {
  const int head = block_index() / kOrderShares;
  if (is_beyond<Config>(head, args.attend.n_h)) return;
  body(OrderShare<Config>(args, head, block_index() - head * kOrderShares));
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void order_shares(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  constexpr int kThreads = Config::kThreads;
  using Scratch = OrderScratch<kThreads / 32>;
  using Team = BlockTeam<kThreads>;
  // Rounds wait for memory, so a share lies in shared memory if it has room there.
  constexpr int kMostTiles = (Config::kSmemBytes - static_cast<int>(sizeof(Scratch))) / 12;
  static_assert(kMostTiles > 0);
  auto& scratch = *reinterpret_cast<Scratch*>(block_smem);
  on_order_share<Config>(args, [&](const OrderShare<Config>& share) {
    const int count = share.count_of(share.number);
    const float* p = share.p + share.first();
    int* const order = share.share_order + share.first();
    u32* const keys = share.keys + share.first();
    if (share.size > kMostTiles) {
      order_tiles<Team>(p, count, order, reinterpret_cast<int*>(keys), scratch);
#pragma unroll 1
      for (int n = thread_index(); n < count; n += kThreads) keys[n] = descending_key(p[order[n]]);
      return;
    }
    auto* const own_p = reinterpret_cast<float*>(block_smem + sizeof(Scratch));
    auto* const own_order = reinterpret_cast<int*>(own_p + kMostTiles);
#pragma unroll 4
    for (int n = thread_index(); n < count; n += kThreads) own_p[n] = p[n];
    Team::sync();
    order_tiles<Team>(own_p, count, own_order, own_order + kMostTiles, scratch);
#pragma unroll 1
    for (int n = thread_index(); n < count; n += kThreads) {
      order[n] = own_order[n];
      keys[n] = descending_key(own_p[own_order[n]]);
    }
  });
}

/// Tiles of each other share that go before tile n of the order of `share`; `keys`: of the head.
template <class Config>
__device__ __forceinline__ int count_of_others_before(const OrderShare<Config>& share,
                                                      const u32* keys, int n) {
  const u32 key = keys[share.first() + n];
  int widest = 1;  // a power of two
  while (2 * widest <= share.size) widest *= 2;
  int before[kOrderShares] = {};
#pragma unroll 1
  for (int step = widest; step > 0; step /= 2) {
#pragma unroll
    for (int s = 0; s < kOrderShares; ++s) {
      const int next = before[s] + step;
      if (s == share.number || next > share.count_of(s)) continue;
      const u32 other = keys[s * share.size + next - 1];
      if (other < key || (other == key && s < share.number)) before[s] = next;
    }
  }
  int all = 0;
#pragma unroll
  for (int s = 0; s < kOrderShares; ++s) all += before[s];
  return all;
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void order_last_rows(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  constexpr int kThreads = Config::kThreads, kMostKeys = Config::kSmemBytes / 4;
  on_order_share<Config>(args, [&](const OrderShare<Config>& share) {
    const auto place_all = [&](const u32* keys) {
#pragma unroll 1
      for (int n = thread_index(); n < share.count_of(share.number); n += kThreads)
        share.order[n + count_of_others_before(share, keys, n)] =
            share.first() + share.share_order[share.first() + n];
    };
    if (share.tiles > kMostKeys) return place_all(share.keys);
    auto* const keys = reinterpret_cast<u32*>(block_smem);
#pragma unroll 4
    for (int n = thread_index(); n < share.tiles; n += kThreads) keys[n] = share.keys[n];
    sync_threads<kThreads, 0>();
    place_all(keys);
  });
}

}  // namespace lacuna

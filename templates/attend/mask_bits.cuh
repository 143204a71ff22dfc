// Masks with conditions on the distance q - k, the key or the query alone, besides ranges of keys
// (compiler/expr/parts/mask_parts.hpp), on a lane's accumulators. Of a warp's 16 queries and 128
// keys there are 143 distances and 128 keys: the lanes ask for them in turn, five and four each,
// and votes make words of the answers. Operators of the mask join the words of its conditions, and
// a score costs the test of its bit.
//
// Of distances, counted from that of the warp's last query and first key on, a lane of row g and
// columns c and c + 1 wants, of row g + 8 and block n of keys, 7 - g + c + 8 * n and the next; of
// row g those of the block after. Of keys it wants c + 8 * n and the next. Votes moved by 7 - g +
// c, or by c, have them at the same places for all lanes.
#pragma once

#include "arch/warp.cuh"
#include "attend/key_ranges.cuh"
#include "base/constant.cuh"
#include "base/ints.cuh"
#include "base/mask_pair.cuh"
#include "base/pin.cuh"
#include "pipeline/lane_rows.cuh"

namespace lacuna {

/// Two bits of each of kBlocks blocks of 8 keys or distances, in order.
template <int kBlocks>
struct BlockBits {
  static constexpr int kWords = ceil_div(kBlocks, 16);
  u32 words[kWords];

  __device__ __forceinline__ static BlockBits all() {
    BlockBits bits;
#pragma unroll
    for (u32& word : bits.words) word = ~0u;
    return bits;
  }
};

/// Of votes on four blocks each, moved so that a lane wants bits 8 * n and 8 * n + 1.
template <int kBlocks>
__device__ __forceinline__ BlockBits<kBlocks> bits_of_lane(
    const u32 (&votes)[ceil_div(kBlocks, 4)]) {
  BlockBits<kBlocks> bits = {};
#pragma unroll
  for (int n = 0; n < ceil_div(kBlocks, 4); ++n) {
    const u32 highest = (votes[n] & 0x03030303u) * 0x01041040u;  // the lane's, as the upper 8 bits
    bits.words[n / 4] |= highest >> 24 << n % 4 * 8;
  }
  return bits;
}

/// What conditions are asked about: a lane's two rows, and its keys from k on.
template <class Hooks, class Args, class Lane>
struct MaskQuestion {
  const Args& args;
  const Lane& lane;
  int k, b;
  typename Hooks::ConditionParts parts;

  __device__ __forceinline__ MaskQuestion(const Args& of, const Lane& rows, int first_key,
                                          int entry)
      : args(of),
        lane(rows),
        k(first_key),
        b(entry),
        parts(Hooks::condition_parts(of, rows.h(0), entry)) {}

  template <int kNumber>
  __device__ __forceinline__ bool of_distance(int key) const {
    return Hooks::mask_of_distance(args, Constant<kNumber>(), parts, lane.q(0), key, lane.h(0), b);
  }
  template <int kNumber>
  __device__ __forceinline__ bool of_key(int key) const {
    return Hooks::mask_of_key(args, Constant<kNumber>(), parts, lane.q(0), key, lane.h(0), b);
  }
  template <int kNumber>
  __device__ __forceinline__ bool of_query(int r) const {
    return Hooks::mask_of_query(args, Constant<kNumber>(), parts, lane.q(r), k, lane.h(r), b);
  }
};

/// A condition on the distance: the bits of block n of the second row are the n-th, and those of
/// the first row are of the block after. The keys at which distances are asked for may lie before
/// the first token, or behind the last.
template <int kBlocks, int kNumber, class Question>
__device__ __forceinline__ BlockBits<kBlocks + 1> distance_bits(const Question& of) {
  constexpr int kVotes = ceil_div(kBlocks + 1, 4);
  const int g = lane_index() / 4, column = lane_index() % 4 * 2;
  const int first_key = of.k - column + g - (kWarpRows - 1) + lane_index();
  u32 asked[kVotes + 1];
#pragma unroll
  for (int n = 0; n < kVotes; ++n)
    asked[n] = __ballot_sync(kAllLanes, of.template of_distance<kNumber>(first_key + n * 32));
  asked[kVotes] = 0;
  u32 votes[kVotes];
#pragma unroll
  for (int n = 0; n < kVotes; ++n)
    votes[n] = __funnelshift_r(asked[n], asked[n + 1], kWarpRows / 2 - 1 - g + column);
  return bits_of_lane<kBlocks + 1>(votes);
}

/// A condition on the key, which may lie behind the last token.
template <int kBlocks, int kNumber, class Question>
__device__ __forceinline__ BlockBits<kBlocks> key_bits(const Question& of) {
  constexpr int kVotes = ceil_div(kBlocks, 4);
  const int column = lane_index() % 4 * 2, first_key = of.k - column + lane_index();
  u32 votes[kVotes];
#pragma unroll
  for (int n = 0; n < kVotes; ++n)
    votes[n] = __ballot_sync(kAllLanes, of.template of_key<kNumber>(first_key + n * 32)) >> column;
  return bits_of_lane<kBlocks>(votes);
}

/// Are the conditions one, on the distance? Then two scores of a lane share a bit.
template <class Hooks>
inline constexpr bool kIsDistanceCondition =
    Hooks::MaskRow::kDistances == 1 && Hooks::MaskRow::kKeys == 0 && Hooks::MaskRow::kQueries == 0;

/// What conditions say of a lane's two rows.
template <class Hooks, int kBlocks, bool kOfDistance = kIsDistanceCondition<Hooks>>
struct MaskBits {
  BlockBits<kBlocks> rows[2];
  __device__ __forceinline__ static MaskBits all() {
    return {{BlockBits<kBlocks>::all(), BlockBits<kBlocks>::all()}};
  }
};
template <class Hooks, int kBlocks>
struct MaskBits<Hooks, kBlocks, true> {
  BlockBits<kBlocks + 1> of_distance;
  __device__ __forceinline__ static MaskBits all() { return {BlockBits<kBlocks + 1>::all()}; }
};

/// Of one condition after the other: words of a lane's two rows.
template <class Hooks, int kBlocks>
using RowWords = typename Hooks::MaskWords[2][BlockBits<kBlocks>::kWords];

template <class Hooks, int kBlocks, int kNumber = 0, class Question>
__device__ __forceinline__ void ask_distances(RowWords<Hooks, kBlocks>& words, const Question& of) {
  if constexpr (kNumber < Hooks::MaskRow::kDistances) {
    const auto bits = distance_bits<kBlocks, kNumber>(of);
#pragma unroll
    for (int w = 0; w < BlockBits<kBlocks>::kWords; ++w) {
      const u32 after = w + 1 < decltype(bits)::kWords ? bits.words[w + 1] : 0;
      words[0][w].distance[kNumber] = __funnelshift_r(bits.words[w], after, 2);
      words[1][w].distance[kNumber] = bits.words[w];
    }
    ask_distances<Hooks, kBlocks, kNumber + 1>(words, of);
  }
}
template <class Hooks, int kBlocks, int kNumber = 0, class Question>
__device__ __forceinline__ void ask_keys(RowWords<Hooks, kBlocks>& words, const Question& of) {
  if constexpr (kNumber < Hooks::MaskRow::kKeys) {
    const auto bits = key_bits<kBlocks, kNumber>(of);
#pragma unroll
    for (int w = 0; w < BlockBits<kBlocks>::kWords; ++w)
      words[0][w].key[kNumber] = words[1][w].key[kNumber] = bits.words[w];
    ask_keys<Hooks, kBlocks, kNumber + 1>(words, of);
  }
}
template <class Hooks, int kBlocks, int kNumber = 0, class Question>
__device__ __forceinline__ void ask_queries(RowWords<Hooks, kBlocks>& words, const Question& of) {
  if constexpr (kNumber < Hooks::MaskRow::kQueries) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool counts = of.template of_query<kNumber>(r);
#pragma unroll
      for (int w = 0; w < BlockBits<kBlocks>::kWords; ++w)
        words[r][w].query[kNumber] = counts ? ~0u : 0u;
    }
    ask_queries<Hooks, kBlocks, kNumber + 1>(words, of);
  }
}

/// The words of all conditions, joined.
template <class Hooks, int kBlocks, class Question>
__device__ __forceinline__ MaskBits<Hooks, kBlocks> joined_bits(const Question& of) {
  RowWords<Hooks, kBlocks> words;
  ask_distances<Hooks, kBlocks>(words, of);
  ask_keys<Hooks, kBlocks>(words, of);
  ask_queries<Hooks, kBlocks>(words, of);
  MaskBits<Hooks, kBlocks> joined;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int w = 0; w < BlockBits<kBlocks>::kWords; ++w) {
      joined.rows[r].words[w] = Hooks::mask_words(words[r][w]);
      pin(joined.rows[r].words[w]);
    }
  }
  return joined;
}

/// k: the lane's first key. They depend on no product, so they can be asked while products are
/// under way.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ MaskBits<Hooks, kBlocks> mask_bits(const Args& args, const Lane& lane,
                                                              int k, int b) {
  const MaskQuestion<Hooks, Args, Lane> question(args, lane, k, b);
  if constexpr (kIsDistanceCondition<Hooks>) {
    MaskBits<Hooks, kBlocks> bits = {distance_bits<kBlocks, 0>(question)};
    for (u32& word : bits.of_distance.words) pin(word);
    return bits;
  } else {
    return joined_bits<Hooks, kBlocks>(question);
  }
}

/// Scores that they hide get weight 0. In the order of bits, of which the compiler then makes seven
/// predicates at a time.
template <WeightKind kKind = WeightKind::kSoftmax, class Hooks, int kBlocks>
__device__ __forceinline__ void apply_mask_bits(float (*scores)[4],
                                                const MaskBits<Hooks, kBlocks, true>& bits) {
#pragma unroll
  for (int bit = 0; bit < 2 * (kBlocks + 1); ++bit) {
    const int m = bit / 2;
    const bool counts = (bits.of_distance.words[bit / 32] >> bit % 32 & 1u) != 0;
    if (m < kBlocks && !counts) scores[m][2 + bit % 2] = unseen_score<kKind>();
    if (m > 0 && !counts) scores[m - 1][bit % 2] = unseen_score<kKind>();
  }
}
template <WeightKind kKind = WeightKind::kSoftmax, class Hooks, int kBlocks>
__device__ __forceinline__ void apply_mask_bits(float (*scores)[4],
                                                const MaskBits<Hooks, kBlocks, false>& bits) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int bit = 0; bit < 2 * kBlocks; ++bit) {
      const bool counts = (bits.rows[r].words[bit / 32] >> bit % 32 & 1u) != 0;
      if (!counts) scores[bit / 2][2 * r + bit % 2] = unseen_score<kKind>();
    }
  }
}

/// Do ranges of the lane's rows leave out some of its keys from k on?
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ bool leaves_out_keys(const Args& args, const Lane& lane, int k, int b) {
  constexpr int kWordBlocks = 16;
  bool some = false;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const typename Hooks::MaskRow row = ranges_of_row<Hooks>(args, lane, r, b);
#pragma unroll
    for (int first = 0; first < kBlocks; first += kWordBlocks) {
      const u32 all = lane_keys_before(8 * smaller(kBlocks - first, kWordBlocks));
      some = some || (~keys_in_ranges(row, k + first * 8, args.attend.n_k) & all) != 0;
    }
  }
  return some;
}

/// Applies the ranges of a mask that has conditions as well. Most tiles lie inside the ranges, and
/// there is nothing to do then.
template <class Hooks, int kBlocks, WeightKind kKind = WeightKind::kSoftmax, class Args, class Lane>
__device__ __forceinline__ void apply_ranges_besides(const Args& args, float (*scores)[4],
                                                     const Lane& lane, int k, int b) {
  if (__any_sync(kAllLanes, leaves_out_keys<Hooks, kBlocks>(args, lane, k, b)))
    apply_key_ranges<Hooks, kBlocks, kKind>(args, scores, lane, k, b);
}

}  // namespace lacuna

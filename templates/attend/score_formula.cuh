// The score formula of a spec on a lane's accumulators, taken apart by the compiler
// (compiler/expr/parts/score_parts.hpp):
//
//   score = factor * core(s) + offset(k) + rest, or factor * core(s + rest) + offset(k)
//
// `factor` and the slope of `offset` belong to a row; `offset` is worked out for the first key of a
// lane, and grows evenly from there. A score that has no core and no rest costs two multiply-adds.
//
// What a rest has of the distance q - k alone, or of the key alone, the warp works out once for
// each (attend/shared_parts.cuh). Elements of tables whose places follow from row and key are read
// without working out their indices for each score (attend/score_elements.cuh).
#pragma once

#include "attend/block_loop.cuh"
#include "attend/score_elements.cuh"
#include "attend/shared_parts.cuh"
#include "base/math.cuh"
#include "base/optional_field.cuh"

namespace lacuna {

/// Of a ScoreRow: is the rest added to s, for the core?
LACUNA_OPTIONAL_FIELD(bool, rest_is_inside, kRestIsInside, false)
// Does a score take so many instructions that the formula stands in a loop
// (attend/block_loop.cuh)? And do indices of elements, where each is worked out for each score?
LACUNA_OPTIONAL_FIELD(bool, formula_is_costly, kIsCostly, false)
LACUNA_OPTIONAL_FIELD(bool, indices_are_costly, kIndicesAreCostly, false)

/// What becomes of a score: score * factor - less, of the lane's two rows.
struct ScoreUnit {
  float factor = 1.0f;
  float less[2] = {0.0f, 0.0f};
};

/// What the formula needs of a lane's two rows and keys from k on. It depends on no product, so it
/// can be worked out while these are under way.
template <class Hooks, class Lane, int kBlocks>
struct ScoreParts {
  typename Hooks::ScoreRow rows[2];
  float factor[2], slope[2], base[2];
  SharedDistances<kBlocks, kSharesDistances<typename Hooks::ScoreRow, Lane>> distances;
  SharedKeys<kBlocks, kSharesKeys<typename Hooks::ScoreRow, Lane>> keys;
};

/// The rests of a lane's scores, where they are worked out early: they do not depend on products
/// either.
template <int kBlocks, bool kExist>
struct EarlyRests {
  float at[kBlocks][4];
};
template <int kBlocks>
struct EarlyRests<kBlocks, false> {};

/// The rest of score i of block n, whose key is `key`.
template <class Hooks, class Args, class Lane, class Distances, class Keys>
__device__ __forceinline__ float score_rest_of(const Args& args,
                                               const typename Hooks::ScoreRow& row,
                                               const Distances& distances, const Keys& keys,
                                               const BlockElements& elements, const Lane& lane,
                                               int n, int i, int key, int b) {
  using Row = typename Hooks::ScoreRow;
  const int q = lane.q(i / 2), h = lane.h(i / 2);
  float of_distance = distances.of_score(n, i), of_key = keys.of_score(n, i);
  if constexpr (Row::kRestHasDistance && !kSharesDistances<Row, Lane>)
    of_distance = Hooks::score_of_distance(args, row, q, key, h, b);
  if constexpr (Row::kRestHasKey && !kSharesKeys<Row, Lane>)
    of_key = Hooks::score_of_key(args, row, q, key, h, b);
  return Hooks::score_rest(args, row, of_distance, of_key, elements.at[0][i], elements.at[1][i], q,
                           key, h, b);
}

/// The rests of all scores of a lane, whose first key is k. read(blocks, n): elements of block n.
template <class Hooks, int kBlocks, class Args, class Lane, class Read>
__device__ __forceinline__ void score_rests_by(float (&rests)[kBlocks][4], const Args& args,
                                               const ScoreParts<Hooks, Lane, kBlocks>& parts,
                                               const Lane& lane, int k, int b, const Read& read) {
  using Row = typename Hooks::ScoreRow;
  constexpr bool kOfDistance = kSharesDistances<Row, Lane>, kOfKey = kSharesKeys<Row, Lane>;
  const DistanceValues<kBlocks, kOfDistance> distances(parts.distances);
  const KeyValues<kBlocks, kOfKey> keys(parts.keys);
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
    BlockElements elements = {};
    read(elements, n);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      rests[n][i] = score_rest_of<Hooks>(args, parts.rows[i / 2], distances, keys, elements, lane,
                                         n, i, k + n * 8 + i % 2, b);
  }
}

/// The same, reading the elements as they lie.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ void score_rests(float (&rests)[kBlocks][4], const Args& args,
                                            const ScoreParts<Hooks, Lane, kBlocks>& parts,
                                            const Lane& lane, int k, int b) {
  if constexpr (Hooks::ScoreRow::kElements > 0 && Lane::kAreNeighbours) {
    using Elements = ScoreElements<Hooks, kBlocks>;
    const Elements elements(args, lane, k, b);
    const auto read = [&](auto paired) {
      score_rests_by<Hooks>(rests, args, parts, lane, k, b, [&](BlockElements& blocks, int n) {
        elements.template read<decltype(paired)::kValue != 0>(blocks, n);
      });
    };
    if (__builtin_expect(!__any_sync(kAllLanes, !elements.are_inside()), true)) {
      if (Elements::kHasPairs && !__any_sync(kAllLanes, !elements.are_paired())) {
        read(Constant<true>{});
      } else {
        read(Constant<false>{});
      }
      return;
    }
  }
  if constexpr (indices_are_costly<typename Hooks::ScoreRow>()) {
    using Row = typename Hooks::ScoreRow;
    const DistancesInTurn<kBlocks, kSharesDistances<Row, Lane>> distances(parts.distances);
    const KeysInTurn<kBlocks, kSharesKeys<Row, Lane>> keys(parts.keys);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) rests[n][i] = 0.0f;
    }
    for_each_group<kBlocks, 1>(rests, [&](float(*block)[4], int n) {
      BlockElements elements = {};
      read_by_indices<Hooks>(elements, args, lane, k + n * 8, b);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        block[0][i] = score_rest_of<Hooks>(args, parts.rows[i / 2], distances, keys, elements, lane,
                                           n, i, k + n * 8 + i % 2, b);
    });
  } else {
    score_rests_by<Hooks>(rests, args, parts, lane, k, b, [&](BlockElements& blocks, int n) {
      read_by_indices<Hooks>(blocks, args, lane, k + n * 8, b);
    });
  }
}

template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ ScoreParts<Hooks, Lane, kBlocks> score_parts(const Args& args,
                                                                        const Lane& lane, int k,
                                                                        int b,
                                                                        const ScoreUnit& unit) {
  using Row = typename Hooks::ScoreRow;
  ScoreParts<Hooks, Lane, kBlocks> parts = {{Hooks::score_row(args, lane.q(0), lane.h(0), b),
                                             Hooks::score_row(args, lane.q(1), lane.h(1), b)},
                                            {},
                                            {},
                                            {},
                                            {},
                                            {}};
  if constexpr (kSharesDistances<Row, Lane>)
    parts.distances = shared_distances<Hooks, kBlocks>(args, parts.rows[0], lane, k, b);
  if constexpr (kSharesKeys<Row, Lane>)
    parts.keys = shared_keys<Hooks, kBlocks>(args, parts.rows[0], lane, k, b);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const Row& row = parts.rows[r];
    parts.factor[r] = row.factor * (Row::kHasCore ? unit.factor : args.attend.scale * unit.factor);
    parts.slope[r] = row.slope * unit.factor;
    parts.base[r] = -unit.less[r];
    if constexpr (Row::kHasOffset) {
      const float offset = Hooks::score_offset(args, row, lane.q(r), k, lane.h(r), b);
      parts.base[r] = fmaf(offset, unit.factor, parts.base[r]);
    }
  }
  return parts;
}

/// What becomes of the product of row r with the lane's key k + step; `rest`: of that score.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ float score_of_product(const Args& args, float product, float rest,
                                                  const ScoreParts<Hooks, Lane, kBlocks>& parts,
                                                  const Lane& lane, int r, int k, int step, int b,
                                                  const ScoreUnit& unit) {
  using Row = typename Hooks::ScoreRow;
  constexpr bool kIsInside = rest_is_inside<Row>();
  float score = product, more = parts.base[r];
  if constexpr (Row::kHasSlope) more = fmaf(static_cast<float>(step), parts.slope[r], more);
  if constexpr (Row::kHasRest && !kIsInside) more = fmaf(rest, unit.factor, more);
  if constexpr (Row::kHasCore) {
    const float scale = args.attend.scale;
    const float s = kIsInside ? fmaf(product, scale, rest) : product * scale;
    score = Hooks::score_core(args, parts.rows[r], s, lane.q(r), k + step, lane.h(r), b);
  }
  return fmaf(score, parts.factor[r], more);
}

/// A costly formula on all scores of a lane, which stands here once for two blocks. It is worked
/// out when products are there: a fraction of its time is what they would hide of it.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ void apply_costly_formula(const Args& args, float (*scores)[4],
                                                     const ScoreParts<Hooks, Lane, kBlocks>& parts,
                                                     const Lane& lane, int k, int b,
                                                     const ScoreUnit& unit) {
  using Row = typename Hooks::ScoreRow;
  constexpr int kGroup = smaller(kBlocks, 2);
  const DistancesInTurn<kBlocks, kSharesDistances<Row, Lane>> distances(parts.distances);
  const KeysInTurn<kBlocks, kSharesKeys<Row, Lane>> keys(parts.keys);
  const ElementReader<Hooks, kBlocks, Lane> reader(args, lane, k, b);
  for_each_group<kBlocks, kGroup>(scores, [&](float(*group)[4], int first) {
#pragma unroll
    for (int m = 0; m < kGroup; ++m) {
      const int n = first + m;
      BlockElements elements = {};
      if constexpr (Row::kHasRest) reader.read(elements, args, lane, k + n * 8, n, b);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int step = n * 8 + i % 2;
        float rest = 0.0f;
        if constexpr (Row::kHasRest)
          rest = score_rest_of<Hooks>(args, parts.rows[i / 2], distances, keys, elements, lane, n,
                                      i, k + step, b);
        group[m][i] = score_of_product<Hooks, kBlocks>(args, group[m][i], rest, parts, lane, i / 2,
                                                       k, step, b, unit);
      }
    }
  });
}

/// Products of a lane's two queries with kBlocks blocks of 8 keys, of which a lane has keys k + 8 *
/// n and k + 8 * n + 1 -> scores, in `unit`, of which `parts` are. `early`: their rests, if they
/// are known.
template <class Hooks, int kBlocks, bool kAreKnown, class Args, class Lane>
__device__ __forceinline__ void apply_score_formula(const Args& args, float (*scores)[4],
                                                    const ScoreParts<Hooks, Lane, kBlocks>& parts,
                                                    const EarlyRests<kBlocks, kAreKnown>& early,
                                                    const Lane& lane, int k, int b,
                                                    const ScoreUnit& unit) {
  using Row = typename Hooks::ScoreRow;
  if constexpr (formula_is_costly<Row>()) {
    apply_costly_formula<Hooks, kBlocks>(args, scores, parts, lane, k, b, unit);
  } else {
    float rests[kBlocks][4];
    if constexpr (Row::kHasRest && !kAreKnown) score_rests<Hooks>(rests, args, parts, lane, k, b);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (kAreKnown) rests[n][i] = early.at[n][i];
        scores[n][i] = score_of_product<Hooks, kBlocks>(args, scores[n][i], rests[n][i], parts,
                                                        lane, i / 2, k, n * 8 + i % 2, b, unit);
      }
    }
  }
}

template <class Hooks, int kBlocks, class Args, class Lane, bool kAreKnown = false>
__device__ __forceinline__ void apply_score_formula(
    const Args& args, float (*scores)[4], const Lane& lane, int k, int b,
    const ScoreUnit& unit = {}, const EarlyRests<kBlocks, kAreKnown>& early = {}) {
  const auto parts = score_parts<Hooks, kBlocks>(args, lane, k, b, unit);
  apply_score_formula<Hooks, kBlocks>(args, scores, parts, early, lane, k, b, unit);
}

}  // namespace lacuna

// The rows of a prepare block as integers, and the scales of their groups.
#pragma once

#include "prepare/rows.cuh"
#include "quantise/divide.cuh"
#include "quantise/groups.cuh"

namespace lacuna {

/// Per row, unless said.
template <class Layout>
struct IntegersSmem {
  float largest[Layout::kRows];  ///< magnitude; NaN and infinity left out
  float largest_of_warp[Layout::kWarps];
  Divisor divisor[Layout::kRows];  ///< of the row's group
};

template <class Config, class Args>
class PrepareIntegers {
  static constexpr bool kIsQuery = Config::kIsQuery;
  static constexpr int kHeadDim = Config::kHeadDim;
  using Rows = PrepareRows<Config, Args>;
  using Layout = typename Rows::Layout;
  using PerPass = typename Rows::PerPass;
  using Groups = QuantGroups<Config::kGroup, kIsQuery, Config::kTile>;
  using EstimateGroups = QuantGroups<Config::kEstimateGroup, kIsQuery, Config::kEstimateTile>;

 public:
  using Smem = IntegersSmem<Layout>;

  __device__ __forceinline__ PrepareIntegers(Smem& smem) : smem_(smem), warp_(warp_index()) {}

  /// After a barrier behind tell_largest.
  __device__ __forceinline__ void write(Rows& rows) {
    const PrepareSide& side = rows.side();
    if constexpr (Config::kBits != 0) {
      rows.forget();
      quantise<Groups>(rows, side.values, side.scale, side.groups, integer_range(Config::kBits));
    }
    if constexpr (Config::kEstimateBits != 0) {
      rows.forget();
      quantise<EstimateGroups>(rows, side.estimate_values, side.estimate_scale,
                               side.estimate_groups, integer_range(Config::kEstimateBits));
    }
  }

  __device__ __forceinline__ void tell_largest(const Rows& rows, PerPass& largest) {
    const auto larger = [](float a, float b) { return fmaxf(a, b); };
    float of_lane = largest[0];
#pragma unroll
    for (int pass = 1; pass < Layout::kPasses; ++pass) of_lane = fmaxf(of_lane, largest[pass]);
    const float of_warp = warp_reduce(of_lane, larger);
    if (lane_index() == 0) smem_.largest_of_warp[warp_] = of_warp;
    if constexpr (measures_each_row()) {
      const float of_row = Layout::reduce_rows(largest, larger);
      smem_.largest[rows.row_of(Layout::own_pass())] = of_row;
    }
  }

 private:
  /// Groups of all rows of one warp or of several: no row needs a scale of its own.
  template <class G>
  static constexpr bool kSpansWarps = !G::kIsThread && G::kTokens % Layout::kRowsPerWarp == 0;
  static constexpr bool measures_each_row() {
    bool each_row = false;
    if constexpr (Config::kBits != 0) each_row |= !kSpansWarps<Groups>;
    if constexpr (Config::kEstimateBits != 0) each_row |= !kSpansWarps<EstimateGroups>;
    return each_row;
  }

  template <class G>
  __device__ __forceinline__ void quantise(Rows& rows, signed char* values, float* scales,
                                           int groups, float range) {
    if constexpr (kSpansWarps<G>) {
      const float largest = largest_of_group<G>();
      const float scale = scale_of(largest, range);
      write_scale<G>(rows, scales, groups, scale);
      const Divisor divisor(scale);
      bool is_settled = false;
      if (!divisor.is_tiny()) {
        if constexpr (Config::kSmooth) {
          const BracketRounding rounding(divisor);
          is_settled = write_values<BracketRounding>(rows, values, [&](int) { return rounding; });
        } else {
          const ElementRounding rounding(divisor, largest, range);
          is_settled = write_values<ElementRounding>(rows, values, [&](int) { return rounding; });
        }
      }
      if (is_settled) return;
      rows.forget();
      write_values<QuotientRounding>(rows, values, [&](int) { return QuotientRounding{divisor}; });
    } else {
      find_scales<G>(rows, scales, groups, range);
      write_values<QuotientRounding>(rows, values, [&](int pass) {
        return QuotientRounding{smem_.divisor[rows.row_of(pass)]};
      });
    }
  }

  template <class G>
  static constexpr int kWarpsOfGroup = G::kTokens / Layout::kRowsPerWarp;

  /// Of the group that this warp's rows belong to.
  template <class G>
  __device__ __forceinline__ float largest_of_group() const {
    const int first = warp_ - warp_ % kWarpsOfGroup<G>;
    float largest = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kWarpsOfGroup<G>; ++warp) {
      largest = fmaxf(largest, smem_.largest_of_warp[first + warp]);
    }
    return largest;
  }

  template <class G>
  __device__ __forceinline__ void write_scale(const Rows& rows, float* scales, int groups,
                                              float scale) const {
    const int group = warp_ / kWarpsOfGroup<G>, number = G::of(rows.first()) + group;
    if (lane_index() != 0 || warp_ % kWarpsOfGroup<G> != 0) return;
    if (group >= Config::kTokens / G::kTokens || number >= groups) return;
    scales[static_cast<long long>(rows.head()) * groups + number] = scale;
  }

  /// The scale of each group to `scales`, and for each row to shared memory. A few lanes share the
  /// rows of a group.
  template <class G>
  __device__ __forceinline__ void find_scales(const Rows& rows, float* scales, int groups,
                                              float range) {
    constexpr int kTeam = smaller(G::kTokens, 32);
    constexpr int kGroups = Config::kTokens / G::kTokens;
    static_assert(Config::kTokens % G::kTokens == 0);
    __syncthreads();  // divisors of an earlier call have been read
    for (int slot = thread_index(); slot < kGroups * kTeam; slot += Config::kThreads) {
      const int group = slot / kTeam;
      float largest = 0.0f;
      for (int member = slot % kTeam; member < G::kTokens; member += kTeam) {
        largest = fmaxf(largest, smem_.largest[G::token(group, member)]);
      }
#pragma unroll
      for (int lanes = 1; lanes < kTeam; lanes *= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, lanes));
      }
      const float scale = scale_of(largest, range);
      const int number = G::of(rows.first()) + group;
      if (slot % kTeam == 0 && number < groups) {
        scales[static_cast<long long>(rows.head()) * groups + number] = scale;
      }
      const Divisor divisor(scale);
      for (int member = slot % kTeam; member < G::kTokens; member += kTeam) {
        smem_.divisor[G::token(group, member)] = divisor;
      }
    }
    __syncthreads();
  }

  /// False if a rounding of this warp is in doubt.
  template <class Rounding, class RoundingOf>
  __device__ __forceinline__ bool write_values(const Rows& rows, signed char* values,
                                               const RoundingOf& rounding_of) const {
    const long long first = static_cast<long long>(rows.head()) * rows.side().padded + rows.first();
    signed char* target = values + (first + rows.row_of(0)) * kHeadDim;
    u32 doubts = 0;
#pragma unroll
    for (int pass = 0; pass < Layout::kPasses; ++pass) {
      if (!rows.is_in_block(pass)) continue;
      const Rounding rounding = rounding_of(pass);
#pragma unroll
      for (int step = 0; step < Layout::kSteps; ++step) {
        float x[8];
        rows.chunk(x, pass, step);
        *reinterpret_cast<uint2*>(target + pass * Layout::kRowsPerPass * kHeadDim +
                                  Layout::column(step)) = rounding.round(x, doubts);
      }
    }
    return !Rounding::kMayDoubt || !__any_sync(kAllLanes, doubts != 0);
  }

  Smem& smem_;
  int warp_;
};

}  // namespace lacuna

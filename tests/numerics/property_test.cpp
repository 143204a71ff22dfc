// Metamorphic properties: what must not change, or must change in a known way,
// when the input does. They need no reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/numerics/harness/harness.hpp"

namespace lacuna::numerics {
namespace {

Case property_case(const std::string& variant, int n_h = 4, int n_h_kv = 2) {
  return {variant, DType::kBF16, 64, 1, n_h, n_h_kv, 260, 260, Fill::kClustered, false};
}

Reported run(const Case& c, const Variant& variant) {
  TestKernel kernel(engine(), c);
  if (kernel.error.empty()) return run_variant(engine(), kernel, c, variant);
  Reported failed;
  failed.error = kernel.error;
  return failed;
}

Variant variant_of(const Case& c, std::uint32_t seed) {
  TestKernel kernel(engine(), c);
  EXPECT_EQ(kernel.error, "");
  return make_variant(c, kernel.tile, seed);
}

void expect_equal(const Reported& a, const Reported& b) {
  ASSERT_EQ(a.error, "");
  ASSERT_EQ(b.error, "");
  EXPECT_EQ(a.tile_mask, b.tile_mask);
  EXPECT_TRUE(a.o == b.o) << "o differs";
  EXPECT_TRUE(a.lse == b.lse) << "lse differs";
}

/// sum |a - b| / sum |b|.
double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0, error = 0;
  for (std::size_t x = 0; x < a.size(); ++x) sum += std::abs(b[x]), error += std::abs(a[x] - b[x]);
  return sum > 0 ? error / sum : error;
}

void set_param(Variant& v, const std::string& name, double value) {
  for (ParamValue& p : v.params)
    if (p.name == name) p.values = {value}, p.shape = {};
}

/// Blocks of `count` values, one for each head, in another order.
std::vector<double> with_heads(const std::vector<double>& x,
                               const std::vector<std::size_t>& heads) {
  const std::size_t count = x.size() / heads.size();
  std::vector<double> out;
  for (const std::size_t h : heads) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(h * count);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  return out;
}

/// The previous LSE of a variant that has one.
std::vector<double>* previous_lse(Variant& v) {
  return v.predictor->estimate ? &v.predictor->estimate->previous_lse : nullptr;
}

TEST(Property, PermutedHeadsGivePermutedResults) {
  for (const std::string& name : predicted_names()) {
    SCOPED_TRACE(name);
    if (name == "bigbird") continue;  // its random tiles are drawn by the number of the head
    const Case c = property_case(name, 4, 4);
    const Variant plain = variant_of(c, 1);
    const std::vector<std::size_t> heads = {2, 0, 3, 1};
    Variant moved = plain;
    moved.problem.q = with_heads(plain.problem.q, heads);
    moved.problem.k = with_heads(plain.problem.k, heads);
    moved.problem.v = with_heads(plain.problem.v, heads);
    for (ParamValue& p : moved.params)
      if (!p.shape.empty() && p.shape[0] == 4) p.values = with_heads(p.values, heads);
    if (auto* lse = previous_lse(moved)) *lse = with_heads(*lse, heads);
    Reported a = run(c, plain);
    const Reported b = run(c, moved);
    ASSERT_EQ(a.error, "");
    a.o = with_heads(a.o, heads), a.lse = with_heads(a.lse, heads);
    const std::vector<double> codes(a.tile_mask.begin(), a.tile_mask.end());
    const auto permuted = with_heads(codes, heads);
    a.tile_mask.assign(permuted.begin(), permuted.end());
    expect_equal(a, b);
  }
}

TEST(Property, SharedKeysAreRepeatedKeys) {
  for (const std::string& name : predicted_names()) {
    if (name == "shared-heads") continue;  // what they share is the point
    SCOPED_TRACE(name);
    const Case shared = property_case(name, 4, 2), repeated = property_case(name, 4, 4);
    const Variant a = variant_of(shared, 2);
    Variant b = a;
    b.problem.n_h_kv = 4;
    for (auto* x : {&b.problem.k, &b.problem.v}) {
      const std::vector<double> from = *x;
      const auto half = static_cast<std::ptrdiff_t>(from.size() / 2);
      x->clear();
      for (const std::ptrdiff_t h : {0, 0, 1, 1})
        x->insert(x->end(), from.begin() + h * half, from.begin() + (h + 1) * half);
    }
    expect_equal(run(shared, a), run(repeated, b));
  }
}

TEST(Property, ABatchIsItsEntries) {
  for (const std::string& name : predicted_names()) {
    SCOPED_TRACE(name);
    Case whole = property_case(name, 2, 1);
    whole.n_b = 3;
    const Case single = property_case(name, 2, 1);
    const Variant all = variant_of(whole, 3);
    const Reported together = run(whole, all);
    ASSERT_EQ(together.error, "");
    const auto part = [](const auto& x, std::size_t b) {
      const auto size = static_cast<std::ptrdiff_t>(x.size() / 3);
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(b) * size;
      return std::decay_t<decltype(x)>(begin, begin + size);
    };
    for (std::size_t b = 0; b < 3; ++b) {
      Variant one = all;
      one.problem.n_b = 1;
      one.problem.q = part(all.problem.q, b), one.problem.k = part(all.problem.k, b);
      one.problem.v = part(all.problem.v, b);
      if (auto* lse = previous_lse(one)) *lse = part(*lse, b);
      for (ParamValue& p : one.params)
        if (p.shape.size() > 1 && p.shape[0] == whole.n_b)
          p.shape[0] = 1, p.values = part(p.values, b);
      Reported expected;
      expected.o = part(together.o, b), expected.lse = part(together.lse, b);
      expected.tile_mask = part(together.tile_mask, b);
      expect_equal(expected, run(single, one));
    }
  }
}

TEST(Property, StridesDoNotMatterAndRunsRepeat) {
  for (const std::string& name : predicted_names()) {
    SCOPED_TRACE(name);
    const Case contiguous = property_case(name);
    Case strided = contiguous;
    strided.token_major = true;
    const Variant variant = variant_of(contiguous, 4);
    const Reported first = run(contiguous, variant);
    expect_equal(first, run(contiguous, variant));
    expect_equal(first, run(strided, variant));
  }
}

/// Values that bf16 holds exactly even after a few sums: multiples of 1/16 below 2.
void coarsen(std::vector<double>& x) {
  for (double& value : x) value = std::clamp(std::round(value * 16) / 16, -2.0, 2.0);
}

TEST(Property, AConstantAddedToAllKeysChangesNothing) {
  for (const char* name : {"sparge", "sparge-topk", "sparge-video", "similar-mass", "dilated-union",
                           "fg-attn-cached", "fg-attn-pooled", "topk-blocks"}) {
    SCOPED_TRACE(name);
    const Case c = property_case(name);
    Variant plain = variant_of(c, 5);
    coarsen(plain.problem.k);
    Variant shifted = plain;
    for (std::size_t x = 0; x < shifted.problem.k.size(); ++x)
      shifted.problem.k[x] += x % 64 % 3 == 0 ? 2 : -1;
    const Reported a = run(c, plain), b = run(c, shifted);
    ASSERT_EQ(a.error, "");
    ASSERT_EQ(b.error, "");
    const auto kept = oracle::oracle_kept(ordered_problem(plain), *plain.predictor);
    const std::vector<std::uint8_t> stable = expected_tiles(plain, kept).stable;
    std::size_t differ = 0;
    for (std::size_t x = 0; x < a.tile_mask.size(); ++x)
      differ += (a.tile_mask[x] != 0) != (b.tile_mask[x] != 0) && stable[x] != 0;
    EXPECT_EQ(differ, 0U);
    EXPECT_LT(relative_error(b.o, a.o), is_quantised(name) ? 2e-2 : 1e-2);
  }
}

TEST(Property, ValuesEnterLinearly) {
  for (const char* name : {"sale", "topk-blocks", "fg-attn-cached", "xattention", "radial"}) {
    SCOPED_TRACE(name);
    const Case c = property_case(name);
    Variant one = variant_of(c, 6), two = one, sum = one;
    two.problem.v = variant_of(c, 7).problem.v;
    coarsen(one.problem.v), coarsen(two.problem.v);
    for (std::size_t x = 0; x < sum.problem.v.size(); ++x)
      sum.problem.v[x] = one.problem.v[x] + two.problem.v[x];
    const Reported a = run(c, one), b = run(c, two), both = run(c, sum);
    ASSERT_EQ(both.error, "");
    EXPECT_EQ(a.tile_mask, both.tile_mask);
    std::vector<double> added = a.o;
    for (std::size_t x = 0; x < added.size(); ++x) added[x] += b.o[x];
    EXPECT_LT(relative_error(both.o, added), 1e-2);
  }
}

TEST(Property, EqualValuesGiveThatValue) {
  for (const std::string& name : predicted_names()) {
    SCOPED_TRACE(name);
    const Case c = property_case(name);
    Variant variant = variant_of(c, 8);
    if (variant.v_of_k) continue;  // its values are keys as well
    if (variant.problem.weighting != oracle::Weighting::kSoftmax) continue;  // no sum of 1
    set_param(variant, "lambda", -50);  // gated tiles would count in the denominator alone
    std::fill(variant.problem.v.begin(), variant.problem.v.end(), 1.25);
    const Reported got = run(c, variant);
    ASSERT_EQ(got.error, "");
    const double tolerance = variant.quantisation.v_bits == 8 ? 0.04 : 0.01;
    for (std::size_t x = 0; x < got.o.size(); ++x) {
      if (std::isinf(got.lse[x / 64])) continue;
      ASSERT_NEAR(got.o[x], 1.25, 1.25 * tolerance) << "row " << x / 64;
    }
  }
}

/// Of two settings of a parameter, the looser one keeps all that the tighter one keeps, and more.
TEST(Property, LooserParametersKeepMore) {
  struct Monotone {
    const char *variant, *param;
    double tight, loose;
  };
  for (const Monotone& m :
       {Monotone{"sparge", "tau", 0.3, 0.9}, Monotone{"sparge-topk", "ratio", 0.2, 0.7},
        Monotone{"sale", "tau", 1, 0.02}, Monotone{"topk-blocks", "blocks", 1, 2},
        Monotone{"minference-block", "blocks", 1, 3}, Monotone{"moba-blocks", "chunks", 0, 1},
        Monotone{"xattention", "tau", 0, 0.99}, Monotone{"flexprefill", "gamma", 0, 0.99},
        Monotone{"streaming", "window", 0, 200}, Monotone{"similar-mass", "tau", 0, 0.9},
        Monotone{"dilated-union", "tau", 0, 0.9}, Monotone{"fg-attn-cached", "c", 2, 0.5},
        Monotone{"fg-attn-pooled", "c", 1.5, 0.5}, Monotone{"radial", "reach", -4, 4},
        Monotone{"minference-vertical-slash", "vertical", 10, 60}}) {
    SCOPED_TRACE(m.variant);
    Case c = property_case(m.variant);
    c.n_q = c.n_k = std::string(m.variant) == "radial" ? 1000 : 450;
    Variant variant = variant_of(c, 9);
    set_param(variant, "lambda", -50), set_param(variant, "budget", 0);
    set_param(variant, "caution", 0.01), set_param(variant, "theta", -1);
    set_param(variant, "sink", 0), set_param(variant, "window", 10);
    set_param(variant, "slash", 5), set_param(variant, "frame", 200);
    set_param(variant, m.param, m.tight);
    const Reported tight = run(c, variant);
    set_param(variant, m.param, m.loose);
    const Reported loose = run(c, variant);
    ASSERT_EQ(tight.error, "");
    ASSERT_EQ(loose.error, "");
    std::size_t lost = 0, won = 0;
    for (std::size_t x = 0; x < tight.tile_mask.size(); ++x) {
      lost += tight.tile_mask[x] != 0 && loose.tile_mask[x] == 0;
      won += tight.tile_mask[x] == 0 && loose.tile_mask[x] != 0;
    }
    EXPECT_EQ(lost, 0U);
    EXPECT_GT(won, 0U);
  }
}

}  // namespace
}  // namespace lacuna::numerics

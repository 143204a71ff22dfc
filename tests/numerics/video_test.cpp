// Token orders of video: orders that the library makes, and what a Hilbert curve is for. On smooth
// fields of T x H x W tokens it makes tiles of tokens that are alike, so that their means say more
// and fewer tiles carry the mass (the sparge paper's table 4).
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "tests/numerics/harness/harness.hpp"
#include "tests/oracle/order.hpp"

namespace lacuna::numerics {
namespace {

constexpr int kT = 8, kH = 16, kW = 16, kTokens = kT * kH * kW, kD = 64, kHeads = 2;

/// The order of a spec with "permute": {`order`: [t, h, w]}; empty on an error.
std::vector<std::int32_t> library_order(const std::string& order, int t, int h, int w) {
  const std::string spec = R"({"version": 1, "name": "order", "permute": {")" + order + R"(": [)" +
                           std::to_string(t) + ", " + std::to_string(h) + ", " + std::to_string(w) +
                           "]}}";
  lacuna_compile_options options{};
  options.struct_size = sizeof options;
  options.head_dim = kD, options.dtype = LACUNA_BF16;
  lacuna_kernel* kernel = nullptr;
  std::vector<std::int32_t> out(static_cast<std::size_t>(t * h * w));
  if (lacuna_compile(engine().engine, spec.data(), spec.size(), &options, &kernel) != LACUNA_OK ||
      lacuna_token_order(kernel, out.data(), out.size()) != LACUNA_OK) {
    ADD_FAILURE() << lacuna_last_error();
    out.clear();
  }
  lacuna_kernel_destroy(kernel);
  return out;
}

TEST(Video, LoopsOverTheAxes) {
  EXPECT_EQ(library_order("row_major", 3, 4, 5), oracle::loop_order(3, 4, 5, "thw"));
  EXPECT_EQ(library_order("column_major", 3, 4, 5), oracle::loop_order(3, 4, 5, "twh"));
  EXPECT_EQ(library_order("time_major", 3, 4, 5), oracle::loop_order(3, 4, 5, "hwt"));
}

TEST(Video, TheHilbertCurveVisitsEveryTokenNearTheLast) {
  struct Size {
    int t, h, w;
  };
  for (const Size& s : {Size{1, 1, 1}, Size{4, 4, 4}, Size{8, 16, 16}, Size{3, 5, 7},
                        Size{1, 9, 20}, Size{13, 30, 45}}) {
    const auto order = library_order("hilbert", s.t, s.h, s.w);
    SCOPED_TRACE(testing::Message() << s.t << " x " << s.h << " x " << s.w);
    EXPECT_TRUE(oracle::is_permutation(order));
    EXPECT_LT(oracle::mean_step(order, s.h, s.w), 1.7);
  }
  EXPECT_EQ(oracle::mean_step(library_order("hilbert", 8, 8, 8), 8, 8), 1);
}

/// Channels of a few random waves of low frequency, the same along all axes, with a little noise.
std::vector<double> smooth_field(double offset, std::mt19937& random) {
  std::vector<double> x(static_cast<std::size_t>(kHeads * kTokens * kD));
  std::normal_distribution<double> normal;
  std::mt19937 waves(17);  // queries and keys see the same field
  std::uniform_real_distribution<double> frequency(-0.05, 0.05), phase(0, 2 * std::numbers::pi);
  for (int h = 0; h < kHeads; ++h)
    for (int c = 0; c < kD; ++c)
      for (int wave = 0; wave < 3; ++wave) {
        const double ft = frequency(waves), fh = frequency(waves), fw = frequency(waves);
        const double start = phase(waves) + offset;
        for (int n = 0; n < kTokens; ++n) {
          const int t = n / (kH * kW), y = n / kW % kH, z = n % kW;
          x[static_cast<std::size_t>((h * kTokens + n) * kD + c)] +=
              std::cos(2 * std::numbers::pi * (ft * t + fh * y + fw * z) + start);
        }
      }
  for (double& value : x) value = round_to(DType::kBF16, value + 0.1 * normal(random));
  return x;
}

struct Figures {
  double similarity = 0, density = 0, error = 0;
};

Figures measure(const std::vector<std::int32_t>& order) {
  Figures out;
  const Case c{"sparge-video", DType::kBF16,  kD,   1, kHeads, kHeads, kTokens,
               kTokens,        Fill::kNormal, false};
  TestKernel kernel(engine(), c);
  EXPECT_EQ(kernel.error, "");
  Variant v = make_variant(c, kernel.tile, 1);
  std::mt19937 random(5);
  v.problem.q = smooth_field(0, random), v.problem.k = smooth_field(0, random);
  v.problem.v = smooth_field(1, random);
  v.order = order;
  v.params = {{"tau", false, {0.9}, {}}, {"theta", false, {0.3}, {}}, {"lambda", false, {-50}, {}}};
  const oracle::Problem ordered = ordered_problem(v);
  const auto similarity =
      oracle::self_similarity(ordered.k, {}, kHeads, kTokens, kD, 64, oracle::Similarity::kCosine);
  for (const oracle::Band& tile : similarity)
    out.similarity += tile.value / static_cast<double>(similarity.size());
  const Reported got = run_variant(engine(), kernel, c, v);
  EXPECT_EQ(got.error, "");
  double visible = 0, visited = 0;
  for (std::size_t x = 0; x + 2 < got.counts.size(); x += 3)
    visible += got.counts[x], visited += got.counts[x + 1];
  out.density = visited / visible;
  out.error = compare_output(v, oracle::oracle_dense(v.problem), got, 0).rel_l1;
  return out;
}

TEST(Video, AHilbertCurveRaisesSimilarityAndSparsity) {
  const Figures hilbert = measure(library_order("hilbert", kT, kH, kW));
  std::printf("  %-13s similarity of K %.3f, sparsity %.3f, relative L1 %.4f\n", "hilbert",
              hilbert.similarity, 1 - hilbert.density, hilbert.error);
  for (const char* name : {"row_major", "column_major", "time_major"}) {
    const Figures other = measure(library_order(name, kT, kH, kW));
    std::printf("  %-13s similarity of K %.3f, sparsity %.3f, relative L1 %.4f\n", name,
                other.similarity, 1 - other.density, other.error);
    EXPECT_GT(hilbert.similarity, other.similarity) << name;
    EXPECT_LT(hilbert.density, other.density) << name;
  }
}

}  // namespace
}  // namespace lacuna::numerics

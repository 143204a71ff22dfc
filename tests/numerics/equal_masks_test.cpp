// Masks that leave the same keys visible give the same tiles and results, whatever bounds of a tile
// say of them: of one mask of each pair they say all, of the other one little or nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "tests/numerics/harness/harness.hpp"

namespace lacuna::numerics {
namespace {

constexpr int kMaskedTokens = 700, kMaskedHeadDim = 64;

/// Tokens of documents of 48, 190, 48, 190, ... tokens: the number of each token's, and where it
/// begins.
struct Documents {
  std::vector<std::int32_t> numbers, starts;

  Documents() {
    for (int first = 0, number = 0; first < kMaskedTokens; ++number) {
      const int end = std::min(first + (number % 2 == 0 ? 48 : 190), kMaskedTokens);
      for (int n = first; n < end; ++n) numbers.push_back(number * 7 % 5), starts.push_back(first);
      first = end;
    }
  }
};

std::string masked_spec(const std::string& mask, const std::string& predictor) {
  return R"({"version": 1, "name": "equal-masks", "params": {
    "doc": {"type": "i32", "shape": "[n_q]"}, "start": {"type": "i32", "shape": "[n_q]", "monotone": true},
    "chunk": {"type": "i32", "range": [1, 4096], "default": 48}},
    "attention": {"mask": ")" +
         mask + R"("}, "predictor": )" + predictor + "}";
}

std::vector<double> normal_values(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& x : values) x = normal(random);
  return values;
}

Reported run_masked(const std::string& spec) {
  Reported got;
  const CompiledKernel made =
      compile_spec(engine(), spec, options_of(DType::kBF16, kMaskedHeadDim, kMaskedHeadDim));
  got.error = made.error;
  if (!made.error.empty()) return got;
  TensorSet tensors(engine().is_cuda);
  const std::vector<std::int64_t> rows = {1, 2, kMaskedTokens, kMaskedHeadDim};
  const std::size_t count = std::size_t{2} * kMaskedTokens * kMaskedHeadDim;
  const Tensor q = tensors.upload(normal_values(count, 1), DType::kBF16, rows, false),
               k = tensors.upload(normal_values(count, 2), DType::kBF16, rows, false),
               v = tensors.upload(normal_values(count, 3), DType::kBF16, rows, false),
               o = tensors.poisoned(DType::kBF16, rows, false);
  const auto tiles = [](int tile) { return (kMaskedTokens + tile - 1) / tile; };
  const Tensor tile_mask = tensors.poisoned_u8({1, 2, tiles(made.tile.q), tiles(made.tile.k)});
  const Documents documents;
  const Tensor doc = tensors.upload_i32(documents.numbers, {kMaskedTokens}),
               start = tensors.upload_i32(documents.starts, {kMaskedTokens});
  const lacuna_param params[] = {{"doc", doc.view(), 0}, {"start", start.view(), 0}};
  lacuna_launch_args args{};
  args.struct_size = sizeof args;
  args.q = q.view(), args.k = k.view(), args.v = v.view(), args.o = o.view();
  args.tile_mask = tile_mask.view();
  args.params = params, args.params_count = std::size(params);
  args.stream = tensors.stream();
  lacuna_shape shape{sizeof(lacuna_shape), 1, 2, 2, kMaskedTokens, kMaskedTokens};
  std::size_t bytes = 0;
  lacuna_workspace_bytes(made.kernel, &shape, &bytes);
  const Tensor workspace = tensors.poisoned_u8({static_cast<std::int64_t>(bytes + 256)});
  const auto address = reinterpret_cast<std::uintptr_t>(workspace.view()->data);
  args.workspace = reinterpret_cast<void*>((address + 255) / 256 * 256);
  args.workspace_bytes = bytes;
  if (lacuna_launch(made.kernel, &args) != LACUNA_OK) got.error = lacuna_last_error();
  tensors.synchronise();
  got.o = tensors.download(o, nullptr);
  got.tile_mask = tensors.download_u8(tile_mask);
  lacuna_kernel_destroy(made.kernel);
  return got;
}

struct EqualMasks {
  const char *bounded, *other;
};

constexpr EqualMasks kEqualMasks[] = {
    {"k >= start[q] and k <= q", "start[q] == start[k] and k <= q and doc[q] == doc[k]"},
    {"abs(q - k) <= 32", "(q - k) * (q - k) <= 1024"},
    {"k >= q - q % chunk and k <= q", "k >= q // chunk * chunk and k <= q"}};

constexpr const char* kMaskedPredictors[] = {
    R"json({"tile": {"q": 64, "k": 64}, "estimate": {"q": "mean", "k": "mean"},
        "keep": "rank < 2"})json",
    R"json({"tile": {"q": 64, "k": 64}, "estimate": {"q": "last(100)", "k": "tokens",
        "reduce": "sum"}, "keep": "p > 0.06 or k1 >= q0"})json",
    R"json({"tile": {"q": 64, "k": 64}, "estimate": {"q": "tokens", "k": "tokens",
        "reduce": "sum"}, "keep": "rank < visible - 1"})json"};

TEST(EqualMasks, GiveEqualTilesAndResults) {
  for (const EqualMasks& masks : kEqualMasks) {
    for (const char* predictor : kMaskedPredictors) {
      SCOPED_TRACE(std::string(masks.other) + " " + predictor);
      const Reported bounded = run_masked(masked_spec(masks.bounded, predictor)),
                     other = run_masked(masked_spec(masks.other, predictor));
      ASSERT_EQ(bounded.error, "");
      ASSERT_EQ(other.error, "");
      EXPECT_EQ(bounded.tile_mask, other.tile_mask);
      for (std::size_t x = 0; x < other.o.size(); ++x)
        ASSERT_NEAR(bounded.o[x], other.o[x], 0.05) << "element " << x;
    }
  }
}

}  // namespace
}  // namespace lacuna::numerics

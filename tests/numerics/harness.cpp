#include "tests/numerics/harness.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace lacuna::numerics {
namespace {

constexpr double kSmallestNormal = std::numeric_limits<float>::min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

lacuna_dtype abi_dtype(DType dtype) {
  return dtype == DType::kBF16 ? LACUNA_BF16 : dtype == DType::kF16 ? LACUNA_F16 : LACUNA_F32;
}

struct Grid {
  std::int64_t q_tiles, k_tiles;
};

Grid grid_of(const Case& c, const oracle::Tiling& tiling) {
  return {(c.n_q + tiling.tile_q - 1) / tiling.tile_q, (c.n_k + tiling.tile_k - 1) / tiling.tile_k};
}

/// list_indices and list_counts of the tiles a variant lists; garbage behind each list's end.
void append_lists(const Case& c, const Variant& variant, Grid grid,
                  std::vector<std::int32_t>& indices, std::vector<std::int32_t>& counts) {
  const auto& listed = variant.tiling.listed;
  for (std::size_t row = 0; row < listed.size() / static_cast<std::size_t>(grid.k_tiles); ++row) {
    std::int32_t count = 0;
    for (std::int64_t j = 0; j < grid.k_tiles; ++j) {
      if (listed[row * static_cast<std::size_t>(grid.k_tiles) + static_cast<std::size_t>(j)] == 0)
        continue;
      // Every listed tile asks for the mask: the flag is a promise only where it is absent.
      const bool full = j * variant.tiling.tile_k + variant.tiling.tile_k - 1 <=
                        static_cast<std::int64_t>(row % static_cast<std::size_t>(grid.q_tiles)) *
                                variant.tiling.tile_q +
                            c.n_k - c.n_q;
      indices.push_back(static_cast<std::int32_t>(j) |
                        (full ? 0 : std::numeric_limits<std::int32_t>::min()));
      ++count;
    }
    counts.push_back(count);
    indices.resize((row + 1) * static_cast<std::size_t>(grid.k_tiles), 0x7abcdef0);
  }
}

}  // namespace

std::string device_under_test() {
  const char* device = std::getenv("LACUNA_TEST_DEVICE");
  return device ? device : "cpu";
}

TestEngine::TestEngine() {
  const std::string device = device_under_test();
  lacuna_engine_options options{};
  options.struct_size = sizeof options;
  options.device = device.c_str();
  if (lacuna_engine_create(&options, &engine) != LACUNA_OK) {
    std::fprintf(stderr, "%s\n", lacuna_last_error());
    std::abort();
  }
  is_cuda = device != "cpu";
}
TestEngine::~TestEngine() { lacuna_engine_destroy(engine); }

TestKernel::TestKernel(TestEngine& engine, const Case& c) {
  const std::string spec = spec_text(c);
  lacuna_compile_options options{};
  options.struct_size = sizeof options;
  options.head_dim = c.d;
  options.dtype = abi_dtype(c.dtype);
  if (lacuna_compile(engine.engine, spec.data(), spec.size(), &options, &kernel) != LACUNA_OK ||
      lacuna_prepare(kernel) != LACUNA_OK ||
      lacuna_kernel_tile(kernel, &tile_q, &tile_k) != LACUNA_OK)
    error = lacuna_last_error();
}
TestKernel::~TestKernel() { lacuna_kernel_destroy(kernel); }

Binding::Binding(bool is_cuda, const Case& c, const Variant& variant) : tensors(is_cuda) {
  const Grid grid = grid_of(c, variant.tiling);
  q = tensors.upload(variant.problem.q, c.dtype, {c.n_b, c.n_h, c.n_q, c.d}, c.token_major);
  k = tensors.upload(variant.problem.k, c.dtype, {c.n_b, c.n_h_kv, c.n_k, c.d}, c.token_major);
  v = tensors.upload(variant.problem.v, c.dtype, {c.n_b, c.n_h_kv, c.n_k, c.d}, c.token_major);
  o = tensors.poisoned(c.dtype, {c.n_b, c.n_h, c.n_q, c.d}, c.token_major);
  lse = tensors.poisoned(DType::kF32, {c.n_b, c.n_h, c.n_q}, false);
  counts = tensors.poisoned_i32({c.n_b, c.n_h, grid.q_tiles, 3});
  tile_mask = tensors.poisoned_u8({c.n_b, c.n_h, grid.q_tiles, grid.k_tiles});
  if (!variant.tiling.listed.empty()) {
    std::vector<std::int32_t> indices, lengths;
    append_lists(c, variant, grid, indices, lengths);
    list_indices = tensors.upload_i32(indices, {c.n_b, c.n_h, grid.q_tiles, grid.k_tiles});
    list_counts = tensors.upload_i32(lengths, {c.n_b, c.n_h, grid.q_tiles});
  }
  param_tensors.reserve(variant.params.size());
  for (const ParamValue& p : variant.params) {
    const bool is_number = p.shape.empty();
    if (!is_number) param_tensors.push_back(tensors.upload_param(p));
    params.push_back({p.name.c_str(), is_number ? nullptr : param_tensors.back().view(),
                      is_number ? p.values[0] : 0});
  }
  args.struct_size = sizeof args;
  args.q = q.view(), args.k = k.view(), args.v = v.view(), args.o = o.view();
  args.lse = lse.view(), args.counts = counts.view(), args.tile_mask = tile_mask.view();
  args.list_indices = list_indices.view(), args.list_counts = list_counts.view();
  args.params = params.data(), args.params_count = params.size();
  args.stream = tensors.stream();
}

void Binding::poison() {
  for (Tensor* output : {&o, &lse, &counts, &tile_mask}) tensors.poison(*output);
}

Reported Binding::collect() {
  tensors.synchronise();
  Reported out;
  out.o = tensors.download(o, &out.padding_touched);
  out.lse = tensors.download(lse, nullptr);
  out.counts = tensors.download_i32(counts);
  out.tile_mask = tensors.download_u8(tile_mask);
  return out;
}

Reported run_variant(TestEngine& engine, TestKernel& kernel, const Case& c,
                     const Variant& variant) {
  Binding binding(engine.is_cuda, c, variant);
  if (lacuna_launch(kernel.kernel, &binding.args) == LACUNA_OK) return binding.collect();
  Reported failed;
  failed.error = lacuna_last_error();
  return failed;
}

Tolerance tolerance_of(DType dtype, bool is_cuda) {
  // f32 exists on the CPU only; there the 16-bit types round nothing but the output.
  if (dtype == DType::kF32) return {1e-5, 1e-4, 1e-4};
  if (dtype == DType::kF16) return {5e-4, 1e-3, is_cuda ? 1e-3 : 1e-4};
  return {4e-3, 8e-3, is_cuda ? 1e-3 : 1e-4};
}

OutputError compare_output(const Variant& variant, const oracle::Output& expected,
                           const Reported& got, double warp_band) {
  OutputError error;
  double sum = 0, sum_error = 0, largest = 0, largest_error = 0;
  const auto d = static_cast<std::size_t>(variant.problem.d);
  for (std::size_t row = 0; row < expected.lse.size(); ++row) {
    if (expected.row_margin[row] < warp_band) continue;
    const auto same_class = [](double a, double b) {
      return std::isnan(a) == std::isnan(b) && std::isinf(a) == std::isinf(b);
    };
    if (!same_class(expected.lse[row], got.lse[row]) && error.mismatch.empty())
      error.mismatch = "lse of row " + std::to_string(row) + ": expected " +
                       std::to_string(expected.lse[row]) + ", got " + std::to_string(got.lse[row]);
    if (std::isfinite(expected.lse[row]) && std::isfinite(got.lse[row]))
      error.lse = std::max(error.lse, std::abs(expected.lse[row] - got.lse[row]) /
                                          std::max(1.0, std::abs(expected.lse[row])));
    for (std::size_t x = row * d; x < (row + 1) * d; ++x) {
      const double a = expected.o[x], b = got.o[x];
      const bool empty = expected.lse[row] == -kInfinity;
      if ((!same_class(a, b) || (empty && b != 0)) && error.mismatch.empty())
        error.mismatch = "o of row " + std::to_string(row) + ", channel " + std::to_string(x % d) +
                         ": expected " + std::to_string(a) + ", got " + std::to_string(b);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      // Below the smallest normal f32 there is nothing to be precise about; devices flush.
      const double difference = std::abs(a - b) < kSmallestNormal ? 0 : std::abs(a - b);
      sum += std::abs(a), sum_error += difference;
      largest = std::max(largest, std::abs(a));
      largest_error = std::max(largest_error, difference);
    }
  }
  error.rel_l1 = sum > 0 ? sum_error / sum : sum_error;
  error.rel_max = largest > 0 ? largest_error / largest : largest_error;
  return error;
}

namespace {

/// Stage 1. Tiles whose decision lies within `band` of its threshold may differ.
std::string check_tiles(const Case& c, const Variant& variant, const Reported& got, double band) {
  const auto expected = oracle::oracle_tiles(variant.problem, variant.tiling, variant.gate);
  std::ostringstream text;
  if (got.tile_mask.size() != expected.code.size()) return "tile mask has the wrong size";
  std::int64_t flips = 0, visited = 0, gated = 0;
  for (std::size_t x = 0; x < expected.code.size(); ++x) {
    visited += got.tile_mask[x] != 0, gated += got.tile_mask[x] == 2;
    if (got.tile_mask[x] == expected.code[x]) continue;
    const bool both_visited = got.tile_mask[x] != 0 && expected.code[x] != 0;
    if (both_visited && expected.margin[x] < band) continue;
    if (flips++ == 0)
      text << "tile " << x << ": expected " << int{expected.code[x]} << ", got "
           << int{got.tile_mask[x]} << " (margin " << expected.margin[x] << "); ";
  }
  if (flips) text << flips << " tiles differ of " << expected.code.size() << "; ";
  std::int64_t sums[3] = {0, 0, 0};
  for (std::size_t x = 0; x < got.counts.size(); ++x) sums[x % 3] += got.counts[x];
  // With lists, `visible` still counts the tiles the mask leaves visible.
  if (sums[0] != expected.visible || sums[1] != visited || sums[2] != gated)
    text << "counts: expected " << expected.visible << " visible, " << visited << " visited, "
         << gated << " gated, got " << sums[0] << ", " << sums[1] << ", " << sums[2] << "; ";
  (void)c;
  return text.str();
}

}  // namespace

std::string check_variant(const Case& c, const Variant& variant, const Reported& got,
                          bool is_cuda) {
  if (!got.error.empty()) return got.error;
  std::ostringstream text;
  if (got.padding_touched) text << "bytes between the rows of o were written; ";
  // Logits are exact products in f32; their rounding grows with their size.
  const double band = c.fill == Fill::kHuge ? 0.05 : 1e-3;
  text << check_tiles(c, variant, got, band);
  const auto expected =
      oracle::oracle_attention(variant.problem, variant.tiling, variant.gate, got.tile_mask);
  const OutputError error = compare_output(variant, expected, got, band);
  const Tolerance allowed = tolerance_of(c.dtype, is_cuda);
  text << error.mismatch;
  if (!(error.rel_l1 <= allowed.rel_l1))
    text << " rel_l1 " << error.rel_l1 << " > " << allowed.rel_l1;
  if (!(error.rel_max <= allowed.rel_max))
    text << " rel_max " << error.rel_max << " > " << allowed.rel_max;
  if (!(error.lse <= allowed.lse)) text << " lse " << error.lse << " > " << allowed.lse;
  return text.str();
}

}  // namespace lacuna::numerics

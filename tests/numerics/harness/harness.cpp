#include "tests/numerics/harness/harness.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <sstream>
#include <string_view>

#include "runtime/cpu/host_plugin.hpp"
#include "tests/oracle/access.hpp"
#include "tests/tier.hpp"

namespace lacuna::numerics {
namespace {

lacuna_dtype abi_dtype(DType dtype) {
  return dtype == DType::kBF16 ? LACUNA_BF16 : dtype == DType::kF16 ? LACUNA_F16 : LACUNA_F32;
}

constexpr std::size_t kAlignment = 256;  ///< of workspaces and masks

struct Grid {
  std::int64_t q_tiles, k_tiles;
};

Grid grid_of(const Case& c, const oracle::Tiling& tiling) {
  return {(c.n_q + tiling.tile_q - 1) / tiling.tile_q, (c.n_k + tiling.tile_k - 1) / tiling.tile_k};
}

/// Does every row of a whole tile see all of its keys?
bool is_full(const Variant& variant, int b, int h, int i, int j) {
  const oracle::Problem& p = variant.problem;
  const oracle::Tiling& t = variant.tiling;
  const oracle::TileIndex x = oracle::tile_index(p, t.tile_q, t.tile_k, b, h, i, j);
  if (x.k1 - x.k0 + 1 < t.tile_k || !variant.order.empty()) return false;
  for (int q = x.q0; q <= x.q1; ++q)
    for (int k = x.k0; k <= x.k1; ++k)
      if (!oracle::visible(p, q, k, h, b)) return false;
  return true;
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
      // A listed tile may always ask for the mask: the flag is a promise only where it is absent.
      const auto head = static_cast<int>(row / static_cast<std::size_t>(grid.q_tiles));
      const auto i = static_cast<int>(row % static_cast<std::size_t>(grid.q_tiles));
      const bool full = is_full(variant, head / c.n_h, head % c.n_h, i, static_cast<int>(j));
      indices.push_back(static_cast<std::int32_t>(j) |
                        (full ? 0 : std::numeric_limits<std::int32_t>::min()));
      ++count;
    }
    counts.push_back(count);
    indices.resize((row + 1) * static_cast<std::size_t>(grid.k_tiles), 0x7abcdef0);
  }
}

auto key_of(const Case& c) { return std::tuple(spec_text(c), c.d, c.d_v, c.dtype); }

/// What its launches' reports depend on besides: rows of a gate, and tiles of a step.
void read_steps(CompiledKernel& made) {
  const std::string info = lacuna_kernel_info_json(made.kernel);
  if (info.find(R"("scope":"warpgroup")") != std::string::npos) made.tile.gate_rows = 64;
  constexpr std::string_view kStepKeys = R"("step_keys":)";
  if (const std::size_t at = info.find(kStepKeys); at != std::string::npos)
    made.tile.step_tiles = std::atoi(info.c_str() + at + kStepKeys.size()) / made.tile.k;
}

CompiledKernel compile(TestEngine& engine, const Case& c) {
  return compile_spec(engine, spec_text(c), options_of(c.dtype, c.d, c.d_v));
}

}  // namespace

lacuna_compile_options options_of(DType dtype, int d, int d_v) {
  lacuna_compile_options options{};
  options.struct_size = sizeof options;
  options.head_dim = d;
  options.head_dim_v = d_v;
  options.dtype = abi_dtype(dtype);
  return options;
}

CompiledKernel compile_spec(TestEngine& engine, const std::string& spec,
                            const lacuna_compile_options& options) {
  CompiledKernel made;
  if (lacuna_compile(engine.engine, spec.data(), spec.size(), &options, &made.kernel) !=
          LACUNA_OK ||
      lacuna_prepare(made.kernel) != LACUNA_OK ||
      lacuna_kernel_tile(made.kernel, &made.tile.q, &made.tile.k) != LACUNA_OK) {
    made.error = lacuna_last_error();
    return made;
  }
  read_steps(made);
  return made;
}

std::string device_under_test() {
  const char* device = std::getenv("LACUNA_TEST_DEVICE");
  return device ? device : "cpu";
}

int device_index(const std::string& device) {
  const std::size_t colon = device.find(':');
  return colon == std::string::npos ? 0 : std::atoi(device.c_str() + colon + 1);
}

TestEngine::TestEngine(bool is_interpreter) {
  constexpr const char* kPlugin = "LACUNA_HOST_PLUGIN";
  const char* const named = std::getenv(kPlugin);
  const std::optional<std::string> before =
      named ? std::optional<std::string>(named) : std::nullopt;
  if (is_interpreter) ::setenv(kPlugin, "off", 1);
  const std::string device = device_under_test();
  lacuna_engine_options options{};
  options.struct_size = sizeof options;
  options.device = device.c_str();
  if (lacuna_engine_create(&options, &engine) != LACUNA_OK) {
    std::fprintf(stderr, "%s\n", lacuna_last_error());
    std::abort();
  }
  if (before) ::setenv(kPlugin, before->c_str(), 1);
  if (!before) ::unsetenv(kPlugin);
  is_cuda = device != "cpu";
}
TestEngine::~TestEngine() {
  for (const auto& [key, made] : kernels) lacuna_kernel_destroy(made.kernel);
  lacuna_engine_destroy(engine);
}

TestEngine& engine() {
  static TestEngine instance;
  return instance;
}

TestEngine* interpreter() {
  static const std::unique_ptr<TestEngine> kInstance =
      device_under_test() == "cpu" && load_host_plugin().backend != nullptr
          ? std::make_unique<TestEngine>(/*is_interpreter=*/true)
          : nullptr;
  return kInstance.get();
}

TestKernel::TestKernel(TestEngine& engine, const Case& c) {
  const auto [found, is_new] = engine.kernels.try_emplace(key_of(c), CompiledKernel{});
  if (is_new) found->second = compile(engine, c);
  static_cast<CompiledKernel&>(*this) = found->second;
}

void compile_ahead(TestEngine& engine, const std::vector<Case>& cases) {
  compile_missing(engine.kernels, cases, key_of,
                  [&engine](const Case& c) { return compile(engine, c); });
}

Binding::Binding(bool is_cuda, const Case& c, const Variant& variant) : tensors(is_cuda) {
  const Grid grid = grid_of(c, variant.tiling);
  reuse = variant.reuse;
  q = tensors.upload(variant.problem.q, c.dtype, {c.n_b, c.n_h, c.n_q, c.d}, c.token_major);
  k = tensors.upload(variant.problem.k, c.dtype, {c.n_b, c.n_h_kv, c.n_k, c.d}, c.token_major);
  v = tensors.upload(variant.problem.v, c.dtype, {c.n_b, c.n_h_kv, c.n_k, c.value_dim()},
                     c.token_major);
  o = tensors.poisoned(c.dtype, {c.n_b, c.n_h, c.n_q, c.value_dim()}, c.token_major);
  lse = tensors.poisoned(DType::kF32, {c.n_b, c.n_h, c.n_q}, false);
  counts = tensors.poisoned_i32({c.n_b, c.n_h, grid.q_tiles, 3});
  tile_mask = tensors.poisoned_u8({c.n_b, c.n_h, grid.q_tiles, grid.k_tiles});
  if (!variant.tiling.listed.empty()) {
    std::vector<std::int32_t> indices, lengths;
    append_lists(c, variant, grid, indices, lengths);
    list_indices = tensors.upload_i32(indices, {c.n_b, c.n_h, grid.q_tiles, grid.k_tiles});
    list_counts = tensors.upload_i32(lengths, {c.n_b, c.n_h, grid.q_tiles});
  }
  if (!variant.order.empty()) order = tensors.upload_i32(variant.order, {c.n_q});
  if (variant.predictor && variant.predictor->estimate &&
      !variant.predictor->estimate->previous_lse.empty())
    previous_lse = tensors.upload(variant.predictor->estimate->previous_lse, DType::kF32,
                                  {c.n_b, c.n_h, c.n_q}, false);
  param_tensors.reserve(variant.params.size());
  for (const ParamValue& p : variant.params) {
    const bool is_number = p.shape.empty();
    if (!is_number) param_tensors.push_back(tensors.upload_param(p));
    params.push_back({p.name.c_str(), is_number ? nullptr : param_tensors.back().view(),
                      is_number ? p.values[0] : 0});
  }
  args.struct_size = sizeof args;
  args.q = q.view(), args.k = k.view(), args.v = v.view(), args.o = o.view();
  if (variant.v_of_k) args.v = nullptr;
  has_lse = variant.problem.weighting == oracle::Weighting::kSoftmax;
  args.lse = has_lse ? lse.view() : nullptr, args.counts = counts.view(),
  args.tile_mask = tile_mask.view();
  args.list_indices = list_indices.view(), args.list_counts = list_counts.view();
  args.previous_lse = previous_lse.view(), args.order = order.view();
  args.params = params.data(), args.params_count = params.size();
  args.stream = tensors.stream();
  args.softmax_scale = variant.softmax_scale;
}

std::string Binding::provide(const TestKernel& kernel, const Case& c) {
  lacuna_shape shape{};
  shape.struct_size = sizeof shape;
  shape.batch = c.n_b, shape.heads = c.n_h, shape.heads_kv = c.n_h_kv;
  shape.n_q = c.n_q, shape.n_k = c.n_k;
  std::size_t bytes = 0, selection_bytes = 0;
  if (lacuna_workspace_bytes(kernel.kernel, &shape, &bytes) != LACUNA_OK ||
      lacuna_selection_bytes(kernel.kernel, &shape, &selection_bytes) != LACUNA_OK)
    return lacuna_last_error();
  const auto aligned = [this](Tensor& tensor, std::size_t size) {
    tensor = tensors.poisoned_u8({static_cast<std::int64_t>(size + kAlignment)});
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.view()->data);
    return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
  };
  if (bytes > 0) {
    args.workspace = aligned(workspace, bytes);
    args.workspace_bytes = bytes;
  }
  if (selection_bytes > 0 && reuse > 1) {
    selection = {sizeof selection, aligned(kept, selection_bytes), selection_bytes, 0};
    args.selection = &selection;
  }
  return "";
}

void Binding::rewrite(const Case& c, const oracle::Problem& problem) {
  tensors.rewrite(q, problem.q, c.dtype);
  tensors.rewrite(k, problem.k, c.dtype);
  tensors.rewrite(v, problem.v, c.dtype);
}

void Binding::poison() {
  for (Tensor* output : {&o, &lse, &counts, &tile_mask}) tensors.poison(*output);
}

Reported Binding::collect() {
  tensors.synchronise();
  Reported out;
  out.o = tensors.download(o, &out.padding_touched);
  out.lse = tensors.download(lse, nullptr);
  if (!has_lse) std::fill(out.lse.begin(), out.lse.end(), 0.0);
  out.counts = tensors.download_i32(counts);
  out.tile_mask = tensors.download_u8(tile_mask);
  return out;
}

std::vector<Case> in_tier_of_kernels(const std::vector<Case>& cases) {
  return test::in_tier(cases, [](const Case& c) {
    return test::Properties{c.variant, std::to_string(static_cast<int>(c.dtype)),
                            std::to_string(c.d)};
  });
}

Reported run_variant(TestEngine& engine, TestKernel& kernel, const Case& c,
                     const Variant& variant) {
  Binding binding(engine.is_cuda, c, variant);
  Reported failed;
  failed.error = binding.provide(kernel, c);
  if (!failed.error.empty()) return failed;
  if (lacuna_launch(kernel.kernel, &binding.args) == LACUNA_OK) return binding.collect();
  failed.error = lacuna_last_error();
  return failed;
}

}  // namespace lacuna::numerics

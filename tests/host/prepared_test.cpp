// Attend on what the ops before it make: integers with scales and biases, e4m3 values, gathered
// columns, lists. The compiled code against the interpreter, on the same prepared arguments.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "runtime/cpu/interpreter/interpreter.hpp"
#include "runtime/cpu/ops/run_ops.hpp"
#include "tests/host/plugin.hpp"
#include "tests/host/reference.hpp"

namespace lacuna::host_tests {
namespace {

/// JSON of small specs, by name. Thresholds keep some tiles and leave others out.
const std::map<std::string, std::string>& prepared_specs() {
  static const std::map<std::string, std::string> table = {
      {"int8_block", R"json({"version": 1, "name": "x", "attention": {"mask": "k <= q + n_k - n_q"},
        "quantise": {"qk": {"bits": 8}}, "tile": {"q": 64, "k": 32}})json"},
      {"int8_thread_smooth", R"json({"version": 1, "name": "x",
        "attention": {"score": "3 * tanh(s / 3)"},
        "predictor": {"tile": {"q": 64, "k": 32}, "smooth": ["q", "k"], "keep": "(i + j) % 3 != 1"},
        "quantise": {"qk": {"bits": 8, "group": "thread"}}, "tile": {"q": 64, "k": 32}})json"},
      {"e4m3", R"json({"version": 1, "name": "x", "attention": {"mask": "k <= q"},
        "quantise": {"qk": {"bits": 8}, "v": {"bits": 8}}, "tile": {"q": 64, "k": 64}})json"},
      {"e4m3_gated", R"json({"version": 1, "name": "x",
        "gate": {"scope": "warp", "skip": "gap < -0.5", "skips": ["pv"]},
        "quantise": {"qk": {"bits": 8}, "v": {"bits": 8, "range": 2.25}},
        "tile": {"q": 32, "k": 32}})json"},
      {"columns", R"json({"version": 1, "name": "x", "attention": {"mask": "k <= q + n_k - n_q",
        "score": "s - 0.01 * abs(q - k)"},
        "predictor": {"tile": {"q": 64, "k": 1}, "keep": "(j * 7 + i) % 5 < 2"},
        "loader": "gather"})json"},
      {"columns_of_8", R"json({"version": 1, "name": "x",
        "predictor": {"tile": {"q": 32, "k": 8}, "keep": "(j + i) % 3 == 0"},
        "loader": "gather"})json"},
      {"no_column", R"json({"version": 1, "name": "x",
        "predictor": {"tile": {"q": 32, "k": 1}, "keep": "i == 1 and j < 5"},
        "loader": "gather"})json"},
  };
  return table;
}

struct PreparedCase {
  std::string spec;
  DType dtype;
  Sizes sizes;
};

/// Inputs as tensors of the dtype, contiguous.
struct StoredTensors {
  std::vector<std::uint8_t> bytes;
  HostTensor tensor;
};

StoredTensors store(DType dtype, const std::vector<float>& values, std::int64_t heads,
                    std::int64_t tokens, std::int64_t d) {
  StoredTensors stored;
  const auto step = static_cast<std::size_t>(size_bytes(dtype));
  stored.bytes.resize(values.size() * step + 1);
  for (std::size_t n = 0; n < values.size(); ++n) {
    const std::uint16_t half = to_bits16(dtype, values[n]);
    const void* from = dtype == DType::kF32 ? static_cast<const void*>(&values[n]) : &half;
    std::memcpy(stored.bytes.data() + n * step, from, step);
  }
  stored.tensor = {stored.bytes.data(), {heads * tokens * d, tokens * d, d, 1}};
  return stored;
}

struct Results {
  std::vector<float> o, lse;
  std::vector<std::int32_t> counts;
  std::vector<std::uint8_t> tile_mask;
};

/// Runs attend on the prepared arguments, with outputs of its own, all poisoned.
template <class Run>
Results run_attend(const Program& program, const HostArgs& prepared, const Run& run) {
  constexpr float kPoison = -777.0F;
  const Attend& attend = attend_of(program);
  const int n_i = tiles(prepared.n_q, attend.tile_q);
  const int n_j = tiles(prepared.n_k, attend.columns >= 0 ? attend.keep_k : attend.tile_k);
  const auto rows = static_cast<std::size_t>(prepared.n_b * prepared.n_h * prepared.n_q);
  const auto d = static_cast<std::size_t>(program.head_dim);
  StoredTensors o = store(program.dtype, std::vector<float>(rows * d, kPoison), prepared.n_h,
                          prepared.n_q, program.head_dim);
  Results results;
  results.lse.assign(rows, kPoison);
  results.counts.assign(static_cast<std::size_t>(prepared.n_b * prepared.n_h * n_i * 3), -7);
  results.tile_mask.assign(static_cast<std::size_t>(prepared.n_b * prepared.n_h * n_i * n_j), 7);
  HostArgs args = prepared;
  args.o = o.tensor;
  args.lse = {results.lse.data(), {std::int64_t{prepared.n_h} * prepared.n_q, prepared.n_q, 1, 1}};
  args.counts = {results.counts.data(),
                 {std::int64_t{prepared.n_h} * n_i * 3, std::int64_t{n_i} * 3, 3, 1}};
  args.tile_mask = {results.tile_mask.data(),
                    {std::int64_t{prepared.n_h} * n_i * n_j, std::int64_t{n_i} * n_j, n_j, 1}};
  run(args);
  const auto step = static_cast<std::size_t>(size_bytes(program.dtype));
  for (std::size_t n = 0; n < rows * d; ++n) {
    float x = 0;
    std::uint16_t half = 0;
    std::memcpy(&x, o.bytes.data() + n * step, step);
    std::memcpy(&half, o.bytes.data() + n * step, 2);
    results.o.push_back(program.dtype == DType::kF32 ? x : from_bits16(program.dtype, half));
  }
  return results;
}

double rel_l1(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, total = 0;
  for (std::size_t n = 0; n < a.size(); ++n) {
    difference += std::abs(static_cast<double>(a[n]) - static_cast<double>(b[n]));
    total += std::abs(static_cast<double>(b[n]));
  }
  return total > 0 ? difference / total : difference;
}

class Prepared : public testing::TestWithParam<PreparedCase> {};

TEST_P(Prepared, CompiledLikeInterpreted) {
  const PreparedCase& c = GetParam();
  const Program program = program_of(prepared_specs().at(c.spec), c.sizes.d, c.dtype);
  const CompiledKernel kernel(program);
  const Inputs inputs = make_inputs(program, c.sizes, 3);
  const Sizes& s = c.sizes;
  StoredTensors q = store(c.dtype, inputs.q, s.n_h, s.n_q, s.d);
  StoredTensors k = store(c.dtype, inputs.k, s.n_h_kv, s.n_k, s.d);
  StoredTensors v = store(c.dtype, inputs.v, s.n_h_kv, s.n_k, s.d);
  HostArgs caller;
  caller.n_b = s.n_b, caller.n_h = s.n_h, caller.n_h_kv = s.n_h_kv;
  caller.n_q = s.n_q, caller.n_k = s.n_k;
  caller.q = q.tensor, caller.k = k.tensor, caller.v = v.tensor;
  caller.params = inputs.params.data();
  caller.threads = 2;
  PreparedLaunch prepared;
  ASSERT_TRUE(has_other_ops(program));
  run_ops_before_attend(program, caller, {}, prepared);

  const Results compiled = run_attend(
      program, prepared.args, [&](const HostArgs& args) { ASSERT_EQ(kernel.run(args), ""); });
  const Results interpreted = run_attend(
      program, prepared.args, [&](const HostArgs& args) { run_interpreted(program, args); });
  EXPECT_EQ(compiled.counts, interpreted.counts);
  EXPECT_EQ(compiled.tile_mask, interpreted.tile_mask);
  // Weights that lie between two e4m3 values may fall to either side.
  const bool rounds = attend_of(program).v_scale >= 0;
  const double tolerance = rounds ? 4e-3 : c.dtype == DType::kF32 ? 2e-6 : 2e-3;
  EXPECT_LE(rel_l1(compiled.o, interpreted.o), tolerance);
  for (std::size_t n = 0; n < compiled.lse.size(); ++n) {
    if (interpreted.lse[n] == -std::numeric_limits<float>::infinity())
      ASSERT_EQ(compiled.lse[n], interpreted.lse[n]) << "row " << n;
    else
      ASSERT_NEAR(compiled.lse[n], interpreted.lse[n], 2e-5 * std::abs(interpreted.lse[n]) + 2e-5)
          << "row " << n;
  }
}

std::vector<PreparedCase> cases() {
  std::vector<PreparedCase> all;
  for (const auto& [name, text] : prepared_specs()) {
    all.push_back({name, DType::kF32, {.n_h = 2, .n_h_kv = 1, .n_q = 150, .n_k = 150, .d = 64}});
    all.push_back({name, DType::kBF16, {.n_b = 2, .n_h = 4, .n_h_kv = 2, .n_q = 33, .n_k = 97}});
    all.push_back({name, DType::kF16, {.n_h = 1, .n_q = 64, .n_k = 65, .d = 128}});
    all.push_back({name, DType::kBF16, {.n_q = 1, .n_k = 1, .d = 96}});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Specs, Prepared, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<PreparedCase>& info) {
                           const PreparedCase& c = info.param;
                           return c.spec + "_" + std::string(name_of(c.dtype)) + "_" +
                                  std::to_string(c.sizes.n_q) + "x" + std::to_string(c.sizes.n_k);
                         });

TEST(Prepared, WeightsRoundLikeE4m3) {
  // Two keys of equal logits: each weight is 448 * 1, the output their exact mean of codes.
  const Program program = program_of(
      R"json({"version": 1, "name": "x", "quantise": {"qk": {"bits": 8}, "v": {"bits": 8}},
        "tile": {"q": 32, "k": 32}})json",
      64, DType::kF32);
  const CompiledKernel kernel(program);
  std::vector<float> q(64, 0.0F), k(2 * 64, 0.0F), v(2 * 64);
  for (std::size_t c = 0; c < 64; ++c) v[c] = 448.0F, v[64 + c] = static_cast<float>(c);
  StoredTensors q_tensor = store(DType::kF32, q, 1, 1, 64),
                k_tensor = store(DType::kF32, k, 1, 2, 64),
                v_tensor = store(DType::kF32, v, 1, 2, 64);
  HostArgs caller;
  caller.n_b = caller.n_h = caller.n_h_kv = caller.n_q = 1;
  caller.n_k = 2;
  caller.q = q_tensor.tensor, caller.k = k_tensor.tensor, caller.v = v_tensor.tensor;
  PreparedLaunch prepared;
  run_ops_before_attend(program, caller, {}, prepared);
  const Results got = run_attend(program, prepared.args,
                                 [&](const HostArgs& args) { ASSERT_EQ(kernel.run(args), ""); });
  // e4m3 has four significant bits: up to 16 exactly, then steps of 2, then of 4.
  const auto rounded = [](int x) { return x <= 16 ? x : x < 32 ? x / 2 * 2 : x / 4 * 4; };
  for (const int x : {0, 3, 15, 16, 18, 30, 36, 60})
    EXPECT_FLOAT_EQ(got.o[static_cast<std::size_t>(x)],
                    (448.0F + static_cast<float>(rounded(x))) / 2);
}

}  // namespace
}  // namespace lacuna::host_tests

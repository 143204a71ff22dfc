// The compiled attend against a naive fp64 answer: every kind of program, dtype and head dim, the
// lengths where tiles begin and end, gates, lists, strides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <thread>

#include "tests/host/run.hpp"

namespace lacuna::host_tests {
namespace {

/// JSON of small specs, by name. Thresholds are chosen so that gates skip some tiles and keep some.
const std::map<std::string, std::string>& specs() {
  static const std::map<std::string, std::string> table = {
      {"dense", R"json({"version": 1, "name": "dense"})json"},
      {"causal", R"json({"version": 1, "name": "causal",
        "attention": {"mask": "k <= q + n_k - n_q"}, "tile": {"q": 64, "k": 32}})json"},
      {"wide_tile", R"json({"version": 1, "name": "wide",
        "attention": {"mask": "k <= q + n_k - n_q"}, "tile": {"q": 32, "k": 128}})json"},
      {"uneven_tile", R"json({"version": 1, "name": "uneven",
        "attention": {"mask": "k <= q"}, "tile": {"q": 96, "k": 48}})json"},
      {"window", R"json({"version": 1, "name": "window",
        "attention": {"mask": "k <= q and (k < 4 or q - k < 70)"}})json"},
      {"holes", R"json({"version": 1, "name": "holes",
        "attention": {"mask": "(q // 3 + k) % 5 != 0 and k != 17"}})json"},
      {"softcap", R"json({"version": 1, "name": "softcap",
        "attention": {"mask": "k <= q + n_k - n_q", "score": "5 * tanh(s / 5)"}})json"},
      {"alibi", R"json({"version": 1, "name": "alibi",
        "attention": {"score": "s - 0.03 * abs(q - k) - 0.1 * h"}})json"},
      {"tile_gate", R"json({"version": 1, "name": "tile-gate", "attention": {"mask": "k <= q"},
        "gate": {"scope": "tile", "skip": "tile_max < 1.6", "exempt": "k1 >= q0",
                 "skips": ["v_load", "exp", "pv"]},
        "tile": {"q": 64, "k": 32, "order": "descending"}})json"},
      {"warp_gate", R"json({"version": 1, "name": "warp-gate",
        "attention": {"mask": "k <= q + n_k - n_q"},
        "gate": {"scope": "warp", "skip": "gap < -1.5", "skips": ["exp", "pv"]},
        "tile": {"q": 64, "k": 32}})json"},
      {"pv_gate", R"json({"version": 1, "name": "pv-gate",
        "gate": {"scope": "warp", "skip": "gap < -1.0", "skips": ["pv"]},
        "tile": {"q": 32, "k": 32}})json"},
      {"tile_pv_gate", R"json({"version": 1, "name": "tile-pv-gate",
        "gate": {"scope": "tile", "skip": "gap < -1.0", "skips": ["v_load", "pv"]},
        "tile": {"q": 64, "k": 32, "order": "descending"}})json"},
      {"sink", R"json({"version": 1, "name": "sink",
        "attention": {"mask": "k + 9 <= q", "sink": "0.2 * (q % 13) - h", "lse_base": "2"},
        "tile": {"q": 64, "k": 32}})json"},
      {"lists", R"json({"version": 1, "name": "lists", "mask": "external",
        "attention": {"mask": "k <= q + 40"}, "tile": {"q": 64, "k": 32}})json"},
  };
  return table;
}

struct Tolerance {
  double rel_l1, rel_max, lse;
};

/// Inputs are exact in the dtype and sums are f32: only the rounding of o grows with the dtype.
Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {2e-6, 4e-6, 1e-5};
    case DType::kF16:
      return {5e-4, 1e-3, 1e-5};
    default:
      return {4e-3, 8e-3, 1e-5};
  }
}

void expect_equal(const Outputs& expected, const RunResult& got, DType dtype) {
  ASSERT_EQ(got.error, "");
  EXPECT_FALSE(got.padding_touched);
  EXPECT_EQ(got.outputs.counts, expected.counts);
  EXPECT_EQ(got.outputs.tile_mask, expected.tile_mask);
  const Tolerance tolerance = tolerance_of(dtype);
  double difference = 0, total = 0, worst = 0, largest = 0;
  ASSERT_EQ(got.outputs.o.size(), expected.o.size());
  for (std::size_t n = 0; n < expected.o.size(); ++n) {
    ASSERT_EQ(std::isnan(got.outputs.o[n]), std::isnan(expected.o[n])) << "o element " << n;
    if (std::isnan(expected.o[n])) continue;
    const double error = std::abs(got.outputs.o[n] - expected.o[n]);
    difference += error, total += std::abs(expected.o[n]);
    worst = std::max(worst, error), largest = std::max(largest, std::abs(expected.o[n]));
  }
  EXPECT_LE(difference, tolerance.rel_l1 * total);
  EXPECT_LE(worst, tolerance.rel_max * largest);
  for (std::size_t n = 0; n < expected.lse.size(); ++n) {
    const double a = got.outputs.lse[n], b = expected.lse[n];
    const bool same = a == b || (std::isnan(a) && std::isnan(b)) ||
                      std::abs(a - b) <= tolerance.lse * std::max(1.0, std::abs(b));
    ASSERT_TRUE(same) << "lse of row " << n << ": " << a << ", expected " << b;
  }
}

struct Case {
  std::string spec;
  DType dtype;
  Sizes sizes;
  bool token_major = false;
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return c.spec + "_" + std::string(name_of(c.dtype)) + "_d" + std::to_string(c.sizes.d) + "_" +
         std::to_string(c.sizes.n_q) + "x" + std::to_string(c.sizes.n_k) +
         (c.token_major ? "_token_major" : "");
}

class Attends : public testing::TestWithParam<Case> {};

TEST_P(Attends, LikeTheNaiveReference) {
  const Case& c = GetParam();
  const Program program = program_of(specs().at(c.spec), c.sizes.d, c.dtype);
  const CompiledKernel kernel(program);
  Inputs inputs = make_inputs(program, c.sizes, 7);
  if (c.spec == "lists") add_lists(program, inputs, /*flagged=*/true, 11);
  const RunResult got = run(program, kernel, inputs, {.token_major = c.token_major});
  expect_equal(reference(program, inputs), got, c.dtype);
}

/// Every program with every dtype, GQA and two batch entries, ragged in both lengths.
std::vector<Case> kinds() {
  std::vector<Case> cases;
  for (const auto& [name, json] : specs())
    for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32})
      cases.push_back({name, dtype, {2, 4, 2, 150, 215, 64}, dtype == DType::kF16});
  return cases;
}

std::vector<Case> shapes() {
  std::vector<Case> cases;
  const std::pair<int, int> lengths[] = {{1, 1},     {15, 15},   {63, 63},    {65, 65},
                                         {127, 127}, {129, 129}, {1, 300},    {300, 1},
                                         {40, 500},  {500, 40},  {1000, 1000}};
  for (const auto& [n_q, n_k] : lengths)
    for (const char* spec : {"causal", "dense", "warp_gate"})
      cases.push_back({spec, DType::kF32, {1, 1, 1, n_q, n_k, 64}});
  for (const int d : {16, 32, 80, 96, 128, 256})
    for (const char* spec : {"causal", "tile_gate"})
      cases.push_back({spec, DType::kBF16, {1, 2, 1, 130, 129, d}});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Attends, testing::ValuesIn(kinds()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Shapes, Attends, testing::ValuesIn(shapes()), name_of_case);

TEST(AttendGates, SkipSomeTilesAndKeepSome) {
  for (const char* name : {"tile_gate", "warp_gate", "pv_gate", "tile_pv_gate"}) {
    const Program program = program_of(specs().at(name), 64, DType::kF32);
    const Inputs inputs = make_inputs(program, {1, 2, 2, 256, 512, 64}, 7);
    const Outputs out = run(program, CompiledKernel(program), inputs).outputs;
    const auto gated = std::count(out.tile_mask.begin(), out.tile_mask.end(), 2);
    const auto kept = std::count(out.tile_mask.begin(), out.tile_mask.end(), 1);
    EXPECT_GT(gated, 0) << name;
    EXPECT_GT(kept, 0) << name;
  }
}

TEST(AttendLists, WithoutTheFlagTheMaskIsNotAskedAndOnlyTheTailIsCut) {
  const Program program = program_of(specs().at("lists"), 64, DType::kF32);
  Inputs inputs = make_inputs(program, {1, 2, 1, 100, 150, 64}, 3);
  add_lists(program, inputs, /*flagged=*/false, 5);
  const RunResult got = run(program, CompiledKernel(program), inputs);
  expect_equal(reference(program, inputs), got, DType::kF32);
}

TEST(AttendLists, EntriesThatAreNoKeyTileAreIgnored) {
  const Program program = program_of(specs().at("lists"), 64, DType::kF32);
  Inputs inputs = make_inputs(program, {1, 1, 1, 64, 96, 64}, 3);
  inputs.list_indices = {1, 2, 0};
  inputs.list_counts = {2};
  const CompiledKernel kernel(program);
  const RunResult clean = run(program, kernel, inputs);
  const auto n_j = static_cast<std::int32_t>(inputs.list_indices.size());  // the first that is none
  for (const std::int32_t beyond : {n_j, 99}) {
    inputs.list_indices = {1, beyond, 2};
    inputs.list_counts = {1000};
    const RunResult dirty = run(program, kernel, inputs);
    ASSERT_EQ(dirty.error, "");
    EXPECT_EQ(dirty.o_bytes, clean.o_bytes) << beyond;
    EXPECT_EQ(dirty.outputs.counts, clean.outputs.counts) << beyond;
  }
}

TEST(AttendParameters, AreReadByHeadAndToken) {
  const Program program = program_of(
      R"json({"version": 1, "name": "params",
          "attention": {"mask": "k >= start[q] and k <= q", "score": "s * slope + bias[k]"},
          "params": {"start": {"type": "i32", "shape": "[n_q]", "monotone": true, "default": 0},
                     "slope": {"shape": "[heads]", "default": 1},
                     "bias": {"shape": "[n_k]", "default": 0}}})json",
      64, DType::kF32);
  Inputs inputs = make_inputs(program, {1, 3, 1, 200, 200, 64}, 9);
  std::vector<std::int32_t> start(200);
  std::vector<float> bias(200);
  for (std::size_t n = 0; n < 200; ++n)
    start[n] = static_cast<std::int32_t>(n / 60 * 60), bias[n] = static_cast<float>(n % 7) * 0.3F;
  const std::vector<float> slope = {1.0F, 0.5F, -2.0F};
  inputs.params[0] = {.data = start.data(), .value = {}, .extent = {200, 1, 1}, .stride = {1}};
  inputs.params[1] = {.data = slope.data(), .value = {}, .extent = {3, 1, 1}, .stride = {1}};
  inputs.params[2] = {.data = bias.data(), .value = {}, .extent = {200, 1, 1}, .stride = {1}};
  expect_equal(reference(program, inputs), run(program, CompiledKernel(program), inputs),
               DType::kF32);
}

TEST(AttendValues, ARowOfNanSpoilsOnlyItself) {
  const Program program = program_of(specs().at("causal"), 64, DType::kBF16);
  Inputs inputs = make_inputs(program, {1, 1, 1, 130, 130, 64}, 5);
  const CompiledKernel kernel(program);
  const Outputs clean = run(program, kernel, inputs).outputs;
  const std::size_t row = 70;
  inputs.q[row * 64 + 3] = std::numeric_limits<float>::quiet_NaN();
  const Outputs spoilt = run(program, kernel, inputs).outputs;
  for (std::size_t n = 0; n < clean.o.size(); ++n) {
    if (n / 64 == row)
      EXPECT_TRUE(std::isnan(spoilt.o[n])) << n;
    else
      EXPECT_EQ(spoilt.o[n], clean.o[n]) << n;
  }
  EXPECT_TRUE(std::isnan(spoilt.lse[row]));
}

TEST(AttendValues, NanInKeysThatAreNeverVisitedHasNoEffect) {
  const Program program = program_of(specs().at("causal"), 64, DType::kF32);
  Inputs inputs = make_inputs(program, {1, 1, 1, 64, 64, 64}, 5);
  const CompiledKernel kernel(program);
  const RunResult clean = run(program, kernel, inputs);
  Inputs longer = make_inputs(program, {1, 1, 1, 128, 128, 64}, 5);
  for (std::size_t n = 0; n < inputs.q.size(); ++n) {
    longer.q[n] = inputs.q[n], longer.k[n] = inputs.k[n], longer.v[n] = inputs.v[n];
  }
  for (std::size_t n = inputs.k.size(); n < longer.k.size(); ++n)
    longer.k[n] = longer.v[n] = std::numeric_limits<float>::quiet_NaN();
  const RunResult spoilt = run(program, kernel, longer);
  for (std::size_t n = 0; n < clean.outputs.o.size(); ++n)
    ASSERT_EQ(spoilt.outputs.o[n], clean.outputs.o[n]) << n;
}

/// One element that is no number is enough, wherever it stands: no tile boundary makes a
/// difference, and what the row sees still counts.
TEST(AttendValues, AKeyHasNoInfluenceOnRowsThatDoNotSeeIt) {
  constexpr int kQueries = 4;
  using Limits = std::numeric_limits<float>;
  for (const int d : {24, 64}) {
    const Program program = program_of(specs().at("uneven_tile"), d, DType::kBF16);
    const CompiledKernel kernel(program);
    for (const int n_k : {4, 8, 64, 65}) {
      const Inputs inputs = make_inputs(program, {1, 1, 1, kQueries, n_k, d}, 5);
      const Outputs clean = run(program, kernel, inputs).outputs;
      for (const int key : {2, n_k - 1}) {
        for (const float value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
          SCOPED_TRACE(testing::Message()
                       << "d " << d << ", n_k " << n_k << ", key " << key << ", " << value);
          Inputs in_k = inputs, in_v = inputs;
          const auto element = static_cast<std::size_t>(key * d + d - 1);
          in_k.k[element] = in_v.v[element] = value;
          const Outputs of_k = run(program, kernel, in_k).outputs;
          const Outputs of_v = run(program, kernel, in_v).outputs;
          for (int row = 0; row < kQueries; ++row) {
            const auto last = static_cast<std::size_t>((row + 1) * d - 1);
            if (row < key) {
              EXPECT_EQ(of_k.o[last], clean.o[last]) << row;
              EXPECT_EQ(of_k.lse[last / static_cast<std::size_t>(d)],
                        clean.lse[last / static_cast<std::size_t>(d)]);
              EXPECT_EQ(of_v.o[last], clean.o[last]) << row;
            } else {
              EXPECT_FALSE(std::isfinite(of_v.o[last])) << row;
            }
            EXPECT_EQ(of_v.o[last - 1], clean.o[last - 1]) << row;
          }
        }
      }
    }
  }
}

TEST(AttendValues, HugeLogitsAndAllNegativeOnesStayExact) {
  const Program program = program_of(specs().at("dense"), 64, DType::kF32);
  for (const float gain : {300.0F, -300.0F}) {
    Inputs inputs = make_inputs(program, {1, 1, 1, 70, 140, 64}, 13);
    for (float& x : inputs.q) x = std::abs(x) * gain;
    for (float& x : inputs.k) x = std::abs(x) + 1;
    const Outputs expected = reference(program, inputs);
    const Outputs got = run(program, CompiledKernel(program), inputs).outputs;
    for (std::size_t n = 0; n < expected.o.size(); ++n)
      ASSERT_NEAR(got.o[n], expected.o[n], 3e-2) << n;  // f32 logits of 1e4 have 1e-3 to spare
  }
}

TEST(AttendRuns, GiveTheSameBitsWhateverTheThreads) {
  const Program program = program_of(specs().at("warp_gate"), 128, DType::kBF16);
  const Inputs inputs = make_inputs(program, {1, 4, 2, 300, 300, 128}, 21);
  const CompiledKernel kernel(program);
  const RunResult first = run(program, kernel, inputs, {.threads = 1});
  for (const int threads : {0, 2, 3, 7})
    EXPECT_EQ(run(program, kernel, inputs, {.threads = threads}).o_bytes, first.o_bytes) << threads;
}

TEST(AttendRuns, MayOverlapOnOneKernel) {
  const Program program = program_of(specs().at("causal"), 64, DType::kF32);
  const Inputs inputs = make_inputs(program, {1, 2, 2, 200, 200, 64}, 21);
  const CompiledKernel kernel(program);
  const RunResult alone = run(program, kernel, inputs);
  std::vector<RunResult> results(4);
  std::vector<std::thread> hosts;
  for (RunResult& result : results)
    hosts.emplace_back([&] { result = run(program, kernel, inputs); });
  for (std::thread& host : hosts) host.join();
  for (const RunResult& result : results) EXPECT_EQ(result.o_bytes, alone.o_bytes);
}

/// Kernels of one shape have functions in common, those of another sum, type or tile their own; and
/// a kernel outlives the one that it has them from.
TEST(AttendRuns, GiveTheSameBitsBesideOtherKernels) {
  const std::string sigmoid = R"json({"version": 1, "name": "sigmoid",
      "attention": {"normalise": "sigmoid"}, "tile": {"q": 64, "k": 32}})json";
  const std::pair<std::string, DType> subjects[] = {{specs().at("causal"), DType::kF32},
                                                    {specs().at("sink"), DType::kF32},
                                                    {specs().at("sink"), DType::kBF16},
                                                    {sigmoid, DType::kF32},
                                                    {specs().at("wide_tile"), DType::kF32}};
  std::vector<Program> programs;
  std::vector<Inputs> inputs;
  std::vector<RunResult> alone;
  for (const auto& [spec, dtype] : subjects) {
    programs.push_back(program_of(spec, 64, dtype));
    inputs.push_back(make_inputs(programs.back(), {1, 2, 1, 100, 150, 64}, 3));
    alone.push_back(run(programs.back(), CompiledKernel(programs.back()), inputs.back()));
    ASSERT_EQ(alone.back().error, "");
  }
  std::vector<std::unique_ptr<CompiledKernel>> kernels;
  for (const Program& program : programs)
    kernels.push_back(std::make_unique<CompiledKernel>(program));
  kernels.front().reset();
  for (std::size_t n = 1; n < kernels.size(); ++n) {
    const RunResult got = run(programs[n], *kernels[n], inputs[n]);
    EXPECT_EQ(got.o_bytes, alone[n].o_bytes) << programs[n].name << " " << n;
  }
}

TEST(AttendRuns, WithoutKeysEveryRowIsEmpty) {
  const Program program = program_of(specs().at("dense"), 64, DType::kF32);
  const Inputs inputs = make_inputs(program, {1, 1, 1, 20, 0, 64}, 1);
  const RunResult got = run(program, CompiledKernel(program), inputs);
  ASSERT_EQ(got.error, "");
  for (const double x : got.outputs.o) EXPECT_EQ(x, 0);
  for (const double x : got.outputs.lse) EXPECT_EQ(x, -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace lacuna::host_tests

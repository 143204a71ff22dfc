// run on the CPU: what it computes, what it writes, and how it fails.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"
#include "tools/io/npy.hpp"
#include "tools/run/report.hpp"

namespace lacuna::tests {
namespace {

using tools::Array;
using tools::ArrayType;

constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kRunTokens = 300;  // tiles of 128 x 64: three work tiles, a partial last one
constexpr std::int64_t kRunHeadDim = 64;

/// Visible tiles of a causal mask over kRunTokens, for each head: 2 + 4 + 5.
constexpr std::int64_t kVisibleTiles = 11;

Array read_npy(const std::string& path) {
  Diagnostics diagnostics;
  const auto array = tools::parse_npy(read_bytes(path), diagnostics);
  EXPECT_TRUE(array.has_value()) << path;
  return array.value_or(Array());
}

/// The dense causal answer in fp64, [heads, tokens, d].
std::vector<double> causal_attention(const tools::Safetensors& problem) {
  const std::vector<float> q = tools::to_f32(problem.tensors.at("q"));
  const std::vector<float> k = tools::to_f32(problem.tensors.at("k"));
  const std::vector<float> v = tools::to_f32(problem.tensors.at("v"));
  std::vector<double> o(q.size(), 0.0);
  for (std::int64_t row = 0; row < kHeads * kRunTokens; ++row) {
    const std::int64_t visible = row % kRunTokens + 1;
    std::vector<double> weight(static_cast<std::size_t>(visible));
    double sum = 0;
    for (std::int64_t key = 0; key < visible; ++key) {
      double logit = 0;
      for (std::int64_t i = 0; i < kRunHeadDim; ++i) {
        logit += static_cast<double>(q[static_cast<std::size_t>(row * kRunHeadDim + i)]) *
                 static_cast<double>(k[static_cast<std::size_t>(key * kRunHeadDim + i)]);
      }
      sum += weight[static_cast<std::size_t>(key)] = std::exp(logit / std::sqrt(kRunHeadDim));
    }
    for (std::int64_t key = 0; key < visible; ++key) {
      for (std::int64_t i = 0; i < kRunHeadDim; ++i) {
        o[static_cast<std::size_t>(row * kRunHeadDim + i)] +=
            weight[static_cast<std::size_t>(key)] / sum *
            static_cast<double>(v[static_cast<std::size_t>(key * kRunHeadDim + i)]);
      }
    }
  }
  return o;
}

class Run : public ::testing::Test {
 protected:
  Run() : problem_(small_problem(kHeads, kRunTokens, kRunHeadDim, ArrayType::kBF16)) {
    input_ = scratch_.write("x.safetensors", tools::print_safetensors(problem_));
  }

  /// Runs a shipped spec on the small problem.
  CommandResult run(const std::string& spec, std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"run", source_file("specs/" + spec + ".json"), "--device",
                                          "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }

  std::vector<std::string> with_input(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--input", input_});
    return more;
  }

  ScratchDirectory scratch_;
  tools::Safetensors problem_;
  std::string input_;
};

TEST_F(Run, ReportsWhatItDidAsJson) {
  const CommandResult result = run("bsfa", with_input({"--json"}));
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  EXPECT_EQ(document["spec"], "bsfa");
  EXPECT_EQ(document["device"], "cpu");
  EXPECT_EQ(document["shape"], nlohmann::json({{"b", 1},
                                               {"h", kHeads},
                                               {"h_kv", 1},
                                               {"n_q", kRunTokens},
                                               {"n_k", kRunTokens},
                                               {"d", kRunHeadDim}}));
  EXPECT_EQ(document["tiles"], nlohmann::json({{"visible", kHeads * kVisibleTiles},
                                               {"visited", kHeads * kVisibleTiles},
                                               {"gated", 0}}));
  EXPECT_EQ(document["error"]["rel_l1"], 0.0) << "the default threshold gates nothing";
  for (const char* time : {"dense", "sparse", "attend"}) {
    EXPECT_GT(document["time_us"][time].get<double>(), 0.0);
  }
  EXPECT_EQ(document["time_us"]["predict"], 0);
  EXPECT_TRUE(document["cache"]["hit"].is_boolean());
}

TEST_F(Run, WritesTheRightOutputAndTheTilesThatWereVisited) {
  const std::string out = scratch_.file("o.npy");
  const std::string mask = scratch_.file("mask.npy");
  const CommandResult result = run("bsfa", with_input({"--out", out, "--mask-out", mask}));
  ASSERT_EQ(result.status, 0) << result.err;

  const Array o = read_npy(out);
  EXPECT_EQ(o.type, ArrayType::kF32);
  EXPECT_EQ(o.shape, problem_.tensors["q"].shape);
  const std::vector<float> got = tools::to_f32(o);
  const std::vector<double> expected = causal_attention(problem_);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 0.02) << i;
  }

  const Array tiles = read_npy(mask);
  EXPECT_EQ(tiles.type, ArrayType::kU8);
  ASSERT_EQ(tiles.shape, (std::vector<std::int64_t>{1, kHeads, 3, 5}));
  EXPECT_EQ(tiles.bytes.substr(0, 15), std::string("\1\1\0\0\0\1\1\1\1\0\1\1\1\1\1", 15));
}

TEST_F(Run, APredictorMaySmoothAndKeepEverything) {
  const std::string spec = scratch_.write("sage.json", R"({
    "version": 1, "name": "sage", "attention": { "mask": "k <= q" },
    "predictor": { "tile": { "q": 128, "k": 64 }, "smooth": ["k"], "keep": "true" },
    "quantise": { "qk": { "bits": 8 } }, "tile": { "q": 128, "k": 64 }
  })");
  const CommandResult result =
      run_lacuna({"run", spec, "--device", "cpu", "--input", input_, "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const auto document = parse_document(result);
  EXPECT_EQ(document["warnings"], nlohmann::json::array());
  EXPECT_EQ(document["tiles"]["visited"], kHeads * kVisibleTiles);
  EXPECT_EQ(document["selection_bytes"], 0) << "there is no decision to keep";
  EXPECT_LT(document["error"]["rel_l1"].get<double>(), 0.02);
  const CommandResult timed = run_lacuna({"bench", spec, "--device", "cpu", "--shape", "h=1,n=128",
                                          "--head-dim", "64", "--seconds", "0.01", "--json"});
  ASSERT_EQ(timed.status, 0) << timed.err;
  EXPECT_EQ(parse_document(timed)["launches"].size(), 2U) << "itself and dense attention";
}

TEST_F(Run, AThresholdAboveEverythingGatesAllButTheExemptTiles) {
  const std::string mask = scratch_.file("mask.npy");
  const CommandResult result =
      run("bsfa", with_input({"--param", "threshold=inf", "--mask-out", mask, "--json"}));
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  EXPECT_GT(document["error"]["rel_l1"].get<double>(), 0.01);
  // Tiles that end before the row's first query: 0 of the first row, 2 of the second, 4 of the
  // third.
  EXPECT_EQ(document["tiles"]["gated"], kHeads * 6);
  EXPECT_EQ(read_npy(mask).bytes.substr(0, 15), std::string("\1\1\0\0\0\2\2\1\1\0\2\2\2\2\1", 15));
}

TEST_F(Run, ChecksTheErrorAgainstATolerance) {
  const auto gated = with_input({"--param", "threshold=inf", "--check", "--tolerance", "0.001"});
  const CommandResult failed = run("bsfa", gated);
  EXPECT_EQ(failed.status, 4);
  EXPECT_NE(failed.err.find("relative L1 error against dense: expected at most 1.00e-03, got "),
            std::string::npos)
      << failed.err;
  EXPECT_EQ(run("bsfa", with_input({"--check", "--tolerance", "0.001"})).status, 0);
}

TEST_F(Run, ReadsNpyFilesOfTwoToFourDimensions) {
  Array q = problem_.tensors["q"];
  Array k = problem_.tensors["k"];
  Array v = problem_.tensors["v"];
  const auto expect_rank = [&](std::size_t rank) {
    const std::string out = scratch_.file("o.npy");
    const CommandResult result =
        run("bsfa", {"--q", scratch_.write("q.npy", tools::print_npy(q)), "--k",
                     scratch_.write("k.npy", tools::print_npy(k)), "--v",
                     scratch_.write("v.npy", tools::print_npy(v)), "--out", out});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(read_npy(out).shape.size(), rank);
  };
  expect_rank(3);
  for (Array* array : {&q, &k, &v}) array->shape.insert(array->shape.begin(), 1);
  expect_rank(4);
  q = problem_.tensors["k"];
  for (Array* array : {&q, &k, &v}) array->shape = {kRunTokens, kRunHeadDim};
  expect_rank(2);
}

TEST_F(Run, ConvertsTheInputsOnRequest) {
  for (const char* dtype : {"bf16", "f16", "f32"}) {
    const CommandResult result = run("dense", with_input({"--dtype", dtype, "--json"}));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(parse_document(result)["dtype"], dtype);
  }
}

TEST_F(Run, TakesParametersFromTheFileBesideTheInput) {
  tools::Safetensors thresholds;
  const float inf = std::numeric_limits<float>::infinity();
  thresholds.tensors["threshold"] = tools::from_f32(
      std::vector<float>{-inf, -inf, inf, -inf, -inf, -inf}, {kHeads, 3}, ArrayType::kF32);
  const std::string beside =
      scratch_.write("x.bsfa-k1.safetensors", tools::print_safetensors(thresholds));
  const CommandResult result = run("bsfa", with_input({"--json"}));
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  EXPECT_EQ(document["params"]["threshold"], beside);
  EXPECT_EQ(document["tiles"]["gated"], 4);

  scratch_.write("x.bsfa-k2.safetensors", tools::print_safetensors(thresholds));
  const CommandResult two = run("bsfa", with_input({}));
  EXPECT_EQ(two.status, 1);
  EXPECT_EQ(two.err, "lacuna: error: several files have parameters for this input, " + beside +
                         " and " + scratch_.file("x.bsfa-k2.safetensors") +
                         " among them; choose with --param NAME=@FILE\n");
  const CommandResult chosen = run("bsfa", with_input({"--param", "threshold=@" + beside}));
  EXPECT_EQ(chosen.status, 0) << chosen.err;
}

TEST_F(Run, ReadsAParameterFromNpy) {
  const Array start =
      tools::from_f32(std::vector<float>(kRunTokens, 0), {kRunTokens}, ArrayType::kI64);
  const std::string file = scratch_.write("start.npy", tools::print_npy(start));
  const CommandResult result = run("document", with_input({"--param", "start=@" + file, "--json"}));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(parse_document(result)["error"]["rel_l1"], 0.0);
}

/// Status 1, this text on stderr, and no file written.
#define EXPECT_REJECTED(result, text)                        \
  do {                                                       \
    const CommandResult rejected = (result);                 \
    EXPECT_EQ(rejected.status, 1);                           \
    EXPECT_EQ(rejected.out, "");                             \
    EXPECT_EQ(without_notes(rejected.err), (text));          \
    EXPECT_TRUE(read_bytes(scratch_.file("o.npy")).empty()); \
  } while (false)

TEST_F(Run, RejectsBadFilesWithOneExactMessage) {
  const std::string out = scratch_.file("o.npy");
  EXPECT_REJECTED(run("bsfa", {"--input", "/no/x.safetensors", "--out", out}),
                  "/no/x.safetensors: error: cannot be read: No such file or directory [E0601]\n");

  const std::string whole = tools::print_safetensors(problem_);
  const std::string cut = scratch_.write("cut.safetensors", whole.substr(0, whole.size() - 10));
  EXPECT_REJECTED(run("bsfa", {"--input", cut, "--out", out}),
                  cut +
                      ": error: tensor v: data_offsets [115200, 153600]: the file holds only "
                      "153590 bytes of data [E0603]\n");

  tools::Safetensors no_v = problem_;
  no_v.tensors.erase("v");
  const std::string missing = scratch_.write("no_v.safetensors", tools::print_safetensors(no_v));
  EXPECT_REJECTED(run("bsfa", {"--input", missing, "--out", out}),
                  missing + ": error: tensor v is missing; the file has k, q [E0605]\n");

  tools::Safetensors typed = problem_;
  typed.tensors["k"] = tools::from_f32(std::vector<float>(6, 1), {6}, ArrayType::kI32);
  const std::string wrong = scratch_.write("typed.safetensors", tools::print_safetensors(typed));
  EXPECT_REJECTED(
      run("bsfa", {"--input", wrong, "--out", out}),
      wrong + ": error: tensor k: dtype: expected bf16, f16 or f32, got i32 [E0606]\n" + wrong +
          ": error: tensor k: shape: expected [tokens, head_dim], [heads, tokens, head_dim] or "
          "[batch, heads, tokens, head_dim], got [6] [E0607]\n");
}

/// The last two keys of one head: of the causal queries only the last two see one.
TEST_F(Run, NamesWhatIsNotFiniteInV) {
  tools::Safetensors poisoned = problem_;
  std::vector<float> v = tools::to_f32(problem_.tensors["v"]);
  v[v.size() - 1] = std::numeric_limits<float>::quiet_NaN();
  v[v.size() - kRunHeadDim - 2] = std::numeric_limits<float>::infinity();
  poisoned.tensors["v"] = tools::from_f32(v, {1, kRunTokens, kRunHeadDim}, ArrayType::kBF16);
  const std::string file = scratch_.write("poisoned.safetensors", print_safetensors(poisoned));
  const CommandResult result = run("bsfa", {"--input", file});
  EXPECT_EQ(result.status, 4) << result.err;
  EXPECT_NE(result.err.find(" elements of o are NaN or infinite"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("NaN or infinity in 2 tokens of v, and so in o of every query that "
                            "sees such a token"),
            std::string::npos)
      << result.out;
  EXPECT_EQ(parse_document(run("bsfa", {"--input", file, "--json"}))["v_not_finite"], 2);
  EXPECT_EQ(parse_document(run("bsfa", with_input({"--json"})))["v_not_finite"], 0);
}

TEST_F(Run, RefusesAMonotoneParameterThatFalls) {
  std::vector<float> start(kRunTokens, 0);
  start[5] = 3;
  const tools::Array falls = tools::from_f32(start, {kRunTokens}, ArrayType::kI32);
  const std::string file = scratch_.write("start.npy", tools::print_npy(falls));
  EXPECT_REJECTED(
      run("document", with_input({"--param", "start=@" + file})),
      "lacuna: error: parameter start is declared monotone, but value 0 at [6] is not at "
      "least 3, the one before it\n");
}

TEST_F(Run, WarnsOfRulesThatDecideNothing) {
  const auto warnings = [&](const char* spec, std::vector<std::string> more) {
    more.push_back("--json");
    return parse_document(run(spec, with_input(more)))["warnings"].dump();
  };
  EXPECT_NE(
      warnings("streaming", {"--param", "sink=100000"}).find("predictor.keep holds for every"),
      std::string::npos);
  EXPECT_NE(warnings("prefix-lm", {"--param", "prefix=100000"}).find("attention.mask is true"),
            std::string::npos);
  EXPECT_EQ(warnings("dense", {}), "[]");
}

/// There a weight of 0 is multiplied with V too.
TEST(RunReport, SaysWhomAVThatIsNotFiniteReachesOnAGpu) {
  tools::Inputs inputs;
  inputs.v_not_finite = 1;
  tools::RunResult result;
  result.device = "cuda:0";
  result.kernel = nlohmann::ordered_json::object();
  const std::string report = tools::print_run("dense", inputs, result, {});
  EXPECT_NE(report.find("NaN or infinity in 1 token of v, and so in o of every query that visits "
                        "the tile of such a token, seen or not"),
            std::string::npos)
      << report;
}

TEST_F(Run, RejectsTensorsThatDoNotFitTogether) {
  tools::Safetensors odd = problem_;
  odd.tensors["v"] = tools::from_f32(std::vector<float>(7 * 64, 0), {1, 7, 64}, ArrayType::kF16);
  const std::string file = scratch_.write("odd.safetensors", tools::print_safetensors(odd));
  const CommandResult result =
      run("bsfa", {"--input", file, "--out", scratch_.file("o.npy"), "--json"});
  EXPECT_EQ(result.status, 1);
  const std::string messages = parse_document(result)["diagnostics"].dump();
  EXPECT_NE(messages.find("kernel bsfa, argument v: dtype expected bf16, got f16"),
            std::string::npos)
      << messages;
  EXPECT_NE(messages.find("kernel bsfa, argument v: n_k expected 300, got 7"), std::string::npos)
      << messages;
  EXPECT_TRUE(read_bytes(scratch_.file("o.npy")).empty());
}

TEST_F(Run, RejectsBadParameters) {
  const std::string out = scratch_.file("o.npy");
  EXPECT_REJECTED(run("bsfa", with_input({"--out", out, "--param", "treshold=1"})),
                  "lacuna: error: spec bsfa has no parameter treshold; did you mean threshold?\n");
  EXPECT_REJECTED(run("dense", with_input({"--out", out, "--param", "x=1"})),
                  "lacuna: error: spec dense has no parameter x; it has none\n");
  EXPECT_REJECTED(run("bsfa", with_input({"--out", out, "--param", "threshold=much"})),
                  "lacuna: error: --param threshold: expected a number or @FILE, got \"much\"\n");
  EXPECT_REJECTED(run("bsfa", with_input({"--out", out, "--param", "threshold=@" + input_})),
                  input_ + ": error: tensor threshold is missing; the file has k, q, v [E0605]\n");
}

TEST_F(Run, NamesAParameterThatHasNoDefault) {
  const std::string spec =
      scratch_.write("needs.json",
                     R"({"version": 1, "name": "needs", "attention": {"score": "s * gain"},
          "params": {"gain": {"doc": "factor"}}})");
  const CommandResult result = run_lacuna({"run", spec, "--device", "cpu", "--input", input_});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(without_notes(result.err),
            spec +
                ": error: kernel needs, parameter gain: is missing: expected f32 "
                "scalar; it has no default [E0502]\n");
}

TEST_F(Run, AnUnknownDeviceIsAnInputErrorAndAnAbsentOneOfTheEnvironment) {
  const auto device = [&](const char* name) {
    return run_lacuna(
        {"run", source_file("specs/dense.json"), "--input", input_, "--device", name});
  };
  EXPECT_EQ(device("tpu").status, 1);
  const CommandResult absent = device("cuda:99");
  EXPECT_EQ(absent.status, 3) << absent.err;
  EXPECT_NE(absent.err, "");
}

TEST_F(Run, AnOutputThatCannotBeWrittenIsAnError) {
  EXPECT_REJECTED(run("dense", with_input({"--out", "/no/such/folder/o.npy"})),
                  "/no/such/folder/o.npy: error: cannot be written: No such file or directory "
                  "[E0602]\n");
}

}  // namespace
}  // namespace lacuna::tests

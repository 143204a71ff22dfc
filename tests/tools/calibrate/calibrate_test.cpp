// calibrate on the CPU: what it finds, what it writes, who takes it, and how it fails.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"
#include "tools/inputs/calibration.hpp"
#include "tools/picture/calibration_picture.hpp"

namespace lacuna::tests {
namespace {

using tools::Array;
using tools::ArrayType;
using tools::Calibration;

constexpr std::int64_t kTokens = 384;  // three rows of 128 queries, six of 64 keys
constexpr std::int64_t kHeadDim = 64;

class Calibrate : public ::testing::Test {
 protected:
  Calibrate() : input_(write("x.safetensors", 2, kHeadDim)) {}

  std::string write(const std::string& name, std::int64_t heads, std::int64_t head_dim) const {
    return scratch_.write(
        name, tools::print_safetensors(small_problem(heads, kTokens, head_dim, ArrayType::kBF16)));
  }

  CommandResult calibrate(const std::string& spec, std::vector<std::string> more) const {
    more.insert(more.begin(),
                {"calibrate", source_file("specs/" + spec + ".json"), "--device", "cpu", "--json"});
    return run_lacuna(more);
  }

  /// Fails with exactly this message, writing nothing.
  void expect_failure(const std::string& spec, const std::vector<std::string>& more,
                      const std::string& message) const {
    const auto files = scratch_.names();
    const CommandResult result = calibrate(spec, more);
    EXPECT_EQ(result.status, 1) << result.err;
    const auto diagnostics = parse_document(result)["diagnostics"];
    ASSERT_EQ(diagnostics.size(), 1u) << diagnostics;
    EXPECT_EQ(diagnostics[0]["message"], message);
    EXPECT_EQ(scratch_.names(), files);
  }

  /// The one message of a failing run with a calibration.
  std::string run_message(const std::string& spec, const std::string& input,
                          const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{
        "run", source_file("specs/" + spec + ".json"), "--input", input, "--json", "--device",
        "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_lacuna(arguments);
    EXPECT_EQ(result.status, 1) << result.err;
    return parse_document(result)["diagnostics"][0]["message"];
  }

  /// A calibration of skip-softmax for the sample.
  std::string calibrated() const {
    const std::string out = scratch_.file("c.safetensors");
    const CommandResult result =
        calibrate("skip-softmax", {"--samples", input_, "--target", "0.2", "-o", out});
    EXPECT_EQ(result.status, 0) << result.out;
    return out;
  }

  ScratchDirectory scratch_;
  std::string input_;
};

Calibration read_calibration(const std::string& path) {
  Diagnostics diagnostics;
  const auto calibration = tools::parse_calibration(read_bytes(path), diagnostics);
  EXPECT_TRUE(calibration.has_value()) << path;
  return calibration.value_or(Calibration());
}

TEST_F(Calibrate, FindsTheSparsestWithinTheTargetAndRunReachesIt) {
  const std::string out = scratch_.file("c.safetensors");
  const CommandResult result =
      calibrate("topk-blocks", {"--samples", input_, "--target", "rel_l1=0.6", "-o", out});
  ASSERT_EQ(result.status, 0) << result.out;
  const auto heads = parse_document(result)["heads"];
  ASSERT_EQ(heads.size(), 2u);
  for (const auto& head : heads) {
    EXPECT_FALSE(head["dense"]);
    EXPECT_LE(head["fitted"]["rel_l1"], 0.6);
    EXPECT_LT(head["fitted"]["density"], 1);
  }
  const Calibration calibration = read_calibration(out);
  EXPECT_EQ(calibration.params.at("blocks").type, ArrayType::kI32);
  EXPECT_EQ(calibration.params.at("blocks").shape, std::vector<std::int64_t>{2});
  EXPECT_TRUE(calibration.complete);
  ASSERT_EQ(calibration.samples.size(), 1u);
  EXPECT_EQ(calibration.samples[0].file, "x.safetensors");
  EXPECT_EQ(calibration.samples[0].sha256.size(), 64u);

  const auto run =
      parse_document(run_lacuna({"run", source_file("specs/topk-blocks.json"), "--input", input_,
                                 "--calibration", out, "--device", "cpu", "--json"}));
  EXPECT_LE(run["error"]["rel_l1"], 0.6);
  EXPECT_LT(run["tiles"]["visited"], run["tiles"]["visible"]);
}

TEST_F(Calibrate, GridAndBisectionFillAllParametersInTheirShapes) {
  const std::string out = scratch_.file("c.safetensors");
  const CommandResult result =
      calibrate("sparge", {"--samples", input_, "--target", "0.5", "-o", out});
  ASSERT_EQ(result.status, 0) << result.out;
  const Calibration calibration = read_calibration(out);
  for (const char* name : {"tau", "theta", "lambda"})
    EXPECT_EQ(calibration.params.at(name).shape, std::vector<std::int64_t>{2}) << name;
  for (const auto& head : calibration.results[0]) EXPECT_LE(head.rel_l1, 0.5);
}

TEST_F(Calibrate, KeptTilesAreThoseAskedForAndSeveralGoInOneFile) {
  const std::string out = scratch_.file("c.safetensors");
  const CommandResult result =
      calibrate("bsfa", {"--samples", input_, "--target", "0.9", "--kept", "1,2", "-o", out});
  ASSERT_EQ(result.status, 0) << result.out;
  // Rows of 0, 2 and 4 tiles before the diagonal and 2 on it: one of them kept is 2 + 3 + 3 of 12.
  const auto kept = parse_document(result)["kept"];
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_DOUBLE_EQ(kept[0]["predicted_density"], 8.0 / 12);
  EXPECT_DOUBLE_EQ(kept[0]["density"], 8.0 / 12);
  EXPECT_DOUBLE_EQ(kept[1]["density"], 10.0 / 12);
  const Calibration calibration = read_calibration(out);
  const std::vector<std::int64_t> shape{2, 3};
  for (const char* name : {"threshold", "threshold.kept_1", "threshold.kept_2"})
    EXPECT_EQ(calibration.params.at(name).shape, shape) << name;
  const auto run = parse_document(
      run_lacuna({"run", source_file("specs/bsfa.json"), "--input", input_, "--calibration", out,
                  "--kept", "2", "--device", "cpu", "--json"}));
  EXPECT_EQ(run["tiles"]["gated"], 4);
  EXPECT_EQ(run_message("bsfa", input_, {"--calibration", out, "--kept", "3"}),
            out + ": --kept 3: the file has tables for 1, 2");
}

TEST_F(Calibrate, TheLongestOfSeveralSamplesSaysHowManyRowsThereAre) {
  const std::string out = scratch_.file("c.safetensors");
  const std::string shorter = scratch_.write(
      "short.safetensors",
      tools::print_safetensors(small_problem(2, kTokens - 128, kHeadDim, ArrayType::kBF16)));
  const CommandResult result = calibrate(
      "bsfa", {"--samples", shorter, input_, "--target", "0.9", "--kept", "1", "-o", out});
  ASSERT_EQ(result.status, 0) << result.out;
  // 2 + 3 of 6 tiles of the shorter one, 2 + 3 + 3 of 12 of the longer one.
  EXPECT_DOUBLE_EQ(parse_document(result)["kept"][0]["predicted_density"], 13.0 / 18);
  const Calibration calibration = read_calibration(out);
  EXPECT_EQ(calibration.params.at("threshold").shape, (std::vector<std::int64_t>{2, 3}));
  ASSERT_EQ(calibration.samples.size(), 2u);
  EXPECT_EQ(calibration.samples[0].tokens, kTokens - 128);
  EXPECT_EQ(calibration.samples[1].tokens, kTokens);
  ASSERT_EQ(calibration.results.size(), 2u);
  for (const auto& sample : calibration.results)
    for (const auto& head : sample) EXPECT_LE(head.rel_l1, 0.9);
}

TEST_F(Calibrate, HeldOutTokensAreMeasuredAndNotFitted) {
  const CommandResult result = calibrate(
      "skip-softmax",
      {"--samples", input_, "--tokens", "0:192", "--held-out", "192:384", "--target", "0.2"});
  ASSERT_EQ(result.status, 0) << result.out;
  const auto heads = parse_document(result)["heads"];
  ASSERT_FALSE(heads.empty());
  for (const auto& head : heads) EXPECT_TRUE(head.contains("held_out"));
}

TEST_F(Calibrate, OneNumberForAllHeadsIsOneNumber) {
  const CommandResult result =
      calibrate("topk-blocks", {"--samples", input_, "--target", "0.6", "--one-for-all"});
  ASSERT_EQ(result.status, 0) << result.out;
  const auto heads = parse_document(result)["heads"];
  EXPECT_EQ(heads[0]["params"], heads[1]["params"]);
}

TEST_F(Calibrate, TheSameSamplesAndDateGiveTheSameBytes) {
  ::setenv("SOURCE_DATE_EPOCH", "86400", 1);
  const std::string first = read_bytes(calibrated());
  const std::string second = read_bytes(calibrated());
  ::unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_EQ(first, second);
  Diagnostics diagnostics;
  EXPECT_EQ(tools::parse_calibration(first, diagnostics)->date, "1970-01-02T00:00:00Z");
}

TEST_F(Calibrate, SaysWhatIsWrongWithTheRequest) {
  expect_failure("skip-softmax", {},
                 "no samples: pass --samples FILE..., safetensors with q, k and v");
  expect_failure("dense", {"--samples", input_},
                 "spec dense has nothing to calibrate: it declares no parameter");
  expect_failure("window", {"--samples", input_},
                 "spec window has nothing to calibrate: no parameter says how; give one of sink, "
                 "window \"calibrate\": \"bisect\"");
  expect_failure("skip-softmax", {"--samples", input_, "--param", "c=1"},
                 "--param c: the spec says to calibrate it (\"calibrate\": \"bisect\")");
  expect_failure("skip-softmax", {"--samples", input_, "--tokens", "0:400"},
                 input_ + ": --tokens 0:400: it has only 384 tokens");
  const CommandResult usage = calibrate("skip-softmax", {"--target", "2"});
  EXPECT_EQ(usage.status, 2);
  EXPECT_NE(usage.out.find("expected rel_l1=X with X between 0 and 1, got 2"), std::string::npos)
      << usage.out;
}

TEST_F(Calibrate, SaysWhatIsWrongWithASample) {
  const std::string narrow = write("narrow.safetensors", 2, 128);
  expect_failure("skip-softmax", {"--samples", input_, narrow},
                 narrow + ": head dim: expected 64, as in " + input_ + ", got 128");
  const std::string wide = write("wide.safetensors", 4, kHeadDim);
  expect_failure("skip-softmax", {"--samples", input_, wide},
                 wide + ": heads of q: expected 2, as in " + input_ + ", got 4");
  tools::Safetensors problem = small_problem(2, kTokens, kHeadDim, ArrayType::kF32);
  std::vector<float> values = tools::to_f32(problem.tensors["k"]);
  values[5 * kHeadDim + 7] = std::numeric_limits<float>::quiet_NaN();
  problem.tensors["k"] = tools::from_f32(values, problem.tensors["k"].shape, ArrayType::kF32);
  const std::string broken = scratch_.write("nan.safetensors", tools::print_safetensors(problem));
  expect_failure("skip-softmax", {"--samples", broken},
                 broken + ": tensor k at [0, 0, 5, 7] is nan; a sample holds finite numbers only");
  for (const char* name : {"q", "k", "v"})
    problem.tensors[name] = {ArrayType::kF32, {0, 2, 16, 64}, {}};
  const std::string empty = scratch_.write("empty.safetensors", tools::print_safetensors(problem));
  expect_failure("skip-softmax", {"--samples", empty},
                 empty + ": q [0, 2, 16, 64] has no batch entry; a sample has at least one");
}

TEST_F(Calibrate, NamesTheBestReachableErrorOfATargetThatCannotBeMet) {
  const std::string out = scratch_.file("c.safetensors");
  const CommandResult result =
      calibrate("sale", {"--samples", input_, "--target", "0.0001", "-o", out});
  EXPECT_EQ(result.status, 1);
  const std::string message = parse_document(result)["diagnostics"][0]["message"];
  EXPECT_TRUE(
      message.starts_with("--target rel_l1=0.0001: no head can meet it; with nothing left "
                          "out the best one reaches "))
      << message;
  EXPECT_TRUE(message.ends_with(", the error of the spec's quantisation")) << message;
  EXPECT_EQ(scratch_.names(), std::vector<std::string>{"x.safetensors"});
}

TEST_F(Calibrate, AnOutputThatCannotBeWrittenIsAnError) {
  const std::string out = scratch_.file("no/such/folder.safetensors");
  const CommandResult result =
      calibrate("skip-softmax", {"--samples", input_, "--target", "0.2", "-o", out});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(parse_document(result)["diagnostics"][0]["code"], "E0602");
}

TEST_F(Calibrate, AnOutputThatCannotBeWrittenIsFoundBeforeTheSearch) {
  const std::string out = scratch_.file("no/such/folder.safetensors");
  expect_failure("skip-softmax", {"--samples", scratch_.file("none"), "-o", out},
                 "cannot be written: No such file or directory");
  expect_failure("skip-softmax", {"--samples", scratch_.file("none"), "-o", scratch_.path()},
                 "cannot be written: Is a directory");
}

TEST_F(Calibrate, ASignalKeepsWhatWasFoundAndIsTheStatus) {
  for (const auto& [signal, status] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    const std::string out = scratch_.file("c" + std::to_string(signal));
    const CommandResult result =
        run_lacuna_and_signal({"calibrate", source_file("specs/sparge.json"), "--device", "cpu",
                               "--json", "--samples", input_, "--target", "0.5", "-o", out},
                              signal);
    EXPECT_EQ(result.status, status) << result.out << result.err;
    if (result.out.empty()) {  // the process has what tells of a signal, and does not listen yet
      EXPECT_NE(result.err.find("lacuna: stopped by"), std::string::npos) << result.err;
      EXPECT_FALSE(std::filesystem::exists(out));
      continue;
    }
    const auto diagnostics = parse_document(result)["diagnostics"];
    if (diagnostics.empty()) {
      EXPECT_FALSE(read_calibration(out).complete);
      EXPECT_NE(result.err.find("lacuna: stopped; what had been found by then"), std::string::npos)
          << result.err;
    } else {
      EXPECT_EQ(diagnostics[0]["message"], "stopped before anything was found; nothing is written");
    }
  }
}

/// At most moments of a search something has been found.
TEST_F(Calibrate, StoppedLaterItSaysThatItKeepsWhatItHas) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(calibrate("sparge", {"--samples", input_, "--target", "0.5"}).status, 0);
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
  const std::string out = scratch_.file("later");
  constexpr int kMoments = 10;
  bool is_seen = false;
  for (int n = 0; n < 3 * kMoments && !is_seen; ++n) {
    const CommandResult result =
        run_lacuna_and_signal({"calibrate", source_file("specs/sparge.json"), "--device", "cpu",
                               "--json", "--samples", input_, "--target", "0.5", "-o", out},
                              SIGINT, took * (n % kMoments) / kMoments);
    if (result.status == 0 || !parse_document(result)["diagnostics"].empty()) continue;
    is_seen = true;
    EXPECT_EQ(result.status, 130);
    EXPECT_FALSE(read_calibration(out).complete);
    EXPECT_NE(result.err.find("lacuna: stopped; what had been found by then"), std::string::npos)
        << result.err;
  }
  EXPECT_TRUE(is_seen);
}

TEST_F(Calibrate, IsRefusedWhereItDoesNotFit) {
  const std::string file = calibrated();
  EXPECT_EQ(run_message("bsfa", input_, {"--calibration", file}),
            file + ": spec: it was made for skip-softmax, this is bsfa; calibrate again");
  EXPECT_EQ(
      run_message("skip-softmax", write("wide.safetensors", 4, kHeadDim), {"--calibration", file}),
      file + ": heads: it was made for 2, this is 4; calibrate again");
  EXPECT_EQ(run_message("skip-softmax", write("deep.safetensors", 2, 128), {"--calibration", file}),
            file + ": head dim: it was made for 64, this is 128; calibrate again");
  EXPECT_EQ(run_message("skip-softmax", input_, {"--calibration", input_}),
            "calibration: metadata \"format\": expected \"lacuna calibration 1\", got \"\"");

  std::string spec = read_bytes(source_file("specs/skip-softmax.json"));
  spec.replace(spec.find("log(c / n_k)"), 12, "log(c)");
  const std::string changed = scratch_.write("changed.json", spec);
  const auto document = parse_document(run_lacuna(
      {"run", changed, "--input", input_, "--json", "--calibration", file, "--device", "cpu"}));
  EXPECT_EQ(document["diagnostics"][0]["message"],
            file +
                ": spec skip-softmax computes something else since this calibration was made "
                "for it; calibrate again");
}

TEST_F(Calibrate, IsNotLookedAtWhereAParameterIsWrong) {
  const auto document = parse_document(
      run_lacuna({"run", source_file("specs/skip-softmax.json"), "--input", input_, "--json",
                  "--device", "cpu", "--calibration", input_, "--param", "c=much"}));
  ASSERT_EQ(document["diagnostics"].size(), 1u) << document["diagnostics"];
  EXPECT_EQ(document["diagnostics"][0]["message"],
            "--param c: expected a number or @FILE, got \"much\"");
}

TEST_F(Calibrate, BenchTakesItToo) {
  const CommandResult result = run_lacuna(
      {"bench", source_file("specs/skip-softmax.json"), "--shape", "h=2,n=256", "--head-dim", "64",
       "--seconds", "0.01", "--calibration", calibrated(), "--device", "cpu", "--json"});
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST_F(Calibrate, VizDrawsABarForEachHeadAndSample) {
  const std::string out = scratch_.file("c.svg");
  const CommandResult result =
      run_lacuna({"viz", "calibration", calibrated(), "-o", out, "--json"});
  ASSERT_EQ(result.status, 0) << result.out;
  EXPECT_EQ(parse_document(result)["spec"], "skip-softmax");
  EXPECT_TRUE(read_bytes(out).starts_with("<svg "));
  const tools::Picture picture =
      tools::calibration_picture(read_calibration(scratch_.file("c.safetensors")));
  EXPECT_EQ(picture.rectangles.size(), 2u * 2u + 3u)
      << "two charts of two heads, three in the legend";
}

TEST(CalibrationFile, RowsAreCutOrContinuedWithTheLast) {
  const std::vector<float> values{1, 2, 3, 4};
  const Array array = tools::from_f32(values, {2, 2}, ArrayType::kF32);
  EXPECT_EQ(tools::to_f32(tools::fit_rows(array, 3)), (std::vector<float>{1, 2, 2, 3, 4, 4}));
  EXPECT_EQ(tools::to_f32(tools::fit_rows(array, 1)), (std::vector<float>{1, 3}));
}

TEST(CalibrationFile, SizesBeyondReasonAreRefused) {
  Calibration calibration;
  calibration.heads = 1;
  calibration.head_dim = 64;
  calibration.dense = {false};
  for (const auto& [tile_q, is_good] : {std::pair<std::int64_t, bool>{128, true},
                                        {0, false},
                                        {std::numeric_limits<std::int64_t>::max(), false}}) {
    calibration.tile_q = tile_q;
    Diagnostics diagnostics;
    EXPECT_EQ(
        tools::parse_calibration(tools::print_calibration(calibration), diagnostics).has_value(),
        is_good)
        << tile_q;
  }
}

TEST(CalibrationFile, SpecsThatComputeTheSameHaveOneHash) {
  VariantSpec spec;
  spec.name = "x";
  spec.params.emplace_back().symbol.name = "c";
  VariantSpec same = spec;
  same.doc = "other words";
  same.params[0].default_value = 3;
  same.params[0].has_default = true;
  EXPECT_EQ(tools::spec_sha256(spec), tools::spec_sha256(same));
  same.tile.q.values = {64};
  EXPECT_NE(tools::spec_sha256(spec), tools::spec_sha256(same));
}

}  // namespace
}  // namespace lacuna::tests

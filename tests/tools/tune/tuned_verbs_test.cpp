// Tuned records where they meet other features: all verbs that compile a spec take the same one.
#include <gtest/gtest.h>

#include "cache/tuning/tuning.hpp"
#include "runtime/tune/bucket.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"

namespace lacuna::tests {
namespace {

using Json = nlohmann::json;
using Variables = std::map<std::string, std::string>;

/// Of the problems of these tests; that at which `explain` counts memory by itself; and the
/// largest.
constexpr LaunchShape kSmall{1, 2, 2, 256, 256}, kCounted{1, 32, 8, 32768, 32768},
    kLarge{1, 32, 8, 131072, 131072};
constexpr const char* kCausal =
    R"({"version": 1, "name": "tuned", "attention": {"mask": "k <= q + n_k - n_q"}})";
const std::string kOther = "q16 k16 ascending";
constexpr const char* kTwoBranches = R"({"version": 1, "name": "tuned", "branches": [
    {"name": "near", "attention": {"mask": "k <= q and q - k < 64"}},
    {"name": "far", "attention": {"mask": "q - k >= 64"}}]})";

class TunedVerbs : public testing::Test {
 protected:
  void write_spec(const char* text) { spec_ = scratch_.write("tuned.json", text); }

  CommandResult lacuna(std::vector<std::string> arguments, const Variables& more = {}) const {
    Variables variables = more;
    variables.insert({"LACUNA_CACHE_DIR", cache_});
    return run_lacuna(arguments, "", variables);
  }

  /// Of each attend of the spec or of one branch, at kSmall `small`, at kLarge `large`; of the
  /// hardware, with the compiler and the threads that `like` has.
  void keep(const cache::TuningRecord& like, const std::string& branch, const std::string& small,
            const std::string& large) const {
    Diagnostics found;
    std::vector<cache::TuningRecord> records;
    for (const SpecDocument& document :
         branch_documents(read_spec({"t.json", read_bytes(spec_)}, found))) {
      if (!branch.empty() && document.spec.branch.name != branch) continue;
      for (const auto& [shape, config] :
           {std::pair(kSmall, small), std::pair(kCounted, kOther), std::pair(kLarge, large)}) {
        cache::TuningRecord record = like;
        record.variant = tune::variant_of(document.spec, {.head_dim = 64});
        record.problem = print_bucket(tune::bucket_of(shape));
        const std::size_t threads = like.config.find(" threads");
        record.config = config;
        if (threads != std::string::npos) record.config += like.config.substr(threads);
        record.density = record.best = "1";
        record.median_us = 10;
        records.push_back(std::move(record));
      }
    }
    EXPECT_FALSE(found.has_errors());
    EXPECT_EQ(cache::TuningDatabase(cache_, "").append(records), "");
  }

  /// A record of this machine's CPU, made by `tune`, with all threads that there are.
  cache::TuningRecord of_this_cpu() const {
    const std::string file = scratch_.file("own.jsonl");
    const std::string other = scratch_.write("other.json", R"({"version": 1, "name": "other"})");
    const CommandResult made =
        run_lacuna({"tune", other, "--shape", "b=1,h=1,n=32", "--head-dim", "64", "--dtype", "f32",
                    "--device", "cpu", "--budget", "0.001s", "--export", file},
                   "", {{"LACUNA_CACHE_DIR", scratch_.file("own")}});
    EXPECT_EQ(made.status, 0) << made.err;
    const std::string text = read_bytes(file);
    const auto line = Json::parse(text.substr(0, text.find('\n')));
    cache::TuningRecord record;
    record.hardware = line["hardware"];
    record.compiler = line["compiler"];
    record.config = line["config"];
    return record;
  }

  /// "64 x 32" of tile.q and tile.k of the first plan.
  std::string explained(std::vector<std::string> more, const Variables& variables = {}) const {
    std::vector<std::string> arguments{"explain", spec_, "--head-dim", "64", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json document = parse_document(lacuna(arguments, variables));
    std::string q, k;
    for (const Json& value : document["plans"][0]["values"]) {
      if (value["name"] == "tile.q") q = value["value"];
      if (value["name"] == "tile.k") k = value["value"];
    }
    return q + " x " + k;
  }

  ScratchDirectory scratch_;
  std::string cache_ = scratch_.file("cache"), spec_;
  std::string input_ =
      scratch_.write("x.safetensors",
                     tools::print_safetensors(small_problem(2, 256, 64, tools::ArrayType::kBF16)));
};

std::string tile_of(const Json& tile) { return tile["q"].dump() + " x " + tile["k"].dump(); }

TEST_F(TunedVerbs, AllTakeTheRecordOfTheirShape) {
  write_spec(kCausal);
  keep(of_this_cpu(), "", "q64 k32 ascending", "q32 k16 ascending");
  const std::vector<std::string> cpu{"--arch", "cpu"},
      small{"--arch", "cpu", "--shape", "b=1,h=2,n=256"};
  EXPECT_EQ(explained(small), "64 x 32");
  EXPECT_EQ(explained(cpu), "32 x 16") << "the largest, as of a kernel that is compiled for none";
  const Json run =
      parse_document(lacuna({"run", spec_, "--input", input_, "--device", "cpu", "--json"}));
  EXPECT_EQ(tile_of(run["tile"]), "64 x 32");
  const Json bench =
      parse_document(lacuna({"bench", spec_, "--shape", "b=1,h=2,n=256", "--head-dim", "64",
                             "--device", "cpu", "--seconds", "0.01", "--json"}));
  EXPECT_EQ(bench["tiles"]["visible"], 2 * (2 + 4 + 6 + 8)) << "of 64 x 32";
}

TEST_F(TunedVerbs, ABranchTakesTheRecordOfItsShape) {
  write_spec(kTwoBranches);
  keep(of_this_cpu(), "near", "q64 k32 ascending", "q32 k16 ascending");
  EXPECT_EQ(explained({"--arch", "cpu", "--shape", "b=1,h=2,n=256"}), "64 x 32");
  const Json run =
      parse_document(lacuna({"run", spec_, "--input", input_, "--device", "cpu", "--json"}));
  EXPECT_EQ(tile_of(run["branches"][0]["tile"]), "64 x 32");
  EXPECT_EQ(tile_of(run["branches"][1]["tile"]), "128 x 64") << "not measured";
}

TEST_F(TunedVerbs, ARecordOfTheInterpreterOrOfCompiledCodeServesNotTheOther) {
  write_spec(kCausal);
  keep(of_this_cpu(), "", "q64 k32 ascending", "q32 k16 ascending");
  const Variables other{{"LACUNA_HOST_PLUGIN", "off"}};
  if (of_this_cpu().compiler == "interpreter") GTEST_SKIP() << "there is no CPU compiler";
  EXPECT_EQ(explained({"--arch", "cpu"}, other), "128 x 64");
  const Json run =
      parse_document(lacuna({"run", spec_, "--input", input_, "--device", "cpu", "--json"}, other));
  EXPECT_EQ(tile_of(run["tile"]), "128 x 64");
}

TEST_F(TunedVerbs, AFamilyThatTheEnvironmentAsksForHasRecordsOfItsOwn) {
  const Json doctor = parse_document(run_lacuna({"doctor", "--json"}));
  if (doctor["nvrtc"]["found"] == false) GTEST_SKIP() << doctor["nvrtc"]["missing"];
  write_spec(kCausal);
  cache::TuningRecord like;
  like.hardware = "fake-gpu-0-132";
  like.compiler = "NVRTC 13.0";
  keep(like, "", "q64 k64 ascending stages2", "q64 k64 ascending stages2");
  Variables gpu{{"LD_LIBRARY_PATH", LACUNA_BINARY_DIR "/tests/fake_cuda"}};
  const std::vector<std::string> shape{"--shape", "b=1,h=2,n=256", "--arch", "sm_90a"};
  EXPECT_EQ(explained(shape, gpu), "64 x 64");
  gpu["LACUNA_ATTEND_FAMILY"] = "wgmma";
  EXPECT_NE(explained(shape, gpu), "64 x 64") << "which are tiles of the other family";
  gpu["LACUNA_ATTEND_FAMILY"] = "mma";
  const Json run = parse_document(
      lacuna({"run", spec_, "--input", input_, "--device", "cuda:0", "--json"}, gpu));
  EXPECT_EQ(run["kernel"]["family"], "mma");
  EXPECT_EQ(tile_of(run["tile"]), "128 x 64") << "what is used without tuning";
  EXPECT_EQ(explained(shape, gpu), "128 x 64");
  gpu["LACUNA_ATTEND_FAMILY"] = "mna";
  const CommandResult wrong = lacuna({"explain", spec_}, gpu);
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("LACUNA_ATTEND_FAMILY: expected mma or wgmma, got mna"),
            std::string::npos)
      << wrong.err;
}

}  // namespace
}  // namespace lacuna::tests

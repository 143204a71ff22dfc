// lacuna tune as a process: what it measures, what it survives, what it leaves behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <utility>

#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

using Json = nlohmann::json;

/// Four configurations on two threads; q128 k64 is what is used without tuning.
constexpr const char* kTunedSpec =
    R"({"version": 1, "name": "small", "attention": {"mask": "k <= q"},
  "tile": {"q": [128, 64], "k": [64, 32], "order": "ascending"}})";
constexpr const char* kUsual = "q128 k64 ascending threads2";

/// A cache directory that several commands share.
class Tune : public testing::Test {
 protected:
  using Variables = std::map<std::string, std::string>;

  std::vector<std::string> tune_small(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"tune",       spec_, "--shape",  "b=1,h=2,n=256",
                                          "--head-dim", "64",  "--device", "cpu",
                                          "--threads",  "2",   "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  /// Starts the command; its outputs go to files of this number.
  pid_t start(const std::vector<std::string>& arguments, const Variables& variables = {},
              int number = 0) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const auto redirect = [&](const std::string& name, int descriptor) {
      const std::string path = scratch_.file(name + std::to_string(number));
      ::dup2(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), descriptor);
    };
    redirect("out", STDOUT_FILENO);
    redirect("err", STDERR_FILENO);
    ::setenv("LACUNA_CACHE_DIR", cache_.c_str(), 1);
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> argv = {const_cast<char*>("lacuna")};
    for (const std::string& text : arguments) argv.push_back(const_cast<char*>(text.c_str()));
    argv.push_back(nullptr);
    ::execv(LACUNA_BINARY_DIR "/bin/lacuna", argv.data());
    ::_exit(127);
  }

  CommandResult finish(pid_t child, int number = 0) const {
    int status = 0;
    ::waitpid(child, &status, 0);
    CommandResult result;
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = read_bytes(scratch_.file("out" + std::to_string(number)));
    result.err = without_notes(read_bytes(scratch_.file("err" + std::to_string(number))));
    return result;
  }

  CommandResult run(const std::vector<std::string>& arguments,
                    const Variables& variables = {}) const {
    return finish(start(arguments, variables));
  }

  /// The one search of a run that succeeded.
  Json tuning(const CommandResult& result) const {
    EXPECT_EQ(result.status, 0) << result.out << result.err;
    const Json document = parse_document(result);
    EXPECT_EQ(document["tunings"].size(), 1u);
    return document["tunings"].empty() ? Json::object() : document["tunings"][0];
  }

  /// The only segment of the database, after a search has merged all; "" while there is none.
  std::string database() const {
    const std::vector<std::string> all = segments();
    EXPECT_LE(all.size(), 1u);
    return all.empty() ? "" : all.front();
  }
  std::vector<std::string> segments() const {
    std::vector<std::string> paths;
    std::error_code missing;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(cache_ + "/tuning", missing))
      if (entry.path().extension() == ".jsonl") paths.push_back(entry.path().string());
    return paths;
  }
  std::string records() const {
    std::string all;
    for (const std::string& path : segments()) all += read_bytes(path);
    return all;
  }

  void wait_for_records(int count) const {
    while (std::ranges::count(records(), '\n') < count)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  ScratchDirectory scratch_;
  std::string cache_ = scratch_.file("cache");
  std::string spec_ = scratch_.write("small.json", kTunedSpec);
};

std::map<std::string, std::string> statuses(const Json& tuning) {
  std::map<std::string, std::string> all;
  for (const Json& measured : tuning["measured"]) all[measured["config"]] = measured["status"];
  return all;
}

TEST_F(Tune, MeasuresEveryLegalPointAndKeepsTheBest) {
  const Json first = tuning(run(tune_small()));
  EXPECT_EQ(first["state"], "tuned");
  EXPECT_EQ(first["complete"], true);
  EXPECT_EQ(first["interpreted"], true);
  EXPECT_EQ(first["usual"]["config"], kUsual);
  EXPECT_EQ(statuses(first),
            (std::map<std::string, std::string>{{"q128 k64 ascending threads2", "ok"},
                                                {"q128 k32 ascending threads2", "ok"},
                                                {"q64 k64 ascending threads2", "ok"},
                                                {"q64 k32 ascending threads2", "ok"}}));
  EXPECT_LE(first["best"]["median_us"], 1.02 * first["usual"]["median_us"].get<double>());
}

TEST_F(Tune, ASecondTuneDoesNothing) {
  const Json first = tuning(run(tune_small()));
  const std::string before = records();
  const Json second = tuning(run(tune_small()));
  EXPECT_EQ(second["state"], "known");
  EXPECT_EQ(second["best"], first["best"]);
  EXPECT_EQ(second["measured"].size(), 0u);
  EXPECT_EQ(records(), before);
}

TEST_F(Tune, ExhaustiveMeasuresEveryPointAgain) {
  tuning(run(tune_small()));
  const Json again = tuning(run(tune_small({"--exhaustive"})));
  EXPECT_EQ(again["state"], "tuned");
  EXPECT_EQ(again["reused"], 0);
  EXPECT_EQ(statuses(again).size(), 4u);
}

TEST_F(Tune, ExplainNamesTheRecordThatDecided) {
  const Json found = tuning(run(tune_small()));
  const Json plan = parse_document(
      run({"explain", spec_, "--arch", "cpu", "--head-dim", "64", "--json"}))["plans"][0];
  for (const Json& value : plan["values"]) {
    if (value["name"] != "tile.q") continue;
    EXPECT_EQ(value["origin"], "tuned");
    const std::string best = found["best"]["config"];
    EXPECT_EQ(best.rfind("q" + value["value"].get<std::string>() + " ", 0), 0u);
    EXPECT_NE(value["reason"].get<std::string>().find("at b=1, h=2, h_kv=2, n_q=256, n_k=256"),
              std::string::npos);
  }
}

TEST_F(Tune, CrashesHangsAndWrongNumbersCostThatCandidateAlone) {
  const CommandResult result =
      run(tune_small({"--watchdog", "3"}),
          {{"LACUNA_TUNE_FAULT",
            "crash q128 k32 ascending threads2;hang q64 k64 ascending threads2;"
            "wrong q64 k32 ascending threads2"}});
  const Json found = tuning(result);
  EXPECT_EQ(found["state"], "tuned");
  EXPECT_EQ(found["best"]["config"], kUsual);
  EXPECT_EQ(statuses(found),
            (std::map<std::string, std::string>{{kUsual, "ok"},
                                                {"q128 k32 ascending threads2", "crash"},
                                                {"q64 k64 ascending threads2", "hang"},
                                                {"q64 k32 ascending threads2", "wrong"}}));
  for (const Json& measured : found["measured"]) {
    const std::string detail = measured["detail"];
    if (measured["status"] == "crash") {
      // The second: a sanitizer reports the signal itself.
      EXPECT_TRUE(detail == "ended by signal 11 (Segmentation fault)" ||
                  detail == "ended with status 1")
          << detail;
    } else if (measured["status"] == "hang") {
      EXPECT_EQ(detail, "no answer within 3 s");
    } else if (measured["status"] == "wrong") {
      EXPECT_EQ(detail.rfind("against q128 k64 ascending threads2: largest relative error", 0), 0u)
          << detail;
    }
  }
  EXPECT_EQ(tuning(run(tune_small()))["state"], "known") << "the faults are on record";
}

/// All but the usual one, which is measured first, keep their child from answering.
const std::map<std::string, std::string> kStuck = {
    {"LACUNA_TUNE_FAULT",
     "hang q128 k32 ascending threads2;hang q64 k64 ascending threads2;"
     "hang q64 k32 ascending threads2"}};

TEST_F(Tune, AKilledTuneGoesOnWhereItWas) {
  const pid_t child = start(tune_small({"--watchdog", "600"}), kStuck);
  wait_for_records(1);
  ::kill(child, SIGKILL);
  EXPECT_EQ(finish(child).status, 128 + SIGKILL);
  const Json resumed = tuning(run(tune_small()));
  EXPECT_EQ(resumed["state"], "tuned");
  EXPECT_EQ(resumed["reused"], 1);
  EXPECT_EQ(resumed["complete"], true);
  EXPECT_EQ(statuses(resumed).size(), 4u);
}

TEST_F(Tune, CtrlCKeepsWhatWasMeasured) {
  const pid_t child = start(tune_small({"--watchdog", "600"}), kStuck);
  wait_for_records(1);
  const std::string pid = std::to_string(child);
  const std::string searcher = read_bytes("/proc/" + pid + "/task/" + pid + "/children");
  EXPECT_EQ(read_bytes("/proc/" + searcher.substr(0, searcher.find(' ')) + "/cmdline").front(), '/')
      << "whatever looks for files beside the program finds the right ones";
  ::kill(child, SIGINT);
  CommandResult result = finish(child);
  EXPECT_EQ(std::exchange(result.status, 0), 128 + SIGINT);
  const Json found = tuning(result);
  EXPECT_EQ(found["state"], "interrupted");
  EXPECT_EQ(statuses(found), (std::map<std::string, std::string>{{kUsual, "ok"}}));
  EXPECT_EQ(std::ranges::count(records(), '\n'), 1);
}

TEST_F(Tune, TwoAtOnceLoseNothing) {
  const pid_t one = start(tune_small(), {}, 1), two = start(tune_small(), {}, 2);
  const Json first = tuning(finish(one, 1)), second = tuning(finish(two, 2));
  EXPECT_EQ(statuses(first).size(), 4u);
  EXPECT_EQ(statuses(second).size(), 4u);
  const CommandResult third = run(tune_small());
  EXPECT_EQ(tuning(third)["state"], "known");
  EXPECT_EQ(third.err, "") << "no damaged line";
}

TEST_F(Tune, AnotherCompilerIsTimedAnew) {
  tuning(run(tune_small()));
  std::string text = records();
  for (std::size_t at = 0; (at = text.find("\"compiler\":\"", at)) != std::string::npos; at += 12)
    text.insert(at + 12, "old ");
  std::ofstream(database(), std::ios::binary) << text;
  const Json again = tuning(run(tune_small()));
  EXPECT_EQ(again["state"], "tuned");
  EXPECT_EQ(again["reused"], 0);
}

TEST_F(Tune, DamagedLinesAreNamedAndStay) {
  tuning(run(tune_small()));
  const std::string before = records();
  std::ofstream(database(), std::ios::binary) << "rubbish\n" << before;
  const CommandResult result = run(tune_small());
  EXPECT_EQ(tuning(result)["state"], "known");
  EXPECT_EQ(result.err,
            "lacuna: " + database() + ":1: not a tuning record of this version, skipped\n");
  EXPECT_EQ(records(), "rubbish\n" + before);
}

TEST_F(Tune, RecordsTravelAsAFile) {
  const Json found = tuning(run(tune_small()));
  const std::string file = scratch_.file("records.jsonl");
  const CommandResult exported = run({"tune", "--export", file});
  EXPECT_EQ(exported.status, 0);
  EXPECT_EQ(exported.out, "4 records exported to " + file + "\n");
  std::filesystem::remove_all(cache_);
  std::ofstream(file, std::ios::app) << "a line of something else\n";
  const CommandResult imported = run({"tune", "--import", file});
  EXPECT_EQ(imported.status, 0);
  EXPECT_EQ(imported.out, "4 records imported, 0 present before\n");
  EXPECT_EQ(imported.err, "lacuna: " + file + ":5: not a tuning record of this version, skipped\n");
  EXPECT_EQ(run({"tune", "--import", file}).out, "0 records imported, 4 present before\n");
  const Json known = tuning(run(tune_small()));
  EXPECT_EQ(known["state"], "known");
  EXPECT_EQ(known["best"], found["best"]);
}

TEST_F(Tune, OnlyTheBeginningOfAVastFileIsImported) {
  const std::string file = scratch_.file("vast.jsonl");
  std::filesystem::copy_file(LACUNA_SOURCE_DIR "/cache/seed/nvidia-h200-132.jsonl", file);
  std::filesystem::resize_file(file, std::uintmax_t{1} << 33);
  const CommandResult imported = run({"tune", "--import", file});
  EXPECT_EQ(imported.status, 0);
  EXPECT_EQ(imported.out, "127 records imported, 0 present before\n");
  EXPECT_EQ(imported.err, "lacuna: " + file + ": all but the first 64 MiB skipped\n");
}

TEST_F(Tune, ARecordOfTheInterpreterServesOnlyTheInterpreter) {
  const Variables interpreter = {{"LACUNA_HOST_PLUGIN", "off"}};
  ASSERT_EQ(tuning(run(tune_small(), interpreter))["state"], "tuned");
  const auto origin = [&](const Variables& variables) {
    const Json plan = parse_document(
        run({"explain", spec_, "--arch", "cpu", "--head-dim", "64", "--json"}, variables))["plans"];
    for (const Json& value : plan[0]["values"])
      if (value["name"] == "tile.q") return value["origin"].get<std::string>();
    return std::string();
  };
  EXPECT_EQ(origin(interpreter), "tuned");
  const bool is_compiled = std::filesystem::exists(LACUNA_BINARY_DIR "/bin/liblacuna_host.so");
  EXPECT_EQ(origin({}) == "tuned", !is_compiled);
}

TEST_F(Tune, TakesTheSeedsThatShip) {
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LACUNA_SOURCE_DIR "/cache/seed")) {
    if (entry.path().extension() != ".jsonl") continue;
    ++seeds;
    const CommandResult imported = run({"tune", "--import", entry.path()});
    EXPECT_EQ(imported.status, 0) << imported.err;
    EXPECT_EQ(imported.err, "");
    EXPECT_TRUE(imported.out.ends_with(" records imported, 0 present before\n")) << imported.out;
  }
  EXPECT_GT(seeds, 0);
}

TEST_F(Tune, SaysWhatIsFixedWhereNothingIsOpen) {
  const std::string spec = scratch_.write(
      "fixed.json",
      R"({"version": 1, "name": "fixed", "tile": {"q": 64, "k": 64, "order": "ascending"}})");
  const CommandResult result = run({"tune", spec, "--shape", "b=1,h=2,n=256", "--head-dim", "64",
                                    "--device", "cpu", "--threads", "2"});
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.out.find("\n  nothing to tune: tile.q (written), tile.k (written), tile.order "
                            "(written), threads (--threads)\n"),
            std::string::npos)
      << result.out;
  EXPECT_EQ(database(), "");
}

TEST_F(Tune, EveryPointThatIsNotMeasuredHasItsReason) {
  const std::string spec = scratch_.write("open.json", R"({"version": 1, "name": "open"})");
  const Json found =
      tuning(run({"tune", spec, "--shape", "b=1,h=1,n=64", "--head-dim", "64", "--device", "cpu",
                  "--threads", "2", "--budget", "0.001s", "--json"}));
  EXPECT_EQ(found["complete"], false);
  ASSERT_EQ(found["measured"].size(), 1u) << "what is used without tuning, whatever the time";
  EXPECT_EQ(found["measured"][0]["config"], kUsual);
  std::map<std::string, int> by;
  for (const Json& point : found["not_measured"]) {
    ++by[point["by"]];
    EXPECT_NE(point["reason"], "") << point;
  }
  EXPECT_GT(by["budget"], 0);
  EXPECT_GT(by["cost model"], 0);
  EXPECT_EQ(by["budget"] + by["cost model"] + by["compiler"], 49);
}

TEST_F(Tune, RefusesWhatItCannotDo) {
  const auto expect = [&](const std::vector<std::string>& arguments, int status,
                          const std::string& message, const Variables& variables = {}) {
    const CommandResult result = run(arguments, variables);
    EXPECT_EQ(result.status, status) << message;
    EXPECT_EQ(result.err.substr(0, result.err.find('\n')), message);
    EXPECT_EQ(result.out, "");
  };
  expect({"tune"}, 2, "lacuna tune: error: nothing to tune: name a spec, --import or --export");
  expect({"tune", spec_, "--budget", "soon"}, 2,
         "lacuna tune: error: --budget: expected a time like 60s or 2m, got \"soon\"");
  expect({"tune", spec_, "--param", "windw=3", "--device", "cpu"}, 1,
         "lacuna: error: spec small has no parameter windw; it has none");
  expect({"tune", "--export", scratch_.file("x")}, 1,
         "lacuna: error: nothing to export: there are no tuning records");
  const std::string rubbish = scratch_.write("rubbish", "{\n");
  const CommandResult imported = run({"tune", "--import", rubbish});
  EXPECT_EQ(imported.status, 1);
  EXPECT_EQ(imported.err, "lacuna: " + rubbish +
                              ":1: not a tuning record of this version, skipped\nlacuna: error: " +
                              rubbish + ": no tuning records to import\n");
  expect(
      {"tune", spec_, "--shapes", rubbish}, 1,
      "lacuna: error: " + rubbish + R"(: expected an array of shapes, as in ["b=1,h=32,n=8192"])");
  const std::string large = scratch_.write("large", std::string((1 << 20) + 1, ' '));
  expect({"tune", spec_, "--shapes", large}, 1,
         large + ": error: cannot be read: it is larger than 1048576 bytes [E0608]");
  const std::string shapes = scratch_.write("shapes", R"(["n=64", "n=x"])");
  expect({"tune", spec_, "--shapes", shapes}, 1,
         "lacuna: error: " + shapes +
             ": shape 2: n: expected a whole number from 1 to 2147483647, got \"x\"");
  std::vector<std::string> plain = tune_small();
  plain.pop_back();
  expect(plain, 3,
         "lacuna: error: cache directory " + rubbish + ": cannot be opened: Not a directory",
         {{"LACUNA_CACHE_DIR", rubbish}});
}

}  // namespace
}  // namespace lacuna::tests

// The tuning database: what is written is read, what is damaged is kept, and nobody loses a line.
#include "cache/tuning.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

TuningRecord record_number(int number) {
  TuningRecord record;
  record.hardware = "machine-1";
  record.variant = "abc";
  record.problem = "rows=1 group=1 n_q=512 n_k=512";
  record.density = "1";
  record.config = "q64 k" + std::to_string(number);
  record.median_us = 100 + number;
  record.spread = 0.25;
  record.rung = 2;
  record.spec = "dense";
  record.library = "0.1";
  record.compiler = "LLVM";
  return record;
}

TuningDatabase database_in(const Scratch& scratch) {
  return {scratch.path("cache"), scratch.path("locks")};
}

std::string file_in(const Scratch& scratch) { return scratch.path("cache/tuning/machine-1.jsonl"); }

TEST(TuningLine, EveryFieldSurvives) {
  TuningRecord record = record_number(3);
  record.status = TuningStatus::kHang;
  record.best = "space";
  record.budget_s = 60;
  record.detail = "no \"answer\"\nat all";
  record.driver = "CUDA 13.0";
  record.inputs = "tau=0.5";
  record.shape = "b=1";
  const std::string line = print_tuning_line(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(parse_tuning_line(line), record);
}

TEST(TuningLine, WhatIsNoRecordIsRefused) {
  const std::string good = print_tuning_line(record_number(1));
  EXPECT_TRUE(parse_tuning_line(good));
  EXPECT_FALSE(parse_tuning_line(good.substr(0, good.size() - 1))) << "cut";
  EXPECT_FALSE(parse_tuning_line("[]"));
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string line = good;
    line.replace(line.find(from), from.size(), to);
    return parse_tuning_line(line);
  };
  EXPECT_FALSE(with("\"tuning\":1", "\"tuning\":2")) << "another version";
  EXPECT_FALSE(with("machine-1", "../machine")) << "not a file name";
  EXPECT_FALSE(with("\"ok\"", "\"fine\""));
  EXPECT_FALSE(with("101.0", "-1")) << "a time before its beginning";
  EXPECT_FALSE(with("101.0", "0")) << "ok, yet no time";
  EXPECT_FALSE(with("\"variant\"", "\"other\"")) << "a field is missing";
}

TEST(TuningDatabase, TheLastLineAboutAThingCounts) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  TuningRecord again = record_number(1);
  again.median_us = 50;
  ASSERT_EQ(database.append({record_number(1), record_number(2)}), "");
  ASSERT_EQ(database.append({again}), "");
  const TuningFile file = database.read("machine-1");
  EXPECT_EQ(file.records, (std::vector{record_number(2), again}));
  EXPECT_EQ(file.superseded, 1u);
  EXPECT_EQ(file.warnings, std::vector<std::string>());
  EXPECT_EQ(database.hardware(), std::vector<std::string>{"machine-1"});
  EXPECT_TRUE(database.read("machine-1", "another variant").records.empty());
}

TEST(TuningDatabase, DamagedAndForeignLinesAreNamedAndKept) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  ASSERT_EQ(database.append({record_number(1)}), "");
  const std::string half = print_tuning_line(record_number(2)).substr(0, 40);
  write_whole(file_in(scratch), read_whole(file_in(scratch)) + "a note\n" + half);
  ASSERT_EQ(database.append({record_number(3)}), "") << "begins a line of its own";
  const TuningFile file = database.read("machine-1");
  EXPECT_EQ(file.records, (std::vector{record_number(1), record_number(3)}));
  EXPECT_EQ(file.foreign, (std::vector<std::string>{"a note", half}));
  const std::string path = file_in(scratch);
  EXPECT_EQ(file.warnings,
            (std::vector<std::string>{path + ":2: not a tuning record of this version, skipped",
                                      path + ":3: not a tuning record of this version, skipped"}));
}

TEST(TuningDatabase, ARewriteDropsHistoryAndNothingElse) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  ASSERT_EQ(database.append({record_number(1)}), "");
  write_whole(file_in(scratch), read_whole(file_in(scratch)) + "a note\n");
  ASSERT_EQ(database.compact("machine-1"), "");
  EXPECT_EQ(database.read("machine-1").foreign.size(), 1u) << "little to gain: not rewritten";
  for (int round = 0; round < 5; ++round) {
    std::vector<TuningRecord> records;
    for (int n = 0; n < 100; ++n) records.push_back(record_number(n));
    ASSERT_EQ(database.append(records), "");
  }
  ASSERT_EQ(database.compact("machine-1"), "");
  const TuningFile file = database.read("machine-1");
  EXPECT_EQ(file.records.size(), 100u);
  EXPECT_EQ(file.superseded, 0u);
  EXPECT_EQ(file.foreign, std::vector<std::string>{"a note"});
  EXPECT_EQ(files_below(scratch.path("cache"), ".new"), std::vector<std::string>());
}

TEST(TuningDatabase, ProcessesThatWriteAndRewriteAtOnceLoseNothing) {
  const Scratch scratch;
  constexpr int kProcesses = 4, kRecords = 150, kRepeats = 3;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(start_child([&scratch, process] {
      const TuningDatabase database = database_in(scratch);
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        for (int n = 0; n < kRecords; ++n) {
          require(database.append({record_number(process * kRecords + n)}).empty(), "append");
          if (n % 50 == 49) require(database.compact("machine-1").empty(), "compact");
        }
      }
      return 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
  const TuningFile file = database_in(scratch).read("machine-1");
  EXPECT_EQ(file.records.size(), static_cast<std::size_t>(kProcesses * kRecords));
  EXPECT_EQ(file.foreign, std::vector<std::string>());
}

TEST(TuningDatabase, SaysWhyItCannotBeWritten) {
  const Scratch scratch;
  EXPECT_EQ(TuningDatabase("", "").append({record_number(1)}),
            "there is no cache directory: set LACUNA_CACHE_DIR");
  EXPECT_TRUE(TuningDatabase("", "").read("machine-1").records.empty());
  const std::string taken = scratch.path("taken");
  write_whole(taken, "");
  EXPECT_EQ(TuningDatabase(taken, "").append({record_number(1)}),
            "tuning directory " + taken + "/tuning: cannot be created: Not a directory");
  const TuningDatabase database = database_in(scratch);
  ASSERT_EQ(database.append({record_number(1)}), "");
  ASSERT_EQ(::chmod(scratch.path("cache/tuning").c_str(), 0777), 0);
  const std::string open = "tuning directory " + scratch.path("cache/tuning") +
                           ": can be written by others (mode 0777, expected 0700)";
  EXPECT_EQ(database.check_writable("machine-1"), open);
  EXPECT_EQ(database.read("machine-1").warnings, std::vector<std::string>{open});
  ASSERT_EQ(::chmod(scratch.path("cache/tuning").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(scratch.path("cache/tuning/machine-2.jsonl").c_str(), 0700), 0);
  EXPECT_EQ(database.check_writable("machine-2"),
            scratch.path("cache/tuning/machine-2.jsonl") + ": cannot be written: Is a directory");
}

}  // namespace
}  // namespace lacuna::cache

// The tuning database: what counts, what is merged, what is skipped, what is refused.
#include "cache/tuning/tuning.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "cache/tuning/line.hpp"
#include "tests/cache/tuning_harness.hpp"

namespace lacuna::cache {
namespace {

TEST(TuningDatabase, TheLastLineAboutAThingCounts) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  TuningRecord again = record_number(1);
  again.median_us = 50;
  ASSERT_EQ(database.append({record_number(1), record_number(2)}), "");
  ASSERT_EQ(database.append({again}), "");
  const TuningRecords found = database.read("machine-1");
  EXPECT_EQ(found.records, (std::vector{record_number(2), again}));
  EXPECT_EQ(found.warnings, std::vector<std::string>());
  EXPECT_EQ(database.hardware(), std::vector<std::string>{"machine-1"});
  EXPECT_TRUE(database.read("machine-1", "another variant").records.empty());
  TuningRecord interpreted = again;
  interpreted.compiler = "interpreter";
  ASSERT_EQ(database.append({interpreted}), "");
  EXPECT_EQ(database.read("machine-1", "abc").records,
            (std::vector{record_number(2), again, interpreted}))
      << "what one compiler's code takes says nothing about another's";
}

TEST(TuningDatabase, TheOrderHoldsWhateverTheClocksOfWritersAndTheOrderOfMerging) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  ASSERT_EQ(database.append({record_number(1)}), "");
  // A writer whose clock is a century ahead.
  const std::string ahead = "4900000000000000.00000000000000aa.jsonl";
  TuningRecord theirs = record_number(1);
  theirs.median_us = 70;
  std::string line = print_tuning_line(theirs);
  line.insert(line.size() - 1, ",\"added_us\":4900000000000000");
  write_private(scratch.path(kFolder) + "/" + ahead, line + "\n");
  ASSERT_EQ(database.compact("machine-1", "abc"), "");
  EXPECT_EQ(database.read("machine-1", "abc").records, std::vector{theirs});
  TuningRecord after = record_number(1);
  after.median_us = 60;
  ASSERT_EQ(database.append({after}), "");
  EXPECT_EQ(database.read("machine-1", "abc").records, std::vector{after});
  // A writer that was slow: what it adds now it took before.
  std::string late = print_tuning_line(record_number(1));
  late.insert(late.size() - 1, ",\"added_us\":4800000000000000");
  write_private(scratch.path(kFolder) + "/4800000000000000.00000000000000bb.jsonl", late + "\n");
  ASSERT_EQ(database.compact("machine-1", "abc"), "");
  EXPECT_EQ(database.read("machine-1", "abc").records, std::vector{after});
  EXPECT_EQ(segments_in(scratch).size(), 1u);
}

TEST(TuningDatabase, DamagedAndForeignLinesAreNamedAndKept) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  ASSERT_EQ(database.append({record_number(1)}), "");
  const std::string path = only_segment(scratch);
  const std::string bytes =
      read_whole(path) + "a note\n" + print_tuning_line(record_number(2)).substr(0, 40);
  write_whole(path, bytes);
  ASSERT_EQ(database.append({record_number(3)}), "");
  ASSERT_EQ(database.append({record_number(4)}), "");
  for (int round = 0; round < 2; ++round) {
    const TuningRecords found = database.read("machine-1");
    EXPECT_EQ(found.records, (std::vector{record_number(1), record_number(3), record_number(4)}));
    EXPECT_EQ(found.warnings,
              std::vector<std::string>{path + ":2: not a tuning record of this version, skipped, "
                                              "as are 1 of the lines after it"});
    ASSERT_EQ(database.compact("machine-1", "abc"), "");
    EXPECT_EQ(read_whole(path), bytes) << "left where it is";
    EXPECT_EQ(segments_in(scratch).size(), 2u);
  }
}

TEST(TuningDatabase, MergingDropsHistoryAndNothingElse) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  for (int round = 0; round < 3; ++round) {
    std::vector<TuningRecord> records;
    for (int n = 0; n < 100; ++n) {
      records.push_back(record_number(n));
      records.back().median_us += round;
    }
    ASSERT_EQ(database.append(records), "");
  }
  const std::vector<TuningRecord> before = database.read("machine-1").records;
  ASSERT_EQ(before.size(), 100u);
  ASSERT_EQ(database.compact("machine-1", "abc"), "");
  EXPECT_EQ(database.read("machine-1").records, before);
  const std::string merged = read_whole(only_segment(scratch));
  EXPECT_EQ(std::ranges::count(merged, '\n'), 100);
  ASSERT_EQ(database.compact("machine-1", "abc"), "");
  EXPECT_EQ(read_whole(only_segment(scratch)), merged) << "nothing left to do";
}

TEST(TuningDatabase, ManySegmentsAreMergedByWhoeverAddsOne) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  for (int n = 0; n < 140; ++n) ASSERT_EQ(database.append({record_number(n)}), "");
  EXPECT_EQ(database.read("machine-1").records.size(), 140u);
  EXPECT_LE(segments_in(scratch).size(), 65u);
}

TEST(TuningDatabase, AReaderOfOneVariantOpensNoOther) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  ASSERT_EQ(database.append({record_number(1)}), "");
  TuningRecord other = record_number(2);
  other.variant = "def";
  ASSERT_EQ(database.append({other}), "");
  write_private(scratch.path("cache/tuning/machine-1/def/0.jsonl"), "rubbish\n");
  const TuningRecords found = database.read("machine-1", "abc");
  EXPECT_EQ(found.records, std::vector{record_number(1)});
  EXPECT_EQ(found.warnings, std::vector<std::string>());
  EXPECT_EQ(database.read("machine-1").records, (std::vector{record_number(1), other}));
}

TEST(TuningDatabase, FilesBeyondTheBoundAreSkippedWithOneWarning) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  ASSERT_EQ(database.append({record_number(1)}), "");
  for (const char* name : {"/9000000000000000.a.jsonl", "/0000000000000001.b.jsonl"}) {
    write_private(scratch.path(kFolder) + name, "");
    ASSERT_EQ(::truncate((scratch.path(kFolder) + name).c_str(), off_t{1} << 33), 0);
  }
  for (int round = 0; round < 2; ++round) {
    const TuningRecords found = database.read("machine-1", "abc");
    EXPECT_EQ(found.records, std::vector{record_number(1)});
    EXPECT_EQ(found.warnings,
              std::vector<std::string>{scratch.path(kFolder) + ": 2 files beyond 16 MiB skipped"});
    ASSERT_EQ(database.compact("machine-1", "abc"), "");
  }
  EXPECT_EQ(segments_in(scratch).size(), 3u) << "what was not read is not removed";
}

TEST(TuningDatabase, TheSingleFileOfEarlierVersionsIsImportedOnce) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  const std::string single = scratch.path("cache/tuning/machine-1.jsonl");
  TuningRecord again = record_number(1), other = record_number(2);
  again.median_us = 50;
  other.variant = "def";
  std::string lines;
  for (const TuningRecord& record : {record_number(1), other, again, record_number(3)})
    lines += print_tuning_line(record) + "\n";
  write_private(single, lines + "a note\n");
  for (const char* folder : {"cache", "cache/tuning"})
    ASSERT_EQ(::chmod(scratch.path(folder).c_str(), 0700), 0);
  age(single, 1);
  EXPECT_EQ(database.hardware(), std::vector<std::string>{"machine-1"});
  TuningRecord newer = record_number(3);
  newer.median_us = 40;
  ASSERT_EQ(database.append({newer}), "");
  const TuningRecords first = database.read("machine-1", "abc");
  EXPECT_EQ(first.records, (std::vector{again, newer}));
  EXPECT_EQ(first.warnings,
            std::vector<std::string>{single + ":5: not a tuning record of this version, skipped"});
  EXPECT_FALSE(exists(single));
  const std::vector<std::string> kept = files_below(scratch.path("cache"), ".imported");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(read_whole(kept[0]), lines + "a note\n");
  // As after death between adding the records and renaming the file.
  ASSERT_EQ(::rename(kept[0].c_str(), single.c_str()), 0);
  EXPECT_EQ(database.read("machine-1", "abc").records, first.records);
  const TuningRecords second = database.read("machine-1");
  EXPECT_EQ(second.records, (std::vector{other, again, newer}));
  EXPECT_EQ(second.warnings, std::vector<std::string>());
  EXPECT_EQ(database.hardware(), std::vector<std::string>{"machine-1"});
}

TEST(TuningDatabase, ASingleFileThatCannotBeImportedIsReadInItsPlace) {
  const Scratch scratch;
  const std::string single = scratch.path("cache/tuning/machine-1.jsonl");
  write_private(single, print_tuning_line(record_number(1)) + "\n");
  ASSERT_EQ(::chmod(scratch.path("cache").c_str(), 0700), 0);
  write_private(scratch.path("cache/tuning/machine-1"), "no folder");
  ASSERT_EQ(::chmod(scratch.path("cache/tuning").c_str(), 0700), 0);
  for (int round = 0; round < 2; ++round)
    EXPECT_EQ(database_in(scratch).read("machine-1", "abc").records, std::vector{record_number(1)});
  EXPECT_TRUE(exists(single));
}

TEST(TuningDatabase, AVastSingleFileIsReadToItsBound) {
  const Scratch scratch;
  const std::string single = scratch.path("cache/tuning/machine-1.jsonl");
  write_private(single, "");
  for (const char* folder : {"cache", "cache/tuning"})
    ASSERT_EQ(::chmod(scratch.path(folder).c_str(), 0700), 0);
  ASSERT_EQ(::truncate(single.c_str(), (off_t{1} << 33) - 1), 0);
  std::ofstream(single, std::ios::binary | std::ios::app)
      << "\n"
      << print_tuning_line(record_number(1)) << "\n";
  const TuningRecords found = database_in(scratch).read("machine-1", "abc");
  EXPECT_EQ(found.records, std::vector{record_number(1)}) << "the last lines count";
  EXPECT_EQ(found.warnings, std::vector<std::string>{single + ": all but the last 8 MiB skipped"});
}

TEST(TuningDatabase, SaysWhyItCannotBeWritten) {
  const Scratch scratch;
  EXPECT_EQ(TuningDatabase("", "").append({record_number(1)}),
            "there is no cache directory: set LACUNA_CACHE_DIR");
  EXPECT_TRUE(TuningDatabase("", "").read("machine-1").records.empty());
  const std::string taken = scratch.path("taken");
  write_whole(taken, "");
  EXPECT_EQ(TuningDatabase(taken, "").append({record_number(1)}),
            "cache directory " + taken + ": cannot be opened: Not a directory");
  const TuningDatabase database = database_in(scratch);
  ASSERT_EQ(database.append({record_number(1)}), "");
  write_private(scratch.path("cache/tuning/machine-2"), "");
  EXPECT_EQ(database.check_writable("machine-2"),
            scratch.path("cache/tuning/machine-2") + ": cannot be written: Not a directory");
  TuningRecord nameless = record_number(1);
  nameless.variant = "../..";
  EXPECT_EQ(database.append({nameless}),
            "a tuning record of hardware \"machine-1\" and variant \"../..\": no names of folders");
}

TEST(TuningDatabase, WhatOthersCanWriteIsNotRead) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  ASSERT_EQ(database.append({record_number(1)}), "");
  const auto expect_refused = [&](const std::string& name, mode_t mode, const std::string& what) {
    const std::string path = scratch.path("cache/" + name);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const TuningRecords found = database.read("machine-1", "abc");
    EXPECT_EQ(found.records, std::vector<TuningRecord>()) << name;
    EXPECT_EQ(found.warnings, std::vector<std::string>{what}) << name;
    EXPECT_EQ(::chmod(path.c_str(), mode & 07700), 0);
    EXPECT_EQ(database.read("machine-1", "abc").records, std::vector{record_number(1)});
  };
  for (const std::string name : {"tuning", "tuning/machine-1", "tuning/machine-1/abc"}) {
    const std::string what = "cache directory " + scratch.path("cache") + ": " + name +
                             " can be written by others (mode 0770, expected 0700)";
    expect_refused(name, 0770, what);
  }
  const std::string segment = only_segment(scratch).substr(scratch.path("cache/").size());
  const std::string name = segment.substr(segment.rfind('/') + 1);
  expect_refused(
      segment, 0602,
      scratch.path(kFolder) + ": " + name + " can be written by others (mode 0602, expected 0600)");
  const std::string tuning = scratch.path("cache/tuning");
  ASSERT_EQ(::rename(tuning.c_str(), scratch.path("elsewhere").c_str()), 0);
  ASSERT_EQ(::symlink(scratch.path("elsewhere").c_str(), tuning.c_str()), 0);
  const std::string link =
      "cache directory " + scratch.path("cache") + ": tuning is a symbolic link";
  EXPECT_EQ(database.read("machine-1", "abc").warnings, std::vector<std::string>{link});
  EXPECT_EQ(database.check_writable("machine-1"), link);
  EXPECT_EQ(database.append({record_number(2)}), link);
}

TEST(TuningDatabase, WhatAVariantCannotHoldIsDroppedFromTheFront) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  std::vector<TuningRecord> records;
  for (int number = 0; number < 600; ++number) {
    records.push_back(record_number(number));
    records.back().detail.assign(40'000, 'x');
  }
  records.push_back(record_number(0));
  records.back().variant = "def";
  std::vector<TuningRecord> kept = records;
  const std::vector<std::string> warnings = drop_what_is_too_much(kept);
  ASSERT_EQ(warnings.size(), 1u);
  const std::size_t dropped = records.size() - kept.size();
  EXPECT_EQ(warnings[0], "machine-1/abc: the first " + std::to_string(dropped) +
                             " records beyond 16 MiB skipped");
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), records.begin() + std::ptrdiff_t(dropped)));
  EXPECT_EQ(database.append(kept), "");
  EXPECT_EQ(database.read("machine-1", "abc").records.size(), kept.size() - 1);
  EXPECT_EQ(database.read("machine-1", "def").records.size(), 1u);
}

}  // namespace
}  // namespace lacuna::cache

// Nodes that add and merge at once, and die while they do: nobody loses a record.
#include <algorithm>
#include <csignal>
#include <random>
#include <set>
#include <thread>

#include "cache/tuning/line.hpp"
#include "tests/cache/tuning_harness.hpp"

namespace lacuna::cache {
namespace {

std::vector<TuningRecord> sorted(std::vector<TuningRecord> records) {
  std::ranges::sort(records, {}, print_tuning_line);
  return records;
}

/// Two nodes: each has locks that the other does not see.
TuningDatabase database_of_node(const Scratch& scratch, int node) {
  return {scratch.path("cache"), scratch.path("locks-of-node-" + std::to_string(node))};
}

TEST(TuningDatabase, NothingIsLostWhileAnotherNodeMergesAllTheTime) {
  const Scratch scratch;
  constexpr int kNodes = 2;
  constexpr int kRecords = 50;
  const pid_t merger = start_child([&scratch] {
    const TuningDatabase database = database_of_node(scratch, 9);
    while (!exists(scratch.path("done")))
      require(database.compact("machine-1", "abc").empty(), "merged");
    return 0;
  });
  const pid_t reader = start_child([&scratch] {
    const TuningDatabase database = database_of_node(scratch, 8);
    for (std::size_t most = 0; !exists(scratch.path("done"));) {
      const std::size_t found = database.read("machine-1", "abc").records.size();
      require(found >= most, "what was found before");
      most = found;
    }
    return 0;
  });
  std::vector<pid_t> writers;
  for (int node = 0; node < kNodes; ++node) {
    writers.push_back(start_child([&scratch, node] {
      const TuningDatabase database = database_of_node(scratch, node);
      for (int n = 0; n < kRecords; ++n) {
        const TuningRecord record = record_number(node * kRecords + n);
        require(database.append({record}).empty(), "added");
        const TuningRecords found = database.read("machine-1", "abc");
        require(std::ranges::count(found.records, record) == 1, "found at once");
        require(found.warnings.empty(), "no warning");
      }
      return 0;
    }));
  }
  for (const pid_t writer : writers) EXPECT_EQ(wait_for_child(writer), 0);
  write_whole(scratch.path("done"), "");
  EXPECT_EQ(wait_for_child(merger), 0);
  EXPECT_EQ(wait_for_child(reader), 0);
  const TuningRecords found = database_in(scratch).read("machine-1", "abc");
  std::vector<TuningRecord> expected;
  for (int n = 0; n < kNodes * kRecords; ++n) expected.push_back(record_number(n));
  EXPECT_EQ(sorted(found.records), sorted(expected));
}

TEST(TuningDatabase, AFullDiskLosesNothing) {
  const Scratch scratch;
  const pid_t child = start_child([&scratch] {
    if (!mount_private_tmpfs(scratch.path("cache"), "size=64k")) return kSkipped;
    const TuningDatabase database = database_in(scratch);
    std::vector<TuningRecord> added;
    std::string problem;
    while (problem.empty() && added.size() < 100) {
      added.push_back(record_number(static_cast<int>(added.size())));
      problem = database.append({added.back()});
    }
    added.pop_back();
    require(problem.ends_with(": cannot be written: No space left on device"), "an error");
    require(database.compact("machine-1", "abc")
                .ends_with(": cannot be merged: No space left on device"),
            "no room to merge");
    require(!added.empty() && database.read("machine-1", "abc").records == added, "all of them");
    require(files_below(scratch.path("cache"), ".tmp.").empty(), "nothing half-written is left");
    return 0;
  });
  const int status = wait_for_child(child);
  if (status == kSkipped) GTEST_SKIP() << "needs the right to mount a file system (root)";
  EXPECT_EQ(status, 0);
}

TEST(TuningDatabase, AWriterOrMergerThatIsKilledLosesNothing) {
  const Scratch scratch;
  const TuningDatabase database = database_in(scratch);
  std::mt19937 random(20261123);
  std::uniform_int_distribution<int> delay_us(200, 6000);
  for (int round = 0; round < 25; ++round) {
    const pid_t child = start_child([&scratch, round]() -> int {
      const TuningDatabase database = database_in(scratch);
      for (int n = 0;; ++n) {
        require(database.append({record_number(round * 10'000 + n)}).empty(), "added");
        count_up(scratch.path("added-" + std::to_string(round)));
        if (n % 3 == 2) require(database.compact("machine-1", "abc").empty(), "merged");
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us(random)));
    ::kill(child, SIGKILL);
    ASSERT_EQ(wait_for_child(child), 128 + SIGKILL);
  }
  const TuningRecords found = database.read("machine-1", "abc");
  EXPECT_EQ(found.warnings, std::vector<std::string>());
  std::set<std::string> configs;
  for (const TuningRecord& record : found.records) configs.insert(record.config);
  for (int round = 0; round < 25; ++round) {
    const int added = count_of(scratch.path("added-" + std::to_string(round)));
    for (int n = 0; n < added; ++n)
      EXPECT_TRUE(configs.contains("q64 k" + std::to_string(round * 10'000 + n)));
  }
  for (const std::string& path : files_below(scratch.path("cache"), ".tmp.")) age(path, 2);
  ASSERT_EQ(database.append({record_number(1)}), "");
  ASSERT_EQ(database.append({record_number(2)}), "");
  ASSERT_EQ(database.compact("machine-1", "abc"), "");
  EXPECT_EQ(files_below(scratch.path("cache"), ".tmp."), std::vector<std::string>());
}

}  // namespace
}  // namespace lacuna::cache

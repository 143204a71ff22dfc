// Whatever lies where an entry should be: a miss and a rebuild, never an error, never a wrong
// kernel.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/entry_format.hpp"
#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

class DamagedEntry : public testing::Test {
 protected:
  DamagedEntry() : store(options_in(scratch)), key(key_number(1)), path(file_of(scratch, key)) {}

  void SetUp() override {
    ASSERT_TRUE(store.publish(key, kernel_for(key)));
    ASSERT_TRUE(exists(path));
  }

  void expect_rejected_and_rebuilt() {
    EXPECT_FALSE(store.load(key).has_value());
    EXPECT_EQ(store.counters().rejected, 1U);
    EXPECT_FALSE(exists(path)) << "a damaged entry is removed";
    const auto again = store.obtain(key, [&] { return kernel_for(key); });
    ASSERT_TRUE(again.entry.has_value());
    EXPECT_FALSE(again.hit);
    EXPECT_TRUE(is_kernel_of(*again.entry, key));
    EXPECT_TRUE(store.publish(key, *again.entry));
    const auto healed = Store(options_in(scratch)).load(key);
    ASSERT_TRUE(healed.has_value());
    EXPECT_TRUE(is_kernel_of(*healed, key));
  }

  Scratch scratch;
  Store store;
  Key key;
  std::string path;
};

TEST_F(DamagedEntry, Empty) {
  write_whole(path, "");
  expect_rejected_and_rebuilt();
}

TEST_F(DamagedEntry, Truncated) {
  const std::string bytes = read_whole(path);
  write_whole(path, bytes.substr(0, bytes.size() / 2));
  expect_rejected_and_rebuilt();
}

TEST_F(DamagedEntry, Extended) {
  write_whole(path, read_whole(path) + "tail");
  expect_rejected_and_rebuilt();
}

TEST_F(DamagedEntry, FilledWithZeros) {
  write_whole(path, std::string(read_whole(path).size(), '\0'));
  expect_rejected_and_rebuilt();
}

TEST_F(DamagedEntry, BitFlippedInEachRegion) {
  const std::string bytes = read_whole(path);
  const std::size_t header = 0, table = 40, key_text = 154, log = bytes.find("ptxas"),
                    first = bytes.find("ELF"), last = bytes.rfind("ELF");
  std::uint64_t rejected = 0;
  for (const std::size_t place :
       {header, table, key_text, log, first, first + 100, last, bytes.size() - 1}) {
    std::string flipped = bytes;
    flipped[place] ^= 4;
    write_whole(path, flipped);
    EXPECT_FALSE(store.load(key).has_value()) << "byte " << place;
    EXPECT_EQ(store.counters().rejected, ++rejected);
    EXPECT_FALSE(exists(path));
  }
}

TEST_F(DamagedEntry, ForeignKeyUnderOurName) {
  const Key other = key_number(2);
  write_whole(path, encode_entry(kernel_for(other)));
  expect_rejected_and_rebuilt();
}

TEST_F(DamagedEntry, KernelOfAnotherMachine) {
  Entry entry = kernel_for(key);
  entry.cubins.back()[18] = 62;
  write_whole(path, encode_entry(entry));
  expect_rejected_and_rebuilt();
}

TEST_F(DamagedEntry, SymbolicLinkEvenToAGoodEntry) {
  const std::string elsewhere = scratch.path("elsewhere");
  ASSERT_EQ(::rename(path.c_str(), elsewhere.c_str()), 0);
  ASSERT_EQ(::symlink(elsewhere.c_str(), path.c_str()), 0);
  expect_rejected_and_rebuilt();
  EXPECT_TRUE(exists(elsewhere)) << "only the link is removed";
}

TEST_F(DamagedEntry, PipeDoesNotBlock) {
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_rejected_and_rebuilt();
}

TEST_F(DamagedEntry, DirectoryInItsPlace) {
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  EXPECT_FALSE(store.load(key).has_value());
  EXPECT_EQ(store.counters().rejected, 1U);
  EXPECT_FALSE(store.publish(key, kernel_for(key))) << "cannot be replaced";
  const auto from_memory = store.load(key);
  ASSERT_TRUE(from_memory.has_value());
  EXPECT_TRUE(is_kernel_of(*from_memory, key));
}

TEST_F(DamagedEntry, EntryOwnedBySomebodyElseIsNeitherUsedNorRemoved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(store.load(key).has_value());
  EXPECT_EQ(store.counters().rejected, 1U);
  EXPECT_TRUE(exists(path));
}

TEST_F(DamagedEntry, ListNamesTheDamage) {
  const Key other = key_number(2);
  ASSERT_TRUE(store.publish(other, kernel_for(other)));
  write_whole(path, encode_entry(kernel_for(other)));
  int intact = 0;
  for (const EntryInfo& info : store.list()) {
    if (info.sha256 == key.sha256) {
      EXPECT_FALSE(info.intact);
      EXPECT_EQ(info.damage, "entry of another key");
      EXPECT_EQ(info.path, path);
    } else {
      EXPECT_TRUE(info.intact);
      EXPECT_EQ(info.metadata, R"({"registers": 168})");
      EXPECT_EQ(info.target, "sm_90a");
      ++intact;
    }
  }
  EXPECT_EQ(intact, 1);
}

}  // namespace
}  // namespace lacuna::cache

// The byte cap: the least recently used entries leave first.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>

#include "cache/entry_format.hpp"
#include "cache/files/locks.hpp"
#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

constexpr std::size_t kPadding = 4000;

std::uint64_t entry_bytes() { return encode_entry(kernel_for(key_number(0), kPadding)).size(); }

StoreOptions room_for(const Scratch& scratch, std::uint64_t entries) {
  StoreOptions options = options_in(scratch);
  options.byte_cap = entries * (entry_bytes() + 8);  // numbers differ in length
  return options;
}

void publish_range(Store& store, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    ASSERT_TRUE(store.publish(key_number(i), kernel_for(key_number(i), kPadding)));
  }
}

TEST(Eviction, KeepsTheMostRecentlyUsed) {
  const Scratch scratch;
  Store store(room_for(scratch, 4));
  publish_range(store, 0, 4);
  for (int i = 0; i < 4; ++i) age(file_of(scratch, key_number(i)), 24 * (10 - i));
  EXPECT_TRUE(store.load(key_number(0)).has_value()) << "the oldest, used now";
  publish_range(store, 4, 6);
  const std::vector<bool> expected = {true, false, false, true, true, true};
  for (int i = 0; i < 6; ++i) {
    const auto entry = store.load(key_number(i));
    EXPECT_EQ(entry.has_value(), expected[static_cast<std::size_t>(i)]) << "key " << i;
    EXPECT_TRUE(!entry || is_kernel_of(*entry, key_number(i)));
  }
  EXPECT_EQ(store.counters().evicted, 2U);
}

TEST(Eviction, CapHoldsForEntriesOfEarlierProcesses) {
  const Scratch scratch;
  Store earlier(options_in(scratch));
  publish_range(earlier, 0, 10);
  for (int i = 0; i < 10; ++i) age(file_of(scratch, key_number(i)), 1 + i);
  Store store(room_for(scratch, 3));
  publish_range(store, 10, 11);
  EXPECT_EQ(store.list().size(), 3U);
  EXPECT_TRUE(store.load(key_number(10)).has_value());
  EXPECT_TRUE(store.load(key_number(0)).has_value());
  EXPECT_TRUE(store.load(key_number(1)).has_value());
}

TEST(Eviction, HitMarksAnEntryAsUsedOnceADay) {
  const Scratch scratch;
  Store store(options_in(scratch));
  const auto modified_s = [&] {
    struct stat status {};
    EXPECT_EQ(::stat(file_of(scratch, key_number(0)).c_str(), &status), 0);
    return status.st_mtim.tv_sec;
  };
  publish_range(store, 0, 1);
  age(file_of(scratch, key_number(0)), 23);
  const auto yesterday = modified_s();
  EXPECT_TRUE(store.load(key_number(0)).has_value());
  EXPECT_EQ(modified_s(), yesterday);
  age(file_of(scratch, key_number(0)), 25);
  EXPECT_TRUE(store.load(key_number(0)).has_value());
  EXPECT_GT(modified_s(), yesterday);
}

TEST(Eviction, IsLeftToWhoeverHoldsItsLock) {
  const Scratch scratch;
  const StoreOptions options = room_for(scratch, 2);
  Store store(options);
  {
    const NodeLock other =
        NodeLocks(options.lock_directory, options.directory).try_acquire("evict");
    ASSERT_TRUE(other.is_held());
    publish_range(store, 0, 4);
    EXPECT_EQ(store.list().size(), 4U);
  }
  publish_range(store, 4, 5);
  EXPECT_EQ(store.list().size(), 2U);
}

TEST(Eviction, EntryLargerThanTheCapIsNotPublished) {
  const Scratch scratch;
  std::vector<std::string> warnings;
  StoreOptions options = options_in(scratch, &warnings);
  options.byte_cap = 100;
  Store store(options);
  const Key key = key_number(0);
  EXPECT_FALSE(store.publish(key, kernel_for(key)));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("exceeds the cap of 100"), std::string::npos) << warnings[0];
  EXPECT_TRUE(store.load(key).has_value()) << "from memory";
}

TEST(Eviction, PruneAndClearTellWhatTheyFreed) {
  const Scratch scratch;
  Store store(options_in(scratch));
  publish_range(store, 0, 5);
  for (int i = 0; i < 5; ++i) age(file_of(scratch, key_number(i)), 10 - i);
  EXPECT_EQ(store.prune(entry_bytes() * 3), entry_bytes() * 2);
  EXPECT_FALSE(store.load(key_number(1)).has_value());
  EXPECT_TRUE(store.load(key_number(2)).has_value());
  EXPECT_EQ(store.clear(), entry_bytes() * 3);
  EXPECT_TRUE(store.list().empty());
  EXPECT_EQ(store.clear(), 0U);
}

}  // namespace
}  // namespace lacuna::cache

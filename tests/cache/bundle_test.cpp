// Bundles: every bit of one is covered, whatever else is given is refused, and a store finds in
// them what it would otherwise build.
#include "cache/bundle.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "cache/checksum.hpp"
#include "cache/entry_format.hpp"
#include "cache/store.hpp"
#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

/// `count` entries, not in the order of their keys.
std::string bundle_of(int count) {
  std::vector<Entry> entries;
  for (int n = count; n > 0; --n) entries.push_back(kernel_for(key_number(n)));
  return encode_bundle(entries);
}

TEST(Bundle, HoldsWhatWasPutIntoIt) {
  const std::string bytes = bundle_of(5);
  const ReadBundle read = read_bundle(bytes);
  ASSERT_EQ(read.damage, "");
  ASSERT_EQ(read.bundle.items.size(), 5U);
  for (int n = 1; n <= 5; ++n) {
    const auto entry = find_entry(read.bundle, key_number(n));
    ASSERT_TRUE(entry.has_value()) << n;
    EXPECT_TRUE(is_kernel_of(*entry, key_number(n)));
  }
  EXPECT_FALSE(find_entry(read.bundle, key_number(6)).has_value());
}

TEST(Bundle, MayBeEmptyAndHoldsAKeyOnce) {
  EXPECT_EQ(read_bundle(bundle_of(0)).damage, "");
  const Entry entry = kernel_for(key_number(1));
  EXPECT_EQ(read_bundle(encode_bundle({entry, entry})).bundle.items.size(), 1U);
}

TEST(Bundle, EveryChangedByteIsFound) {
  const std::string bytes = bundle_of(3);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    EXPECT_NE(read_bundle(changed).damage, "") << at;
  }
}

TEST(Bundle, EveryOtherLengthIsFound) {
  const std::string bytes = bundle_of(3);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(read_bundle(std::string_view(bytes).substr(0, size)).damage, "") << size;
  EXPECT_NE(read_bundle(bytes + '\0').damage, "");
}

TEST(Bundle, ATableThatClaimsMoreThanThereIsIsRefused) {
  std::string bytes = bundle_of(1);
  const std::uint32_t many = 0xFFFFFFFF;
  std::memcpy(bytes.data() + 12, &many, sizeof(many));
  EXPECT_EQ(read_bundle(bytes).damage, "its table is cut off");
}

TEST(Bundle, ATableThatLiesIsRefusedWhateverItsChecksum) {
  constexpr std::size_t kHeader = 32, kRow = 80, kChecksumAt = 24;
  const std::string bytes = bundle_of(2);
  const auto with = [&](std::size_t at, std::uint64_t value) {
    std::string changed = bytes;
    std::memcpy(changed.data() + at, &value, sizeof(value));
    std::memset(changed.data() + kChecksumAt, 0, 8);
    const std::uint64_t sum = checksum(std::string_view(changed).substr(0, kHeader + 2 * kRow));
    std::memcpy(changed.data() + kChecksumAt, &sum, sizeof(sum));
    return read_bundle(changed).damage;
  };
  std::uint64_t first = 0;
  std::memcpy(&first, bytes.data() + kHeader + 64, sizeof(first));
  EXPECT_EQ(with(kHeader + 64, first), "") << "the checksum is the one that is expected";
  for (const std::uint64_t value : {std::uint64_t{0}, first + 1, ~std::uint64_t{0}, ~first + 1}) {
    for (const std::size_t row : {kHeader, kHeader + kRow}) {
      EXPECT_EQ(with(row + 64, value), "its table is inconsistent") << "offset " << value;
      EXPECT_EQ(with(row + 72, value), "its table is inconsistent") << "length " << value;
    }
  }
  EXPECT_EQ(with(kHeader, 0), "entry of another key");
}

class Shipped : public testing::Test {
 protected:
  const Scratch scratch;
  Store store{options_in(scratch)};
  const Key key = key_number(1);
  bool built = false;
  std::function<std::optional<Entry>()> build = [this] {
    built = true;
    return std::optional(kernel_for(key));
  };
};

TEST_F(Shipped, IsAHitWithoutADirectory) {
  const std::string bytes = bundle_of(2);
  EXPECT_EQ(store.add_bundle(bytes), "");
  const Store::Obtained obtained = store.obtain(key, build);
  EXPECT_TRUE(obtained.hit);
  EXPECT_FALSE(built);
  EXPECT_TRUE(is_kernel_of(*obtained.entry, key));
  EXPECT_EQ(store.bundled_metadata().size(), 2U);
  EXPECT_TRUE(store.list().empty()) << "a bundle is not copied into the cache";
}

TEST_F(Shipped, IsPassedOverOnceTheDriverRefusedIt) {
  const std::string bytes = bundle_of(2);
  EXPECT_EQ(store.add_bundle(bytes), "");
  store.reject(key);
  EXPECT_FALSE(store.obtain(key, build).hit);
  EXPECT_TRUE(built);
  EXPECT_TRUE(store.publish(key, kernel_for(key)));
  EXPECT_TRUE(store.load(key).has_value()) << "from the directory";
  EXPECT_TRUE(store.load(key_number(2)).has_value());
}

TEST_F(Shipped, IsNotAddedIfAnyOfItIsDamaged) {
  std::string bytes = bundle_of(2);
  bytes.back() ^= 1;
  EXPECT_NE(store.add_bundle(bytes), "");
  EXPECT_FALSE(store.load(key).has_value());
}

}  // namespace
}  // namespace lacuna::cache

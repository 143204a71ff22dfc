// Key texts and the bytes of entries: every bit of a file is covered.
#include "cache/entry_format.hpp"

#include <gtest/gtest.h>

#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

TEST(Key, HashesAsSha256) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Key, IsCanonicalText) {
  const Key key = make_key({"ab12", {"--minimal", "-lineinfo"}, "sm_90a"});
  EXPECT_EQ(key.text,
            "format lacuna 3\n"
            "source ab12\n"
            "option --minimal\n"
            "option -lineinfo\n"
            "target sm_90a\n");
  EXPECT_EQ(key.sha256, sha256_hex(key.text));
  EXPECT_EQ(key.target, "sm_90a");
}

TEST(Key, EachPartCounts) {
  const KeyParts base{"ab12", {"-a", "-b"}, "sm_90a"};
  std::vector<KeyParts> others(5, base);
  others[0].source_sha256 = "ab13";
  others[1].options = {"-b", "-a"};
  others[2].options = {"-a -b"};
  others[3].options = {"-a\noption -b"};
  others[4].target = "sm_100a";
  for (const KeyParts& other : others) {
    EXPECT_NE(make_key(other).text, make_key(base).text);
    EXPECT_NE(make_key(other).sha256, make_key(base).sha256);
  }
}

TEST(EntryFormat, RoundTrips) {
  const Key key = key_number(1);
  const Entry entry = kernel_for(key);
  const Decoded decoded = decode_entry(encode_entry(entry), &key.text);
  EXPECT_EQ(decoded.damage, "");
  EXPECT_EQ(decoded.entry.key_text, entry.key_text);
  EXPECT_EQ(decoded.entry.metadata, entry.metadata);
  EXPECT_EQ(decoded.entry.cubins, entry.cubins);
  EXPECT_EQ(decoded.entry.log, entry.log);
}

TEST(EntryFormat, HoldsAnyNumberOfKernels) {
  const Key key = key_number(1);
  Entry entry = kernel_for(key);
  const std::string cubin = entry.cubins[0];
  for (const std::size_t count : {1U, 2U, 20U}) {
    entry.cubins.clear();
    for (std::size_t n = 0; n < count; ++n) entry.cubins.push_back(cubin + std::to_string(n));
    const Decoded decoded = decode_entry(encode_entry(entry), &key.text);
    EXPECT_EQ(decoded.damage, "");
    EXPECT_EQ(decoded.entry.cubins, entry.cubins);
  }
  entry.cubins.clear();
  EXPECT_FALSE(is_loadable(entry));
  EXPECT_EQ(decode_entry(encode_entry(entry), &key.text).damage, "the kernel is not a cubin");
}

TEST(EntryFormat, RejectsEveryFlippedBit) {
  const Key key = key_number(1);
  std::string bytes = encode_entry(kernel_for(key));
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    bytes[i / 8] ^= static_cast<char>(1U << (i % 8));
    EXPECT_NE(decode_entry(bytes, &key.text).damage, "") << "bit " << i;
    EXPECT_NE(decode_entry(bytes, nullptr).damage, "") << "bit " << i << ", key not given";
    bytes[i / 8] ^= static_cast<char>(1U << (i % 8));
  }
  EXPECT_EQ(decode_entry(bytes, &key.text).damage, "");
}

TEST(EntryFormat, RejectsEveryLengthButItsOwn) {
  const Key key = key_number(1);
  const std::string bytes = encode_entry(kernel_for(key));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(decode_entry(bytes.substr(0, length), &key.text).damage, "") << length;
  }
  EXPECT_EQ(decode_entry(bytes + '\0', &key.text).damage, "length differs from the header");
}

TEST(EntryFormat, SaysWhatIsWrong) {
  const Key key = key_number(1), other = key_number(2);
  const std::string bytes = encode_entry(kernel_for(key));
  const auto damage_at = [&](std::size_t offset) {
    std::string damaged = bytes;
    damaged[offset] ^= 1;
    return decode_entry(damaged, &key.text).damage;
  };
  EXPECT_EQ(damage_at(0), "not an entry (magic differs)");
  EXPECT_EQ(damage_at(8), "another version of the format");
  EXPECT_EQ(damage_at(16), "length differs from the header");
  EXPECT_EQ(damage_at(24), "checksum of the header differs");
  EXPECT_EQ(damage_at(32), "section table is inconsistent");
  EXPECT_EQ(damage_at(32 + 5 * 24), "entry of another key");
  EXPECT_EQ(damage_at(bytes.size() - 1), "checksum of a section differs");
  EXPECT_EQ(decode_entry(bytes, &other.text).damage, "entry of another key");
  EXPECT_EQ(decode_entry("", &key.text).damage, "shorter than a header");
}

TEST(EntryFormat, AcceptsNoOtherMachine) {
  const Key key = key_number(1);
  Entry entry = kernel_for(key);
  entry.cubins[1][18] = 62;  // x86-64
  EXPECT_EQ(decode_entry(encode_entry(entry), &key.text).damage, "the kernel is not a cubin");
  entry.cubins[1] = "ELF";
  EXPECT_EQ(decode_entry(encode_entry(entry), &key.text).damage, "the kernel is not a cubin");
}

}  // namespace
}  // namespace lacuna::cache

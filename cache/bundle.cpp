#include "cache/bundle.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>

#include "cache/checksum.hpp"
#include "cache/entry_format.hpp"

namespace lacuna::cache {
namespace {

constexpr std::array<char, 8> kBundleMagic = {'L', 'A', 'C', 'U', 'N', 'A', 'K', '\n'};
constexpr std::uint32_t kBundleVersion = 1;

struct BundleHeader {
  std::array<char, 8> magic = kBundleMagic;
  std::uint32_t version = kBundleVersion;
  std::uint32_t entry_count = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(BundleHeader) == 32, "no padding: the struct is the format");

struct BundleRow {
  std::array<char, 64> sha256{};  ///< hex digits
  std::uint64_t offset = 0, bytes = 0;
};
static_assert(sizeof(BundleRow) == 80, "no padding: the struct is the format");

std::string_view name_of(const BundleRow& row) { return {row.sha256.data(), row.sha256.size()}; }

std::string bytes_of(const BundleHeader& header, const std::vector<BundleRow>& rows) {
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(BundleRow));
  return bytes;
}

/// As if the header's own field were zero.
std::uint64_t bundle_checksum(BundleHeader header, const std::vector<BundleRow>& rows) {
  header.checksum = 0;
  return checksum(bytes_of(header, rows));
}

/// In order, no key twice, and without gaps from the end of the table to the end of the file.
bool is_in_order(const BundleHeader& header, const std::vector<BundleRow>& rows) {
  std::uint64_t offset = sizeof(BundleHeader) + rows.size() * sizeof(BundleRow);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    if (n > 0 && name_of(rows[n - 1]) >= name_of(rows[n])) return false;
    if (rows[n].offset != offset || rows[n].bytes > header.file_bytes - offset) return false;
    offset += rows[n].bytes;
  }
  return offset == header.file_bytes;
}

/// `bytes` are at least a header. Fills `rows` as far as the header can be believed.
std::string find_bundle_damage(std::string_view bytes, std::vector<BundleRow>& rows) {
  BundleHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kBundleMagic) return "not a bundle of kernels (magic differs)";
  if (header.version != kBundleVersion) return "another version of the format";
  if (header.file_bytes != bytes.size()) {
    return "expected " + std::to_string(header.file_bytes) + " bytes, as the header says, got " +
           std::to_string(bytes.size());
  }
  const std::string_view behind_header = bytes.substr(sizeof(BundleHeader));
  if (header.entry_count > behind_header.size() / sizeof(BundleRow)) return "its table is cut off";
  rows.resize(header.entry_count);
  if (!rows.empty()) {
    std::memcpy(rows.data(), behind_header.data(), rows.size() * sizeof(BundleRow));
  }
  if (header.checksum != bundle_checksum(header, rows)) return "checksum of the header differs";
  return is_in_order(header, rows) ? "" : "its table is inconsistent";
}

}  // namespace

std::string encode_bundle(const std::vector<Entry>& entries) {
  std::map<std::string, std::string> contents;
  for (const Entry& entry : entries) {
    contents.emplace(sha256_hex(entry.key_text), encode_entry(entry));
  }
  std::vector<BundleRow> rows;
  std::uint64_t offset = sizeof(BundleHeader) + contents.size() * sizeof(BundleRow);
  for (const auto& [sha256, bytes] : contents) {
    BundleRow& row = rows.emplace_back();
    std::ranges::copy(sha256, row.sha256.begin());
    row.offset = offset;
    row.bytes = bytes.size();
    offset += bytes.size();
  }
  BundleHeader header;
  header.entry_count = static_cast<std::uint32_t>(rows.size());
  header.file_bytes = offset;
  header.checksum = bundle_checksum(header, rows);
  std::string bundle = bytes_of(header, rows);
  for (const auto& [sha256, bytes] : contents) bundle += bytes;
  return bundle;
}

ReadBundle read_bundle(std::string_view bytes) {
  ReadBundle result;
  if (bytes.size() < sizeof(BundleHeader)) {
    result.damage = "shorter than a header";
    return result;
  }
  std::vector<BundleRow> rows;
  result.damage = find_bundle_damage(bytes, rows);
  if (!result.damage.empty()) return result;
  for (const BundleRow& row : rows) {
    const Bundle::Item item{std::string(name_of(row)), bytes.substr(row.offset, row.bytes)};
    const Decoded decoded = decode_entry(item.entry, nullptr);
    result.damage = decoded.damage;
    if (result.damage.empty() && sha256_hex(decoded.entry.key_text) != item.sha256) {
      result.damage = "entry of another key";
    }
    if (!result.damage.empty()) return result;
    result.bundle.items.push_back(item);
  }
  return result;
}

std::optional<Entry> find_entry(const Bundle& bundle, const Key& key) {
  const auto item = std::ranges::lower_bound(bundle.items, key.sha256, {}, &Bundle::Item::sha256);
  if (item == bundle.items.end() || item->sha256 != key.sha256) return std::nullopt;
  Decoded decoded = decode_entry(item->entry, &key.text);
  if (!decoded.damage.empty()) return std::nullopt;
  return std::move(decoded.entry);
}

}  // namespace lacuna::cache

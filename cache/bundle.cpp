#include "cache/bundle.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "cache/entry_format.hpp"
#include "cache/table_file.hpp"

namespace lacuna::cache {
namespace {

constexpr TableHeader kBundleHeader{.magic = {'L', 'A', 'C', 'U', 'N', 'A', 'K', '\n'},
                                    .version = 1};

struct BundleRow {
  std::array<char, 64> sha256{};  ///< hex digits
  std::uint64_t offset = 0, bytes = 0;
};
static_assert(sizeof(BundleRow) == 80, "no padding: the struct is the format");

std::string_view name_of(const BundleRow& row) { return {row.sha256.data(), row.sha256.size()}; }

bool has_ascending_names(const std::vector<BundleRow>& rows) {
  const auto is_out_of_order = [](const BundleRow& a, const BundleRow& b) {
    return name_of(a) >= name_of(b);
  };
  return std::ranges::adjacent_find(rows, is_out_of_order) == rows.end();
}

/// `bytes` are at least a header. Fills `rows` as far as the header can be believed.
std::string find_bundle_damage(std::string_view bytes, std::vector<BundleRow>& rows) {
  const TableHeader header = read_header(bytes);
  if (header.magic != kBundleHeader.magic) return "not a bundle of kernels (magic differs)";
  if (header.version != kBundleHeader.version) return "another version of the format";
  if (header.file_bytes != bytes.size()) {
    return "expected " + std::to_string(header.file_bytes) + " bytes, as the header says, got " +
           std::to_string(bytes.size());
  }
  if (!read_table(bytes, header, rows)) return "its table is cut off";
  if (header.checksum != table_checksum(header, rows)) return "checksum of the header differs";
  const bool is_consistent = has_ascending_names(rows) && is_gapless(header, rows);
  return is_consistent ? "" : "its table is inconsistent";
}

}  // namespace

std::string encode_bundle(const std::vector<Entry>& entries) {
  std::map<std::string, std::string> contents;
  for (const Entry& entry : entries) {
    contents.emplace(sha256_hex(entry.key_text), encode_entry(entry));
  }
  std::vector<BundleRow> rows;
  std::uint64_t offset = end_of_table<BundleRow>(contents.size());
  for (const auto& [sha256, bytes] : contents) {
    BundleRow& row = rows.emplace_back();
    std::ranges::copy(sha256, row.sha256.begin());
    row.offset = offset;
    row.bytes = bytes.size();
    offset += bytes.size();
  }
  std::string bundle = encode_table(kBundleHeader, rows, offset);
  for (const auto& [sha256, bytes] : contents) bundle += bytes;
  return bundle;
}

ReadBundle read_bundle(std::string_view bytes) {
  ReadBundle result;
  if (bytes.size() < sizeof(TableHeader)) {
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

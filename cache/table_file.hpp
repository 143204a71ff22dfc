// The file format that cache entries and bundles share: a header, a table of rows, and the data
// that the rows name, in the order of the rows and without gaps. The checksum covers header and
// table.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cache/checksum.hpp"

namespace lacuna::cache {

static_assert(std::endian::native == std::endian::little, "files hold little-endian integers");

struct TableHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t row_count = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t checksum = 0;  ///< of header and table, computed with this field zero
};
static_assert(sizeof(TableHeader) == 32, "no padding: the struct is the format");

/// Where the content of the first row begins.
template <class Row>
std::uint64_t end_of_table(std::size_t row_count) {
  return sizeof(TableHeader) + row_count * sizeof(Row);
}

template <class Row>
std::string header_and_table(const TableHeader& header, const std::vector<Row>& rows) {
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Row));
  return bytes;
}

template <class Row>
std::uint64_t table_checksum(TableHeader header, const std::vector<Row>& rows) {
  header.checksum = 0;
  return checksum(header_and_table(header, rows));
}

/// What a file of `file_bytes` bytes begins with; `header` says magic and version.
template <class Row>
std::string encode_table(TableHeader header, const std::vector<Row>& rows,
                         std::uint64_t file_bytes) {
  header.row_count = static_cast<std::uint32_t>(rows.size());
  header.file_bytes = file_bytes;
  header.checksum = table_checksum(header, rows);
  return header_and_table(header, rows);
}

/// `bytes` are at least a header.
inline TableHeader read_header(std::string_view bytes) {
  TableHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

/// False if the rows that the header promises are not all there; `rows` are unchanged then.
template <class Row>
bool read_table(std::string_view bytes, const TableHeader& header, std::vector<Row>& rows) {
  const std::string_view behind_header = bytes.substr(sizeof(TableHeader));
  if (header.row_count > behind_header.size() / sizeof(Row)) return false;
  rows.resize(header.row_count);
  if (!rows.empty()) std::memcpy(rows.data(), behind_header.data(), rows.size() * sizeof(Row));
  return true;
}

/// Contents follow each other without gaps and end where the file ends.
template <class Row>
bool is_gapless(const TableHeader& header, const std::vector<Row>& rows) {
  std::uint64_t offset = end_of_table<Row>(rows.size());
  for (const Row& row : rows) {
    if (row.offset != offset || row.bytes > header.file_bytes - offset) return false;
    offset += row.bytes;
  }
  return offset == header.file_bytes;
}

}  // namespace lacuna::cache

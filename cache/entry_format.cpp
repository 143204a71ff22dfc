#include "cache/entry_format.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>

namespace lacuna::cache {
namespace {

static_assert(std::endian::native == std::endian::little, "entries hold little-endian integers");

constexpr std::array<char, 8> kMagic = {'L', 'A', 'C', 'U', 'N', 'A', '\r', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kSectionCount = 4;

struct Section {
  std::uint64_t offset = 0, bytes = 0, checksum = 0;
};

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t section_count = kSectionCount;
  std::uint64_t file_bytes = 0;
  std::uint64_t checksum = 0;
  std::array<Section, kSectionCount> sections;
};
static_assert(sizeof(Header) == 32 + kSectionCount * 24, "no padding: the struct is the format");

/// The one list of sections, in file order.
constexpr std::array<std::string Entry::*, kSectionCount> kSections = {
    &Entry::key_text, &Entry::metadata, &Entry::cubin, &Entry::log};

std::uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint64_t header_checksum(Header header) {
  header.checksum = 0;
  return XXH3_64bits(&header, sizeof(header));
}

/// Sections follow each other without gaps and end where the file ends.
bool is_gapless(const Header& header) {
  std::uint64_t offset = sizeof(Header);
  for (const Section& section : header.sections) {
    if (section.offset != offset || section.bytes > header.file_bytes - offset) return false;
    offset += section.bytes;
  }
  return offset == header.file_bytes;
}

std::string_view view(std::string_view bytes, const Section& section) {
  return bytes.substr(section.offset, section.bytes);
}

std::string find_damage(std::string_view bytes, const Header& header, const std::string* key_text) {
  if (header.magic != kMagic) return "not an entry (magic differs)";
  if (header.version != kVersion || header.section_count != kSectionCount) {
    return "another version of the format";
  }
  if (header.file_bytes != bytes.size()) return "length differs from the header";
  if (!is_gapless(header)) return "section table is inconsistent";
  if (key_text && view(bytes, header.sections[0]) != *key_text) return "entry of another key";
  if (header.checksum != header_checksum(header)) return "checksum of the header differs";
  for (const Section& section : header.sections) {
    if (section.checksum != checksum(view(bytes, section))) {
      return "checksum of a section differs";
    }
  }
  return "";
}

}  // namespace

std::string encode_entry(const Entry& entry) {
  Header header;
  std::uint64_t offset = sizeof(Header);
  for (std::size_t i = 0; i < kSectionCount; ++i) {
    const std::string& section = entry.*kSections[i];
    header.sections[i] = {offset, section.size(), checksum(section)};
    offset += section.size();
  }
  header.file_bytes = offset;
  header.checksum = header_checksum(header);

  std::string bytes;
  bytes.reserve(offset);
  bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
  for (const auto section : kSections) bytes += entry.*section;
  return bytes;
}

Decoded decode_entry(std::string_view bytes, const std::string* key_text) {
  Decoded result;
  Header header;
  if (bytes.size() < sizeof(header)) {
    result.damage = "shorter than a header";
    return result;
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  result.damage = find_damage(bytes, header, key_text);
  if (!result.damage.empty()) return result;
  for (std::size_t i = 0; i < kSectionCount; ++i) {
    result.entry.*kSections[i] = view(bytes, header.sections[i]);
  }
  if (!is_cubin(result.entry.cubin)) result.damage = "the kernel is not a cubin";
  return result;
}

bool is_cubin(std::string_view bytes) {
  constexpr std::string_view kElf64Little{
      "\x7f"
      "ELF\x02\x01",
      6};
  constexpr std::size_t kElfHeaderBytes = 64, kMachineOffset = 18;
  constexpr std::uint16_t kMachineCuda = 190;
  if (bytes.size() < kElfHeaderBytes || !bytes.starts_with(kElf64Little)) return false;
  std::uint16_t machine = 0;
  std::memcpy(&machine, bytes.data() + kMachineOffset, sizeof(machine));
  return machine == kMachineCuda;
}

}  // namespace lacuna::cache

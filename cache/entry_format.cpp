#include "cache/entry_format.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <vector>

#include "cache/checksum.hpp"

namespace lacuna::cache {
namespace {

static_assert(std::endian::native == std::endian::little, "entries hold little-endian integers");

constexpr std::array<char, 8> kMagic = {'L', 'A', 'C', 'U', 'N', 'A', '\r', '\n'};
constexpr std::uint32_t kVersion = 2;

struct Section {
  std::uint64_t offset = 0, bytes = 0, checksum = 0;
};
static_assert(sizeof(Section) == 24, "no padding: the struct is the format");

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t section_count = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Header) == 32, "no padding: the struct is the format");

/// The sections that every entry has, in file order; the rest are cubins.
constexpr std::array kTexts = {&Entry::key_text, &Entry::metadata, &Entry::log};

/// Of the header, as if its own field were zero, and of the table behind it.
std::uint64_t header_checksum(Header header, const std::vector<Section>& sections) {
  header.checksum = 0;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof(Section));
  return checksum(bytes);
}

/// Sections follow each other without gaps and end where the file ends.
bool is_gapless(const Header& header, const std::vector<Section>& sections) {
  std::uint64_t offset = sizeof(Header) + sections.size() * sizeof(Section);
  for (const Section& section : sections) {
    if (section.offset != offset || section.bytes > header.file_bytes - offset) return false;
    offset += section.bytes;
  }
  return offset == header.file_bytes;
}

std::string_view view(std::string_view bytes, const Section& section) {
  return bytes.substr(section.offset, section.bytes);
}

/// `bytes` are at least a header. Fills `sections` as far as the header can be believed.
std::string find_damage(std::string_view bytes, const std::string* key_text,
                        std::vector<Section>& sections) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return "not an entry (magic differs)";
  if (header.version != kVersion) return "another version of the format";
  if (header.file_bytes != bytes.size()) return "length differs from the header";
  const std::string_view behind_header = bytes.substr(sizeof(Header));
  if (header.section_count < kTexts.size() ||
      header.section_count > behind_header.size() / sizeof(Section)) {
    return "section table is inconsistent";
  }
  sections.resize(header.section_count);
  std::memcpy(sections.data(), behind_header.data(), sections.size() * sizeof(Section));
  if (!is_gapless(header, sections)) return "section table is inconsistent";
  if (key_text && view(bytes, sections[0]) != *key_text) return "entry of another key";
  if (header.checksum != header_checksum(header, sections)) return "checksum of the header differs";
  for (const Section& section : sections) {
    if (section.checksum != checksum(view(bytes, section))) {
      return "checksum of a section differs";
    }
  }
  return "";
}

/// An ELF file for a GPU.
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

}  // namespace

std::string encode_entry(const Entry& entry) {
  std::vector<std::string_view> contents;
  contents.reserve(std::size(kTexts) + entry.cubins.size());
  for (const auto text : kTexts) contents.emplace_back(entry.*text);
  contents.insert(contents.end(), entry.cubins.begin(), entry.cubins.end());

  std::vector<Section> sections;
  std::uint64_t offset = sizeof(Header) + contents.size() * sizeof(Section);
  for (const std::string_view content : contents) {
    sections.push_back({offset, content.size(), checksum(content)});
    offset += content.size();
  }
  Header header;
  header.section_count = static_cast<std::uint32_t>(sections.size());
  header.file_bytes = offset;
  header.checksum = header_checksum(header, sections);

  std::string bytes;
  bytes.reserve(offset);
  bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof(Section));
  for (const std::string_view content : contents) bytes += content;
  return bytes;
}

Decoded decode_entry(std::string_view bytes, const std::string* key_text) {
  Decoded result;
  if (bytes.size() < sizeof(Header)) {
    result.damage = "shorter than a header";
    return result;
  }
  std::vector<Section> sections;
  result.damage = find_damage(bytes, key_text, sections);
  if (!result.damage.empty()) return result;
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    result.entry.*kTexts[i] = view(bytes, sections[i]);
  }
  for (std::size_t i = kTexts.size(); i < sections.size(); ++i) {
    result.entry.cubins.emplace_back(view(bytes, sections[i]));
  }
  if (!is_loadable(result.entry)) result.damage = "the kernel is not a cubin";
  return result;
}

bool is_loadable(const Entry& entry) {
  return !entry.cubins.empty() && std::ranges::all_of(entry.cubins, is_cubin);
}

}  // namespace lacuna::cache

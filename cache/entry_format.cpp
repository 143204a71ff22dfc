#include "cache/entry_format.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <vector>

#include "cache/table_file.hpp"

namespace lacuna::cache {
namespace {

constexpr TableHeader kHeader{.magic = {'L', 'A', 'C', 'U', 'N', 'A', '\r', '\n'}, .version = 2};

struct Section {
  std::uint64_t offset = 0, bytes = 0, checksum = 0;
};
static_assert(sizeof(Section) == 24, "no padding: the struct is the format");

/// The sections that every entry has, in file order; the rest are cubins.
constexpr std::array kTexts = {&Entry::key_text, &Entry::metadata, &Entry::log};

std::string_view view(std::string_view bytes, const Section& section) {
  return bytes.substr(section.offset, section.bytes);
}

/// `bytes` are at least a header. Fills `sections` as far as the header can be believed.
std::string find_damage(std::string_view bytes, const std::string* key_text,
                        std::vector<Section>& sections) {
  const TableHeader header = read_header(bytes);
  if (header.magic != kHeader.magic) return "not an entry (magic differs)";
  if (header.version != kHeader.version) return "another version of the format";
  if (header.file_bytes != bytes.size()) return "length differs from the header";
  if (header.row_count < kTexts.size() || !read_table(bytes, header, sections) ||
      !is_gapless(header, sections)) {
    return "section table is inconsistent";
  }
  if (key_text && view(bytes, sections[0]) != *key_text) return "entry of another key";
  if (header.checksum != table_checksum(header, sections)) return "checksum of the header differs";
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
  std::uint64_t offset = end_of_table<Section>(contents.size());
  for (const std::string_view content : contents) {
    sections.push_back({offset, content.size(), checksum(content)});
    offset += content.size();
  }
  std::string bytes;
  bytes.reserve(offset);
  bytes += encode_table(kHeader, sections, offset);
  for (const std::string_view content : contents) bytes += content;
  return bytes;
}

Decoded decode_entry(std::string_view bytes, const std::string* key_text) {
  Decoded result;
  if (bytes.size() < sizeof(TableHeader)) {
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

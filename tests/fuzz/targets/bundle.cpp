#include "cache/bundle.hpp"

#include <cstring>

#include "cache/entry_format.hpp"
#include "tests/fuzz/targets/targets.hpp"

namespace lacuna::fuzz {
namespace {

/// A bundle of entries that are cut from the bytes.
std::string bundle_from(std::string_view bytes) {
  const std::string head(
      "\x7f"
      "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xbe\0",
      20);
  std::vector<cache::Entry> entries;
  while (entries.size() < 4 && !bytes.empty()) {
    const std::string_view part = bytes.substr(0, 1 + bytes.size() / 3);
    bytes.remove_prefix(part.size());
    entries.push_back({std::string(part), "{}", "", {head + std::string(44, '\0')}});
  }
  return cache::encode_bundle(entries);
}

/// One byte is changed or the end is cut off: it is read as it was written, or not at all.
void check_bundle_damage(std::string_view bytes) {
  std::string written = bundle_from(bytes);
  require(cache::read_bundle(written).damage.empty(), "what was written is damaged");
  std::uint32_t choice = 0;
  std::memcpy(&choice, bytes.data(), std::min(bytes.size(), sizeof(choice)));
  const std::string intact = written;
  written[choice % written.size()] ^= static_cast<char>(choice >> 24);
  if (choice % 3 == 0) written.resize(choice / 3 % written.size());
  require(written == intact || !cache::read_bundle(written).damage.empty(),
          "a damaged bundle is accepted");
}

}  // namespace

bool run_bundle(std::string_view bytes) {
  check_bundle_damage(bytes);
  const cache::ReadBundle read = cache::read_bundle(bytes);
  if (!read.damage.empty()) return false;
  std::vector<cache::Entry> entries;
  for (const cache::Bundle::Item& item : read.bundle.items) {
    entries.push_back(cache::decode_entry(item.entry, nullptr).entry);
    const cache::Key key{"", entries.back().key_text, item.sha256};
    require(cache::find_entry(read.bundle, key).has_value(), "an entry is not found again");
  }
  require(cache::encode_bundle(entries) == bytes, "written again as another");
  return true;
}

}  // namespace lacuna::fuzz

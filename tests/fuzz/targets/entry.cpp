#include <algorithm>

#include "cache/entry_format.hpp"
#include "runtime/engine/build/metadata.hpp"
#include "tests/fuzz/targets/targets.hpp"

namespace lacuna::fuzz {
namespace {

using cache::Entry;

bool is_equal(const Entry& a, const Entry& b) {
  return a.key_text == b.key_text && a.metadata == b.metadata && a.log == b.log &&
         a.cubins == b.cubins;
}

/// Bytes in order, as many as are asked for and there.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  std::size_t number() {
    const std::string_view two = text(2);
    std::size_t value = 0;
    for (const char c : two) value = value * 256 + static_cast<unsigned char>(c);
    return value;
  }
  std::string_view text(std::size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view bytes_;
};

/// An entry made of the bytes, of which one byte is changed or the end is cut off: it is read as it
/// was written, or not at all. Checksums cannot be guessed, so bytes as they are seldom get far.
void check_damage(std::string_view bytes) {
  Reader reader(bytes);
  const std::size_t at = reader.number(), flipped = reader.number(), cut = reader.number();
  Entry entry;
  entry.key_text = reader.text(reader.number() % 64);
  entry.metadata = reader.text(reader.number() % 256);
  entry.log = reader.text(reader.number() % 64);
  const std::string head(
      "\x7f"
      "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xbe\0",
      20);
  for (std::size_t count = reader.number() % 4; count > 0; --count)
    entry.cubins.push_back(head + std::string(reader.text(reader.number() % 128)));
  std::string written = cache::encode_entry(entry);
  const bool is_loadable = cache::is_loadable(entry);
  const cache::Decoded intact = cache::decode_entry(written, &entry.key_text);
  require(intact.damage.empty() == is_loadable, "what was written is damaged: " + intact.damage);
  require(!is_loadable || is_equal(intact.entry, entry), "what was written is another entry");
  written[at % written.size()] ^= static_cast<char>(flipped);
  written.resize(written.size() - cut % (written.size() + 1));
  const cache::Decoded damaged = cache::decode_entry(written, &entry.key_text);
  require(!damaged.damage.empty() || is_equal(damaged.entry, entry), "a wrong entry is accepted");
}

}  // namespace

bool run_entry(std::string_view bytes) {
  read_metadata(std::string(bytes));
  check_damage(bytes);
  const cache::Decoded decoded = cache::decode_entry(bytes, nullptr);
  if (!decoded.damage.empty()) return false;
  require(cache::encode_entry(decoded.entry) == bytes, "written again as another");
  if (const auto metadata = read_metadata(decoded.entry.metadata))
    require(read_metadata(write_metadata(*metadata)).has_value(), "metadata is not read again");
  return true;
}

}  // namespace lacuna::fuzz

#include "cache/key.hpp"

#include <sha2.h>

#include <array>
#include <string_view>

namespace lacuna::cache {
namespace {

/// One line for each fact, so that the text can be read and two texts can be compared. Line breaks
/// inside a value are escaped: no two different sets of parts have one text.
void append_line(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).push_back(' ');
  for (const char c : value) {
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '\n') {
      text += "\\n";
    } else {
      text.push_back(c);
    }
  }
  text.push_back('\n');
}

}  // namespace

std::string sha256_hex(const std::string& bytes) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> hex{};
  SHA256Data(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), hex.data());
  return hex.data();
}

Key make_key(const KeyParts& parts) {
  Key key;
  key.target = parts.target;
  append_line(key.text, "format", "lacuna 3");
  append_line(key.text, "source", parts.source_sha256);
  for (const std::string& option : parts.options) append_line(key.text, "option", option);
  append_line(key.text, "target", parts.target);
  key.sha256 = sha256_hex(key.text);
  return key;
}

}  // namespace lacuna::cache

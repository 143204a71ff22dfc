#include "compiler/diag/printable.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lacuna {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  ///< 0: what is there is no UTF-8
};

/// How many bytes begin with this one, by the number of its leading ones; 0: none can.
std::size_t bytes_after(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/// The first character of a text that is not empty (Unicode 15, table 3-7).
Character first_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t bytes = bytes_after(first);
  if (bytes == 1) return {first, 1};
  if (bytes == 0 || text.size() < bytes) return {};
  std::uint32_t code = first & (0xffU >> (bytes + 1));
  for (const char c : text.substr(1, bytes - 1)) {
    if ((static_cast<unsigned char>(c) & 0xc0U) != 0x80U) return {};
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // of that many bytes
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || is_surrogate) return {};
  return {code, bytes};
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string text, std::string_view kept) {
  for (std::size_t at = 0; at < text.size();) {
    const Character found = first_character(std::string_view(text).substr(at));
    const std::size_t bytes = std::max<std::size_t>(1, found.bytes);
    const bool is_kept = bytes == 1 && kept.find(text[at]) != std::string_view::npos;
    if (!is_kept && (found.bytes == 0 || is_control(found.code)))
      text.replace(at, bytes, bytes, '?');
    at += bytes;
  }
  return text;
}

}  // namespace lacuna

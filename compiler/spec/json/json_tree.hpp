// JSON text as a tree of values that know their place. nlohmann/json validates the text and decodes
// the scalars; the tree adds what it does not keep: lines, columns and duplicate keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna {

struct JsonNode {
  enum class Kind : std::uint8_t { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string pointer;             ///< "/tile/q"; "" for the root
  std::string key;                 ///< of a member of an object
  std::string string;              ///< kString: decoded
  double number = 0;               ///< kInteger (a whole number, however written) and kNumber
  bool boolean = false;            ///< kBoolean
  std::size_t begin = 0, end = 0;  ///< bytes of the text
  std::size_t key_begin = 0, key_end = 0;
  Span span, key_span;             ///< of a value of several lines: its opening bracket
  bool usable = true;              ///< false: an error was reported, do not read it
  std::vector<JsonNode> children;  ///< of arrays and objects, in file order

  bool is(Kind k) const { return kind == k; }
  bool is_string(std::string_view text) const { return kind == Kind::kString && string == text; }
  const JsonNode* find(std::string_view member) const;
};

/// Reports syntax errors, NUL bytes and texts beyond the limits of json_limits.hpp (nothing is
/// returned), duplicate keys (the later one is unusable) and strings that hold a NUL.
std::optional<JsonNode> parse_json(const SourceText& source, Diagnostics& diagnostics);

/// The place of bytes [begin, end) of the decoded string of `node`, escapes considered.
Span span_in_string(const SourceText& source, const JsonNode& node, std::size_t begin,
                    std::size_t end);

}  // namespace lacuna

// Value sets: what q, k and v hold where a verb makes the tensors. A kernel's speed must not depend
// on it; `tools/dev/peers.py --values` takes the same words.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace lacuna::tools {

enum class ValueKind : std::uint8_t { kNormal, kSink, kRising, kFalling, kFile };

struct ValueSet {
  ValueKind kind = ValueKind::kNormal;
  double query_factor = 1;  ///< of kNormal: the S of normal*S
  std::string path;         ///< of kFile
};

/// "" or what is wrong with `text`, with the nearest word.
std::string parse_values(const std::string& text, ValueSet& values);

/// As parse_values takes it.
std::string print_values(const ValueSet& values);

/// Adds --values; its help lists every word.
void add_values_option(CLI::App& verb, ValueSet& values);

}  // namespace lacuna::tools

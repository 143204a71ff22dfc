// What a JSON text may hold at most. All of it is far above what a spec needs, and low enough that
// everything which comes after may look at each value as often as it likes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lacuna {

inline constexpr std::size_t kMostJsonBytes = 1 << 20;

/// Bytes [begin, end) of a text that go beyond a limit.
struct JsonExcess {
  std::size_t begin = 0, end = 0;
  std::string message;
};

/// The first excess of a valid JSON text: in depth, in the number of values, or in the length of a
/// key.
std::optional<JsonExcess> find_excess(std::string_view text);

}  // namespace lacuna

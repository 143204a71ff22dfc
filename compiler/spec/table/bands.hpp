// Bands of the head dimension as text: "0:32,64:96" are elements 0 to 31 and 64 to 95.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lacuna {

inline constexpr int kBandStep = 16;       ///< elements; bands begin and end at multiples
inline constexpr int kMostBandDims = 256;  ///< the largest head dimension

/// Bit n: elements 16 n to 16 n + 15. Nothing if the text is no list of ascending bands.
std::optional<std::uint32_t> band_steps(std::string_view text);

/// A regular expression for such a list; it does not see whether bands ascend.
std::string band_pattern();

/// Elements `first` to `end` - 1.
struct Band {
  int first = 0, end = 0;
  constexpr int width() const { return end - first; }
};

/// The band that a text names; the whole head if it names none, and nullopt if several.
std::optional<Band> only_band(std::string_view text, int head_dim);

/// Elements that a head has to have for all bands; 0 if there are none.
int last_band_end(std::uint32_t steps);

/// Is this element in a band? All are, if there are none.
constexpr bool is_in_bands(std::uint32_t steps, int element) {
  return steps == 0 || ((steps >> (element / kBandStep)) & 1U) != 0;
}

}  // namespace lacuna

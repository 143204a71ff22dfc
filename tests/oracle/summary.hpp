// What a predictor knows of a tile before it compares anything: means and self-similarity.
#pragma once

#include <vector>

namespace lacuna::oracle {

/// A number known to lie within [low, high]; `value` is the exact arithmetic's.
struct Band {
  double low = 0, value = 0, high = 0;
};

/// The mean over the real tokens of each tile: x [heads, tokens, d] -> [heads, tiles, d].
std::vector<double> tile_means(const std::vector<double>& x, int heads, int tokens, int d,
                               int tile);

/// A binary floating-point format: bits of the significand, exponent of the smallest normal number
/// (as frexp counts it).
struct Format {
  int significant = 53, least_exponent = -1021;
};
inline constexpr Format kBF16{8, -125}, kF16{11, -13}, kF32{24, -125};

/// Nearest number of the format, ties to even.
double round_to(double x, const Format& format);

enum class Similarity { kCosine, kGramMax };

/// Self-similarity of each tile of x - mean (`mean` empty: of x), [heads, tiles]. Zero tokens are
/// left out; a tile of zero tokens has -inf. kCosine: squared length of the mean of the unit rows;
/// kGramMax: mean of the Gram matrix divided by its largest magnitude.
std::vector<Band> self_similarity(const std::vector<double>& x, const std::vector<double>& mean,
                                  int heads, int tokens, int d, int tile, Similarity form);

}  // namespace lacuna::oracle

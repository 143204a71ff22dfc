// Pieces that the twins of variants.cpp share, one maker for each family of specs. A maker fills in
// what the spec says (mask, score, predictor, gate, quantisation) with random parameters.
#pragma once

#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "tests/numerics/variants/variants.hpp"

namespace lacuna::numerics {

using Random = std::mt19937;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

/// Both ends are drawn, too.
inline int whole(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// An i32 for all heads.
inline void pass(Variant& v, const char* name, int value) {
  v.params.push_back({name, true, {double(value)}, {}});
}

/// The float a parameter becomes on its way into the kernel.
inline double as_f32(double x) { return static_cast<double>(static_cast<float>(x)); }

/// A random f32 for each head, passed as parameter `name`.
std::vector<double> head_param(Variant& v, const char* name, Random& random, double low,
                               double high);
/// A random i32 for each head.
std::vector<double> head_count(Variant& v, const char* name, Random& random, int low, int high);

/// A table of random numbers, passed as parameter `name`.
std::vector<double> add_table(Variant& v, const char* name, const std::vector<int>& shape,
                              Random& random);

/// A predictor of tiles of 128 x 128 that keeps the first one of a row and those within a window,
/// parameter `window` of each head.
void keep_window_of_tiles(Variant& v, Random& random);

/// Bottom-right causal: the last query sees the last key.
void make_causal(Variant& v);
/// Causal, V is the first elements of the keys, and the caller passes none.
void make_v_of_k(Variant& v);

/// A gate on `gap < limit(tile)`, except where `exempt` (empty: nowhere).
oracle::GateRule gap_gate(std::function<double(const oracle::TileIndex&)> limit,
                          std::function<bool(const oracle::TileIndex&)> exempt);

/// The same of `tile_max < limit(tile)`.
oracle::GateRule tile_max_gate(std::function<double(const oracle::TileIndex&)> limit,
                               std::function<bool(const oracle::TileIndex&)> exempt);

/// Each returns false if `name` is not of its family.
bool make_attend_variant(const std::string& name, Variant& v, KernelTile tile, Random& random);
bool make_pooled_variant(const std::string& name, Variant& v, KernelTile tile, Random& random);
bool make_token_variant(const std::string& name, Variant& v, KernelTile tile, Random& random);
bool make_index_variant(const std::string& name, Variant& v, KernelTile tile, Random& random);
bool make_feature_variant(const std::string& name, Variant& v, KernelTile tile, Random& random);
bool make_bias_variant(const std::string& name, Variant& v, KernelTile tile, Random& random);
bool make_pattern_variant(const std::string& name, Variant& v, KernelTile tile, Random& random);
bool make_narrow_list_variant(const std::string& name, Variant& v, KernelTile tile, Random& random);
bool make_pairs_variant(const std::string& name, Variant& v, Random& random);
bool make_distance_variant(const std::string& name, Variant& v, Random& random);
bool make_weights_variant(const std::string& name, Variant& v, Random& random);

/// The text of a spec of variants_tokens.cpp, variants_index.cpp, variants_features.cpp,
/// variants_biases.cpp, variants_patterns.cpp, variants_lists.cpp, variants_pairs.cpp,
/// variants_distances.cpp; "" for other names.
std::string token_spec(const std::string& name);
std::string index_spec(const std::string& name);
std::string feature_spec(const std::string& name);
std::string bias_spec(const std::string& name);
std::string pattern_spec(const std::string& name);
std::string narrow_list_spec(const std::string& name);
std::string pair_spec(const std::string& name);
std::string distance_spec(const std::string& name);

}  // namespace lacuna::numerics

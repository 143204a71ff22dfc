// Quantisation as the oracle understands it: integers in groups of tokens, e4m3 values, and the
// attention problem whose operands they are. Scales and roundings are those of f32 arithmetic, so
// integers agree bit for bit except where the exact quotient lies within rounding of a half; those
// elements carry a slack.
#pragma once

#include <vector>

#include "tests/oracle/oracle.hpp"

namespace lacuna::oracle {

/// The mean over all tokens of each head, what is not finite counted as 0: x [heads, tokens, d] ->
/// [heads, d].
std::vector<double> token_means(const std::vector<double>& x, int heads, int tokens, int d);

/// x [heads, tokens, d] minus mean [heads, d].
std::vector<double> subtract_means(const std::vector<double>& x, const std::vector<double>& mean,
                                   int heads, int tokens, int d);

/// Vectors to compare: value, and by how much an implementation may differ from it in each element
/// (empty: not at all), both [rows, d].
struct Vectors {
  std::vector<double> value, slack;
};

enum class Group { kBlock, kWarp, kThread };

struct Grouping {
  int bits = 8;
  Group group = Group::kBlock;
  int tile = 64;
  bool is_query = false;  ///< groups of queries and of keys have different shapes
};

/// Number of a token's group within its head.
int group_of(const Grouping& grouping, int token);

struct Quantised {
  std::vector<int> integers;  ///< [heads, tokens, d]
  std::vector<float> scale;   ///< [heads, tokens], that of the token's group
  std::vector<double> slack;  ///< [heads, tokens, d], in steps of the integer
  Vectors vectors(int d) const;
};

/// x - mean in integers; `mean` empty: x itself.
Quantised quantise(const std::vector<double>& x, const std::vector<double>& mean, int heads,
                   int tokens, int d, const Grouping& grouping);

/// Nearest e4m3 value, ties to even, saturating at 448.
double round_e4m3(double x);

/// v [heads, tokens, d] as code * scale, one scale for each head and channel.
std::vector<double> quantise_values(const std::vector<double>& v, int heads, int tokens, int d,
                                    double range);

/// What an attend op computes with.
struct Quantisation {
  int qk_bits = 16, v_bits = 16;
  Group group = Group::kBlock;
  int tile_q = 128, tile_k = 64;
  bool smooth_q = false, smooth_k = false;
  double range = 448;
};

/// The problem as quantised arithmetic sees it: its logits, values and roundings.
Problem quantised_problem(const Problem& problem, const Quantisation& quantisation);

}  // namespace lacuna::oracle

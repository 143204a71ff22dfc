// Token orders: permuted problems, results in the caller's order, and the orders of a video.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/oracle/oracle.hpp"

namespace lacuna::oracle {

/// Token n of the result is token order[n] of `problem` (n_q = n_k; the mask and score of the
/// result are those of `problem`: they speak of positions in the new order).
Problem permuted_problem(const Problem& problem, const std::vector<std::int32_t>& order);

/// Results of a permuted problem in the caller's order: row order[n] is row n.
Output restored_output(const Problem& problem, const Output& output,
                       const std::vector<std::int32_t>& order);

/// Is every number below its size there once?
bool is_permutation(const std::vector<std::int32_t>& order);

/// Tokens lie [t][h][w] in memory; result: the order in which nested loops meet them. `loops` names
/// the axes from the outermost to the innermost: "thw" is memory order, "twh" runs down columns,
/// "hwt" stays at a place through time.
std::vector<std::int32_t> loop_order(int t, int h, int w, const char* loops);

/// Mean distance (sum of steps along t, h, w) between successive tokens of an order.
double mean_step(const std::vector<std::int32_t>& order, int h, int w);

}  // namespace lacuna::oracle

// What an estimate compares: the rows or columns of one side, and their vectors.
#pragma once

#include <vector>

#include "tests/oracle/predict.hpp"

namespace lacuna::oracle {

/// A row or column of the comparison: its vector's index within the head and its tokens.
struct Item {
  int index = 0, first = 0, last = 0;
};

/// All of a head, in tiles of `tile` tokens.
std::vector<Item> items_of(Compared compared, int count, int tokens, int tile);

/// The vectors of one side: summaries, tokens, or tokens in integers. Summaries of keys are
/// smoothed where that changes nothing but precision, those of queries never.
Vectors vectors_of(const std::vector<double>& x, const std::vector<double>& mean, int heads,
                   int tokens, int d, const EstimateRule& rule, Compared compared, int tile,
                   const Grouping& grouping);
/// Of a head.
int vector_count(const EstimateRule& rule, Compared compared, bool is_query, int tokens, int tile);

}  // namespace lacuna::oracle

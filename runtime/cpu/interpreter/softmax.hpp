// Online softmax over tiles, for the rows of one tile of queries: the interpreter's arithmetic.
#pragma once

#include <span>
#include <vector>

#include "compiler/spec/spec.hpp"

namespace lacuna {

/// One summand of a linear combination of rows.
struct Term {
  float weight;
  const float* row;
};

/// out += sum of weight * row, over `out.size()` columns.
void add_terms(std::span<float> out, std::span<const Term> terms);

/// What is known of one row after some tiles. A logit of -inf is a key that is not seen (where
/// logits are weights, 0 is). A NaN
/// logit makes the row's results NaN but does not enter its maximum.
struct RowState {
  float running_max;  ///< -inf: no key seen yet
  float denominator;  ///< sum of exp(logit - running_max)
};

class OnlineSoftmax {
 public:
  /// Where weights are sigmoids of logits, or these themselves, there is no maximum, and the
  /// denominator is 1.
  OnlineSoftmax(int rows, int head_dim, Weights weights = Weights::kSoftmax);
  void reset();

  /// Takes the logits of one tile into maximum and denominator of row `r`, and turns them into
  /// probabilities relative to the new maximum.
  void absorb(int r, std::span<float> logits);
  /// Adds probabilities * values; `values` holds one row of head_dim for each probability.
  void add_values(int r, std::span<const float> probabilities, const float* values);
  /// The same with probabilities as 8 bits: 448 times as much, each rounded to e4m3, and the sum of
  /// the tile formed before it is added.
  void add_values_e4m3(int r, std::span<const float> probabilities, const float* values);

  float running_max(int r) const { return states_[static_cast<std::size_t>(r)].running_max; }
  /// The row's output: 0 if it saw no key. Valid until the next reset.
  std::span<const float> output(int r);
  /// log of the sum of exp(logit); -inf if the row saw no key.
  float log_sum_exp(int r) const;

 private:
  std::span<float> accumulator(int r);

  void weigh_plainly(int r, std::span<float> logits);

  std::size_t head_dim_;
  Weights weights_;
  std::vector<RowState> states_;
  std::vector<float> accumulators_;
  std::vector<Term> terms_;
  std::vector<float> tile_sum_;
};

/// The largest logit that is not NaN; -inf if there is none.
float max_of(std::span<const float> logits);

}  // namespace lacuna

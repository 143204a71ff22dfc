#include "runtime/cpu/interpreter/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/fp8.hpp"

namespace lacuna {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

void add_terms(std::span<float> out, std::span<const Term> terms) {
  const std::size_t columns = out.size();
  float* const sums = out.data();
  std::size_t t = 0;
  // Four rows at a time: each sum is read and written once for four products.
  for (; t + 4 <= terms.size(); t += 4) {
    const Term a = terms[t], b = terms[t + 1], c = terms[t + 2], d = terms[t + 3];
    for (std::size_t j = 0; j < columns; ++j) {
      sums[j] +=
          (a.weight * a.row[j] + b.weight * b.row[j]) + (c.weight * c.row[j] + d.weight * d.row[j]);
    }
  }
  for (; t < terms.size(); ++t) {
    for (std::size_t j = 0; j < columns; ++j) sums[j] += terms[t].weight * terms[t].row[j];
  }
}

float max_of(std::span<const float> logits) {
  float largest = -kInfinity;
  for (const float logit : logits) largest = logit > largest ? logit : largest;
  return largest;
}

OnlineSoftmax::OnlineSoftmax(int rows, int head_dim, Weights weights)
    : head_dim_(static_cast<std::size_t>(head_dim)),
      weights_(weights),
      states_(static_cast<std::size_t>(rows)),
      accumulators_(states_.size() * head_dim_) {
  reset();
}

void OnlineSoftmax::reset() {
  std::fill(states_.begin(), states_.end(), RowState{-kInfinity, 0});
  std::fill(accumulators_.begin(), accumulators_.end(), 0.0F);
}

std::span<float> OnlineSoftmax::accumulator(int r) {
  return std::span(accumulators_).subspan(static_cast<std::size_t>(r) * head_dim_, head_dim_);
}

void OnlineSoftmax::weigh_plainly(int r, std::span<float> logits) {
  if (weights_ == Weights::kSigmoid)
    for (float& logit : logits) logit = 1.0F / (1.0F + std::exp(-logit));
  states_[static_cast<std::size_t>(r)].denominator = 1;
}

void OnlineSoftmax::absorb(int r, std::span<float> logits) {
  if (!has_denominator(weights_)) return weigh_plainly(r, logits);
  RowState& state = states_[static_cast<std::size_t>(r)];
  const float largest = std::max(state.running_max, max_of(logits));
  // Without any key yet, all differences to 0 are -inf (or NaN): no special case is needed.
  const float base = largest == -kInfinity ? 0.0F : largest;
  const float rescale = std::exp(state.running_max - base);
  float sum = 0;
  for (float& logit : logits) {
    logit = std::exp(logit - base);
    sum += logit;
  }
  if (rescale != 1.0F) {
    for (float& value : accumulator(r)) value *= rescale;
  }
  state.denominator = state.denominator * rescale + sum;
  state.running_max = largest;
}

void OnlineSoftmax::add_values(int r, std::span<const float> probabilities, const float* values) {
  terms_.clear();
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    // A key that is not seen has no effect, whatever its value (0 * inf would be NaN).
    if (probabilities[j] != 0) terms_.push_back({probabilities[j], values + j * head_dim_});
  }
  add_terms(accumulator(r), terms_);
}

void OnlineSoftmax::add_values_e4m3(int r, std::span<const float> probabilities,
                                    const float* values) {
  terms_.clear();
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    const float weight = round_to_e4m3(kLargestE4M3 * probabilities[j]);
    if (weight != 0) terms_.push_back({weight, values + j * head_dim_});
  }
  tile_sum_.assign(head_dim_, 0.0F);
  add_terms(tile_sum_, terms_);
  const std::span<float> row = accumulator(r);
  for (std::size_t c = 0; c < head_dim_; ++c) row[c] += tile_sum_[c];
}

std::span<const float> OnlineSoftmax::output(int r) {
  const float denominator = states_[static_cast<std::size_t>(r)].denominator;
  const std::span<float> row = accumulator(r);
  for (float& value : row) value = denominator == 0 ? 0.0F : value / denominator;
  return row;
}

float OnlineSoftmax::log_sum_exp(int r) const {
  const RowState& state = states_[static_cast<std::size_t>(r)];
  return state.denominator == 0 ? -kInfinity : state.running_max + std::log(state.denominator);
}

}  // namespace lacuna

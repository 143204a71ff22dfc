// The kernels of an estimate, one function for each. What is compared, and by which instructions,
// says which of them a program needs.
#pragma once

#include "compiler/lower/predict/keep.hpp"

namespace lacuna {

enum class EstimateKernel : std::uint8_t {
  kGiven,    ///< scores that the spec says itself
  kMeans,    ///< means of queries with means of keys, or with all keys of a tile
  kKeys,     ///< means of queries decide about single keys, which need no memory but for their bit
  kTokens,   ///< tokens, or the last queries, by mma.sync
  kCells,    ///< antidiagonals or means of cells, by mma.sync or wgmma
  kPairs,    ///< tokens in integers, by wgmma and bounds
  kSoftmax,  ///< tokens in integers, by wgmma, relative to the softmax of their row
  kExact,    ///< tokens as they are, by wgmma
};
/// `step` has an estimate, here and in all functions below.
EstimateKernel estimate_kernel(const Plan& plan, const PredictStep& step);
/// The kernels of that estimate. They also decide, except where only the last queries are compared.
Kernels lower_estimate(const Plan& plan, const PredictStep& step);

/// What the kernels of an estimate are made of.
struct EstimateParts {
  const Plan& plan;
  const Estimate& estimate;
  const Select& select;
  KeepQuestion keep;
  int rows = 0;  ///< that a block computes together
  PredictStep step() const { return {&select, &estimate}; }
};

/// Adds what depends on the number of the step: the kernel's name, the hooks of its formulas and,
/// from the second step on, the bits of the step before.
void add_step(const Plan& plan, const PredictStep& step, Kernel& kernel);

Kernels given_kernels(const EstimateParts& parts);          ///< kGiven
Kernels pooled_kernels(const EstimateParts& parts);         ///< kMeans, kKeys
Kernels token_kernels(const EstimateParts& parts);          ///< kTokens
Kernels cell_kernels(const EstimateParts& parts);           ///< kCells
Kernels token_pair_kernels(const EstimateParts& parts);     ///< kPairs
Kernels token_softmax_kernels(const EstimateParts& parts);  ///< kSoftmax
Kernels exact_kernels(const EstimateParts& parts);          ///< kExact

/// Fields that all of them have besides their tiles.
void add_estimate_config(const EstimateParts& parts, std::vector<ConfigField>& fields);
/// The Config of those that compare tokens or cells.
std::vector<ConfigField> token_config(const EstimateParts& parts);

/// What an estimate of integers or of similarities reads; `names` are those of the tokens.
void add_token_operands(const EstimateParts& parts, Kernel& kernel);
void add_similarity_operands(const EstimateParts& parts, Kernel& kernel);

/// Blocks that stride over groups of so many query tiles.
ShapeExpr striding_grid(const EstimateParts& parts, int q_tiles);

/// The bits that are decided.
Slot kept_slot(const Plan& plan, const Select& select);

}  // namespace lacuna

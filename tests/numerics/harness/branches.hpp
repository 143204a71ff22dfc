// Specs with branches for the oracle: each branch is a problem of its own in fp64, and their
// outputs are joined as ir/program.hpp says of MergeBranch.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/numerics/variants/variants.hpp"

namespace lacuna::numerics {

/// One branch's results, and what they count: [n_b, n_h, n_q]. Empty: by their lse.
struct BranchTerm {
  oracle::Output output;
  std::vector<double> weight;
};

/// o, and lse where no branch has a weight (in the base of the problem), else zeros.
oracle::Output join_branches(const oracle::Problem& problem, const std::vector<BranchTerm>& terms);

/// Keys and values are means of `tokens` neighbours, rounded to `dtype`; mask and score see the
/// last of these.
oracle::Problem problem_over_means(const oracle::Problem& problem, int tokens, DType dtype);

/// Queries and keys are elements `first` to `end` - 1 of their rows, scaled by their number; v is
/// whole.
oracle::Problem problem_of_band(const oracle::Problem& problem, int first, int end);

/// What a launch of a spec with branches takes, and what it has to give.
struct JoinedVariant {
  Variant variant;  ///< spec, inputs, parameters
  oracle::Output expected;
  /// Sizes of what is added to that of the sum. Outputs of branches are rounded before they are
  /// added, and where they cancel the roundings stay: what is allowed grows as much.
  double cancellation = 1;
};

/// A predictor's branch as a variant by itself: what it has to give, and its parameters.
struct PredictedBranch {
  std::string wrong;  ///< with what it gave; else ""
  KernelTile tile;    ///< of its kernel
  oracle::Output output;
  std::vector<std::uint8_t> tile_mask;  ///< that it reports, already held against the oracle
  std::vector<ParamValue> params;
};
using PredictBranch = std::function<PredictedBranch(const std::string& variant)>;

/// Asks the kernel of the variant `name` by itself, on the device under test. `params_seed`: as of
/// make_variant.
PredictedBranch predicted_branch(const Case& c, const std::string& name, std::uint32_t seed,
                                 std::optional<std::uint32_t> params_seed = {});

/// "merged-branches", "weighted-branches", "banded-branches", "ordered-branches" and
/// "ordered-merged" (tests/device/specs), "nsa", "vsa" and "differential"; those with bands of a
/// head dim of 128. The variant's inputs and parameters come from `seed`; c.variant is the name.
JoinedVariant make_joined(const Case& c, std::uint32_t seed, const PredictBranch& predict = {});

/// The same of other keys and values, which the problem of the variant has by now.
void join_again(const Case& c, std::uint32_t seed, JoinedVariant& joined);

}  // namespace lacuna::numerics

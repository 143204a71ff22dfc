// Plan -> kernels: one function for each op, or for a few ops that one kernel computes together.
// Each reads the program and the plan, and returns the kernels that the op needs: none if the
// program does not have it.
#pragma once

#include "compiler/lower/kernel.hpp"

namespace lacuna {

// In launch order, and as they are called.
Kernels lower_permute(const Plan& plan);
Kernels lower_means(const Plan& plan);           ///< of a branch over means
Kernels lower_statistics(const Plan& plan);      ///< of smooth, quantise_values
Kernels lower_prepare(const Plan& plan);         ///< of summarise, similarity, quantise, project
Kernels lower_bounds(const Plan& plan);          ///< of summarise, where it makes bounds
Kernels lower_prepare_values(const Plan& plan);  ///< of quantise_values
Kernels lower_pairs(const Plan& plan);           ///< of attend's tiles, where their pairs are asked
Kernels lower_steps(const Plan& plan);           ///< of estimate and select, step by step
Kernels lower_compact(const Plan& plan);
Kernels lower_attend(const Plan& plan);
Kernels lower_combine(const Plan& plan);
Kernels lower_unpermute(const Plan& plan);
Kernels lower_merge_branch(const Plan& plan);

/// Adds to the kernel that makes predict.k_summary what it needs to make scores of few rows
/// (templates/select/pooled/row_scores.cuh). Nothing where no estimate compares means of queries
/// with these summaries, or two steps do.
void add_row_scores(const Plan& plan, Kernel& kernel);

/// Tells a kernel that makes or reads predict.k_summary that its place may be memory of the
/// caller's (kept_summaries).
void add_kept_summaries(const Plan& plan, Kernel& kernel);
/// The same of the kernel that makes them, and how many of its blocks suffice for what is left to
/// do.
void make_kept_summaries(const Plan& plan, Kernel& kernel);

/// A plan for a CUDA target, lowered.
struct LoweredPlan {
  Kernels kernels;          ///< in launch order
  std::vector<Slot> slots;  ///< of the workspace, each once, in their order in memory
  std::vector<NamedSize> sizes;
  BlockParts parts;
  /// Grids and slots are those of one sequence of a batch, at the most that it may have.
  bool each_sequence = false;
  /// Reports of the caller's that each launch fills with zeros.
  std::vector<TensorRole> cleared;
};
LoweredPlan lower_plan(const Plan& plan);

/// Has the kernel's grid a row of blocks for each sequence of a batch? Not where it takes all of
/// them as one schedule.
bool runs_each_sequence(const LoweredPlan& lowered, const Kernel& kernel);

/// Sizes that attend finds in its arguments; those of the CPU's too.
std::vector<NamedSize> attend_sizes(const Plan& plan);

}  // namespace lacuna

// What one branch of a spec sees of a launch.
#pragma once

#include <array>
#include <string_view>

#include "compiler/emit/launch_program.hpp"
#include "lacuna/lacuna.h"
#include "runtime/base/arguments.hpp"
#include "runtime/cpu/ops/run_ops.hpp"

namespace lacuna {

/// Where the branch attends to means, or means of queries attend, their number stands for that of
/// the tokens.
LaunchShape shape_of_branch(const VariantSpec& branch, LaunchShape shape);

/// The same of tensors and parameters; k and v lie where the caller's tokens do, and of a branch
/// with dims q and k where its band begins. `contract`, `program`: the branch's own. `kv`: of the
/// elements of k. Allocates nothing.
BoundLaunch bind_branch(const VariantSpec& branch, const LaunchContract& contract,
                        const Program& program, KvFormat kv, const BoundLaunch& bound);

/// Adds the order of tokens to the parameters of `program`, if formulas of permuted tokens read it:
/// it is the launch's order, or of a sequence the part of the batch's that belongs to it.
void take_order(const Program& program, BoundLaunch& own);

/// Of a launch's workspace: what branches hand on to the next, and what is of this one alone. The
/// first part lies in front, as large as the branch that wants most of it says. `values`: of the
/// branch's program.
struct WorkspaceBytes {
  std::size_t shared = 0, own = 0;
};
WorkspaceBytes workspace_parts(const LaunchProgram& program, const LaunchShape& shape,
                               const std::int32_t* values);

/// What the caller passed of a branch; null: nothing.
const lacuna_branch_args* args_of_branch(const lacuna_launch_args& args, std::string_view name);

/// Adds the branch's reports to what it is bound to. `contract`: the branch's own.
bool bind_reports(const LaunchContract& contract, const lacuna_branch_args& given, BoundLaunch& own,
                  Diagnostics& diagnostics);

/// One branch of a launch, with the caller's memory for its decision.
struct BranchLaunch {
  BoundLaunch bound;
  lacuna_selection* selection = nullptr;
  KeptBits kept;  ///< on the CPU: the bits of the selection, or of one sequence's part of it
};
using BranchLaunches = std::array<BranchLaunch, kMostBranches>;

}  // namespace lacuna

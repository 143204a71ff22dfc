// What one branch of a spec sees of a launch.
#pragma once

#include <array>
#include <string_view>

#include "lacuna/lacuna.h"
#include "runtime/base/arguments.hpp"

namespace lacuna {

/// Where the branch attends to means, or means of queries attend, their number stands for that of
/// the tokens.
LaunchShape shape_of_branch(const VariantSpec& branch, LaunchShape shape);

/// The same of tensors and parameters; k and v lie where the caller's tokens do, and of a branch
/// with dims q and k where its band begins. `dtype`, `kv`: of the elements of q and of k. Allocates
/// nothing.
BoundLaunch bind_branch(const VariantSpec& branch, DType dtype, KvFormat kv,
                        const BoundLaunch& bound);

/// Of a batch of sequences: each has a piece of the workspace, which is as large in one branch as
/// in the others, because what one hands on to the next lies at its beginning. `bytes`: of the
/// whole workspace; `values`: of the branch's program.
void take_piece(const LaunchProgram& program, const LaunchShape& shape, std::size_t bytes,
                std::int32_t* values);

/// What the caller passed of a branch; null: nothing.
const lacuna_branch_args* args_of_branch(const lacuna_launch_args& args, std::string_view name);

/// Adds the branch's reports to what it is bound to. `contract`: the branch's own.
bool bind_reports(const LaunchContract& contract, const lacuna_branch_args& given, BoundLaunch& own,
                  Diagnostics& diagnostics);

/// One branch of a launch, with the caller's memory for its decision.
struct BranchLaunch {
  BoundLaunch bound;
  lacuna_selection* selection = nullptr;
};
using BranchLaunches = std::array<BranchLaunch, kMostBranches>;

}  // namespace lacuna

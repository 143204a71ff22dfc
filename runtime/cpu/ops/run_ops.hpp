// The ops around attend on the CPU: every op of a Program but Input and Attend, in plain C++.
//
//   caller's tensors --run_ops_before_attend--> arguments of an executor --interpreter or plugin-->
//   o, lse
//                                                              --run_ops_behind_attend--> caller's
//                                                              o, lse
// The executors (runtime/cpu/interpreter/, runtime/cpu/llvm/) run the attend op alone, on the
// arguments made here: lists or bits of kept tiles, quantised tensors with scales for each token,
// ordered copies. Semantics of each op: ir/program.hpp. One file for each group of ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compiler/ir/program.hpp"
#include "runtime/cpu/host_backend.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna {

/// Kept bits that outlive a launch (the caller's selection). `data` null: this launch
/// decides, and its bits are dropped afterwards.
struct KeptBits {
  std::uint32_t* data = nullptr;
  bool decided = false;  ///< from an earlier launch: the estimate and the selection are left out
};

/// A launch whose tensors the ops made; owns their memory.
struct PreparedLaunch {
  HostArgs args;  ///< for an executor
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

/// Does a program have ops besides Input and Attend?
bool has_other_ops(const Program& program);

/// Of the caller's q and o; n_q of a branch of means counts these.
int query_tokens(const Program& program, const HostArgs& args);

/// Words of u32 that the kept bits of a launch take; 0 if the program selects nothing.
std::size_t kept_words(const Program& program, const HostArgs& args);

/// Runs what stands before attend, on `caller.threads` threads.
void run_ops_before_attend(const Program& program, const HostArgs& caller, KeptBits kept,
                           PreparedLaunch& prepared);

/// Of these tokens.
std::span<const std::int32_t> order_of(const Program& program, const HostArgs& args);

/// Runs what stands behind attend: results in the caller's token order, or of all branches so far.
void run_ops_behind_attend(const Program& program, const HostArgs& caller,
                           const PreparedLaunch& prepared, const BranchSums& sums = {});

}  // namespace lacuna

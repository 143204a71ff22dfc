// The interpreter: executes a Program on the CPU in plain C++. It is always there, also without
// LLVM; the compiled CPU backend (runtime/cpu/llvm/) does the same work many times faster.
//
// Input values are widened to f32; logits, softmax, probabilities and sums are f32.
#pragma once

#include "compiler/ir/program.hpp"
#include "runtime/cpu/host_backend.hpp"

namespace lacuna {

/// Runs the attend op of `program`, whose tiles are chosen, on checked arguments
/// (host_backend.hpp). Writes o and, where they are passed, lse (if the program has it), counts and
/// tile_mask, completely: also rows that see no key, and tiles that are not visited. counts:
/// visible (tiles that the classifier does not find empty), visited, gated (code 2). tile_mask: 2
/// where every scope of the tile that has rows was gated. List indices outside the key tiles are
/// ignored.
void run_interpreted(const Program& program, const HostArgs& args);

}  // namespace lacuna

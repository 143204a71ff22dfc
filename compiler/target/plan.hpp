// Plan: *how* a Program runs on one architecture: kernels, tiles, shared memory, registers. Every
// value knows its origin, which `explain` shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/ir/program.hpp"
#include "compiler/target/target.hpp"

namespace lacuna {

enum class Origin : std::uint8_t { kSpec, kDefault, kDerived, kTuned };

template <class T>
struct Chosen {
  T value{};
  Origin origin = Origin::kDefault;
  std::string reason;  ///< one clause: "gate needs 128-row tiles", "largest that fits 99 KiB"
};

/// The mma family of `attend`: cp.async multistage, ldmatrix, mma.sync; one warp owns 16 query
/// rows.
struct AttendPlan {
  Chosen<int> tile_q, tile_k, stages, warps;
  Chosen<TileOrder> order;
  Chosen<Loader> loader;
  Chosen<int> smem_bytes;     ///< dynamic shared memory of one block
  Chosen<int> registers;      ///< estimate for one thread
  Chosen<int> blocks_per_sm;  ///< by shared memory, registers and threads
};

struct Plan {
  Target target;
  Program program;  ///< after all passes: tiles are concrete
  AttendPlan attend;
};

/// Runs the pipeline of passes and places the program on the target. All violated limits are
/// reported.
Plan make_plan(const SpecDocument& document, const BuildOptions& options, const Target& target,
               Diagnostics& diagnostics);

/// Text form of a plan, one line for each value: `attend.tile_q = 128  (spec)`.
std::string print_plan(const Plan& plan);

std::string_view name_of(Origin);

}  // namespace lacuna

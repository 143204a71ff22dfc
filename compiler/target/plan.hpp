// Plan: *how* a Program runs on one architecture: kernels, tiles, shared memory, registers. Every
// value knows its origin, which `explain` shows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/ir/program.hpp"
#include "compiler/target/target.hpp"
#include "compiler/target/variant.hpp"

namespace lacuna {

enum class Origin : std::uint8_t { kSpec, kDefault, kDerived, kTuned, kCaller };

template <class T>
struct Chosen {
  T value{};
  Origin origin = Origin::kDefault;
  std::string reason;  ///< one clause: "gate needs 128-row tiles", "largest that fits 99 KiB"
};

/// `attend` in one of its families. mma: cp.async multistage, ldmatrix, mma.sync; one warp owns 16
/// query rows. wgmma: a producer warpgroup loads by TMA, each consumer warpgroup owns 64 query
/// rows. On the CPU the family and everything from `stages` on mean nothing.
struct AttendPlan {
  Chosen<AttendFamily> family;
  Chosen<float> scale;
  Chosen<bool> lse;
  Chosen<bool> pairs;            ///< Attend::pairs; a reason only where bounds leave tiles open
  Chosen<GateScope> gate_scope;  ///< if there is a gate
  Chosen<int> tile_q, tile_k;
  Chosen<TileOrder> order;
  Chosen<int> stages, warps;  ///< warps that compute
  /// Blocks that share the tiles of a row; from 2 on a kernel merges their results.
  Chosen<int> split_kv = {1, Origin::kDefault, ""};
  /// Work tiles that a block takes together. Only the wgmma family has the values from here to
  /// code_places.
  Chosen<int> work_tiles = {1, Origin::kDefault, ""};
  Chosen<int> warpgroups;     ///< that compute
  Chosen<int> step_keys;      ///< of a step of the main loop: whole tiles
  Chosen<int> value_stages;   ///< places of values; `stages` are those of keys
  Chosen<int> query_buffers;  ///< query tiles in shared memory
  /// In registers, or read by each product.
  Chosen<QueryPlace> queries = {QueryPlace::kRegisters, Origin::kDefault, ""};
  /// Places of codes, of which keys and values are made; 0: those are loaded as they are.
  Chosen<int> code_places = {0, Origin::kDefault, ""};
  Chosen<TileWalk> walk;  ///< of the kernel, with those below (target/choose_variant.hpp)
  Chosen<Producer> producer;
  Chosen<OperandRows> keys, values;  ///< of wgmma `keys` are those of queries, too
  Chosen<Consumer> consumer;
  Chosen<GatePolicy> gate_policy;  ///< wgmma only
  Chosen<Loader> loader;           ///< kGather: attend gathers columns
  Chosen<int> qk_bits, v_bits;     ///< 16: as the caller passes them
  Chosen<QuantGroup> qk_group;     ///< with 8 bits
  Chosen<int> keep_q, keep_k;  ///< tokens of the predictor's tiles; 0: everything visible is kept
  Chosen<int> estimate_bits;   ///< of what the estimate compares; 0: there is none
  Chosen<int> estimate_product_bits;            ///< of the operands of its mma
  Chosen<AttendFamily> estimate_family;         ///< if it compares tokens or cells
  Chosen<AttendFamily> estimate_before_family;  ///< the same of the step before, if there is one
  Chosen<int> reuse;                            ///< launches that one decision serves
  Chosen<int> smem_bytes;                       ///< dynamic shared memory of one block
  Chosen<int> registers;                        ///< estimate for one thread
  Chosen<int> blocks_per_sm;                    ///< by shared memory, registers and threads
};

struct Plan {
  Target target;
  Program program;  ///< after all passes: tiles are concrete
  AttendPlan attend;
  /// Of sequences of few queries, which a second attend takes where each head has tiles or a gate
  /// of its own. Nothing: one kernel is for all.
  std::optional<AttendPlan> packed = {};
  bool is_packed = false;  ///< it is the plan of such a second attend
};

/// Called after each pass with its name and the program before and after it.
using PassObserver =
    std::function<void(std::string_view pass, const Program& before, const Program& after)>;

/// Runs the pipeline of passes and places the program on the target. All violated limits are
/// reported; the plan is only meaningful if no error was added.
Plan make_plan(const SpecDocument& document, const BuildOptions& options, const Target& target,
               Diagnostics& diagnostics, const PassObserver& observer = {});

/// Has each head tiles of its own, by a list, a gate or columns?
bool has_tiles_of_heads(const Attend& attend);
/// The second attend, as a plan; for lowering. Of a plan that has one. It goes by the bits that its
/// lists were made of.
Plan plan_of_packed(const Plan& plan);
/// Do work tiles of a batch of sequences come as a schedule says that the device makes?
bool has_sequence_tiles(const Plan& plan);
/// Is it a second attend with a predictor? It visits the tiles that any head of a work tile keeps,
/// and reads the predictor's bits for that, one for each head and tile.
bool has_kept_tiles(const Plan& plan);
/// Of these: are all heads of a KV head rows of one work tile?
bool packs_heads(const Plan& plan);

std::string_view name_of(Origin);

}  // namespace lacuna

// A point of the tuner's search space, and the machine it is for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/program.hpp"
#include "compiler/target/plan.hpp"

namespace lacuna::tune {

/// What a tuner varies. Warps are not among it: a warp has 16 rows of tile.q.
struct Config {
  int tile_q = 0, tile_k = 0;
  int stages = 0;  ///< GPU; 0 on the CPU
  TileOrder order = TileOrder::kAscending;
  int threads = 0;                              ///< CPU; 0 on a GPU
  int split_kv = 1;                             ///< GPU; 1 on the CPU
  QueryPlace queries = QueryPlace::kRegisters;  ///< of the wgmma family
  bool operator==(const Config&) const = default;
};

/// "q128 k64 ascending threads2", "q128 k64 ascending stages2 split4 shared_memory".
std::string print_config(const Config& config);
std::optional<Config> parse_config(std::string_view text);

/// What the compiler is handed; `record` is shown as the reason.
TunedTiles tuned_tiles(const Config& config, std::string record);

/// The configuration of a plan that runs with `threads`.
Config config_of(const Plan& plan, int threads);

/// The spec with all that a configuration decides written down; then nothing is left to look up.
VariantSpec fixed_spec(const VariantSpec& spec, const Config& config);

/// What candidates run on.
struct Machine {
  Target target;
  int processors = 1;  ///< GPU: multiprocessors; CPU: hardware threads
  int cores = 1;       ///< CPU: with units of their own; GPU: as processors
};

}  // namespace lacuna::tune

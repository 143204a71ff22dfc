// The search space of a spec on a machine: what it leaves open, point by point, and which points
// the compiler takes.
//
// A field written as one value is not open. "auto" is open unless it decides what is computed: a
// gate judges whole tiles in their order, a parameter or a caller's list may have one value for
// each tile. A list is the author's word that any of its values will do, save for such a list.
#pragma once

#include <optional>
#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "runtime/tune/config.hpp"

namespace lacuna::tune {

/// The values of each field; one value: nothing to choose.
struct Dimensions {
  std::vector<int> tile_q, tile_k, stages, threads;
  std::vector<TileOrder> order;
  std::vector<int> split_kv;
  std::vector<QueryPlace> queries;
};

/// `threads`: that the caller fixed; 0: open on the CPU. `shape`: of the launches; to split work
/// tiles is open where they leave multiprocessors without one, and never where they are not known.
Dimensions dimensions_of(const SpecDocument& document, const Plan& usual, const Machine& machine,
                         int threads, const std::optional<LaunchShape>& shape);

/// Is every value of the configuration among those of its dimension?
bool contains(const Dimensions& dimensions, const Config& config);

/// What is fixed, and by what: "tile.q (written)", "tile.order (the gate depends on it)".
std::vector<std::string> fixed_fields(const SpecDocument& document, const Plan& usual,
                                      const Machine& machine, int threads,
                                      const std::optional<LaunchShape>& shape);

struct Candidate {
  int id = 0;  ///< 0: what is used without tuning; the others in the order of enumeration
  Config config;
  Plan plan;
};
struct Refused {
  Config config;
  std::string reason;
};
struct Space {
  std::vector<Candidate> candidates;  ///< by id
  std::vector<Refused> refused;       ///< by make_plan
  std::string hash() const;           ///< of the candidates' configurations
};

/// The plan made without tuning must be free of errors, else the space is empty and `diagnostics`
/// has them.
Space search_space(const SpecDocument& document, const BuildOptions& options,
                   const Machine& machine, int threads, const std::optional<LaunchShape>& shape,
                   Diagnostics& diagnostics);

}  // namespace lacuna::tune

// A guess at how long each configuration takes: good enough to say which to try first and which
// not to try at all.
//
// GPU: a roofline over one block (mma rate, L2 traffic, a fixed price for each tile), its latency
// hidden as far as occupancy allows, times the waves of blocks. CPU: arithmetic at a rate that
// falls where a tile leaves the caches, times the work tiles of the busiest core.
#pragma once

#include <string>
#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "runtime/tune/space.hpp"

namespace lacuna::tune {

struct Cost {
  double cycles = 0;  ///< of the whole launch; only ratios mean anything
  std::string limited_by;
};
/// `density`: share of the tiles that are visited.
Cost estimate_cost(const Candidate& candidate, const Machine& machine, const LaunchShape& shape,
                   double density);

struct Pruned {
  int id = 0;
  std::string reason;
};
/// What is used without tuning is never pruned, nor the same with other threads.
struct Ordered {
  std::vector<int> ids;        ///< to be measured: what is used without tuning, then the most
                               ///< promising first
  std::vector<Pruned> pruned;  ///< guessed to be far from the best
};
Ordered order_by_cost(const Space& space, const Machine& machine, const LaunchShape& shape,
                      double density);

}  // namespace lacuna::tune

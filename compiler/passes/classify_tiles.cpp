// Derives from each mask, and from the reference of an estimate, the two expressions that say
// whether a tile is full, partial or empty.
#include "compiler/passes/pass.hpp"

namespace lacuna {

Program classify_tiles(Program program, const PassContext&) {
  for (Node& node : program.nodes) derive_classifiers(node.op);
  return program;
}

}  // namespace lacuna

// Derives from the mask the two expressions that say whether a tile is full, partial or empty.
#include "compiler/passes/pass.hpp"

namespace lacuna {

Program classify_tiles(Program program, const PassContext&) {
  Attend& attend = attend_of(program);
  attend.classifier = classify_mask(attend.mask);
  return program;
}

}  // namespace lacuna

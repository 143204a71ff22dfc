#include "runtime/cpu/llvm/attend/panels.hpp"

#include <limits>

namespace lacuna::host {

Panels choose_panels(int columns, int depth, int width, int registers) {
  const int vectors_needed = (columns + width - 1) / width;
  const int most = registers >= 32 ? 4 : 2;
  Panels best;
  int best_waste = std::numeric_limits<int>::max();
  for (int vectors = most; vectors >= 1; --vectors) {
    const int count = (vectors_needed + vectors - 1) / vectors;
    const int waste = count * vectors - vectors_needed;
    // Narrow blocks load more than they multiply: one wasted vector is cheaper than width one.
    const int penalty = vectors == 1 && vectors_needed > 1 ? 2 : 0;
    if (waste + penalty >= best_waste) continue;
    best_waste = waste + penalty;
    const int rows = registers >= 32 && vectors <= 3 ? 8 : 4;
    best = {.block = {.rows = rows, .vectors = vectors, .width = width},
            .count = count,
            .depth = depth};
  }
  return best;
}

}  // namespace lacuna::host

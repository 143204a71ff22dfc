// How much of the attention a launch has to compute, from its report of tiles.
#pragma once

#include "compiler/spec/spec.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/run/result.hpp"

namespace lacuna::tools {

/// Pairs of tokens in visible and in visited tiles; those of partial tiles count half.
struct Work {
  double visible = 0, visited = 0;
};

/// `result` holds the tile mask of a launch and the sizes of its tiles.
Work count_work(const SpecDocument& document, const Inputs& inputs, const RunResult& result);

}  // namespace lacuna::tools

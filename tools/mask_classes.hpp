// What the mask says of each tile that a run visited, gated or left out: the same formulas as the
// kernels', evaluated on the host.
#pragma once

#include <vector>

#include "compiler/expr/evaluate.hpp"
#include "compiler/expr/interval.hpp"
#include "tools/mask_picture.hpp"
#include "tools/run_launch.hpp"

namespace lacuna::tools {

class MaskClasses {
 public:
  /// `inputs` outlives it.
  MaskClasses(const Spec& spec, const Inputs& inputs, const RunResult& result);

  /// `code`: of the tile mask.
  TileLook look(std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j, std::uint8_t code);

 private:
  bool holds(const Expr& expr) const;

  TileClassifier classifier_;
  std::vector<ParamView> views_;
  Bindings bindings_;
  std::int32_t tile_q_, tile_k_, n_q_, n_k_;
};

}  // namespace lacuna::tools

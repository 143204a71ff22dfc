// What the mask says of each tile that a run visits, gates or leaves out: the same formulas as the
// kernels', evaluated on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/expr/bounds/interval.hpp"
#include "compiler/expr/evaluate.hpp"
#include "tools/inputs/inputs.hpp"

namespace lacuna::tools {

/// What a run did with a tile, and what the mask says of it.
enum class TileLook : std::uint8_t {
  kInvisible,  ///< the mask hides all of it
  kDropped,    ///< visible, not visited
  kFull,       ///< visited, wholly visible
  kPartial,    ///< visited, needs the mask
  kGated,      ///< visited, gated by the whole block
};
inline constexpr int kTileLooks = 5;

/// Parameters as expressions read them; they point into the inputs.
std::vector<ParamView> views_of(const VariantSpec& spec, const Inputs& inputs);

/// Does no query see a key behind its own place? Asked of 64 queries of each head.
bool looks_causal(const VariantSpec& spec, const Inputs& inputs);

class MaskClasses {
 public:
  /// `inputs` outlives it.
  MaskClasses(const SpecDocument& document, const Inputs& inputs, std::int32_t tile_q,
              std::int32_t tile_k);

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

// Chooses the family of attend: wgmma if the target, the program and its tiles allow it, else mma.
#pragma once

#include <optional>
#include <string>

#include "compiler/passes/target/tile_choice.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {

struct WgmmaChoice {
  std::optional<WgmmaShape> shape;  ///< nothing: the family is mma
  std::string reason;               ///< for the one or the other
  std::string stages_reason = {};   ///< for the shape's stages, where the spec leaves them open
};

/// The shape with what it has to know of the program.
WgmmaShape with_operands(WgmmaShape shape, const Program& program);

/// `tuned`: the measured tiles, if there are such; where only mma can have them, it is mma. Adds an
/// error if the caller asks for wgmma and there is no shape.
WgmmaChoice choose_wgmma(const Program& program, const TileRequest& request,
                         const std::optional<TileShape>& tuned, const PassContext& context);

/// Does this family take these tiles of the program?
bool takes_tiles(const TileShape& tiles, const Program& program, const TileRequest& request,
                 const PassContext& context);

/// Notes the family and what it decides beyond the tiles; a gate per warp becomes one per
/// warpgroup.
Program note_family(Program program, const WgmmaChoice& choice, const PassContext& context);

}  // namespace lacuna

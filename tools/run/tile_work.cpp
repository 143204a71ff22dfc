#include "tools/run/tile_work.hpp"

#include "tools/run/mask_classes.hpp"

namespace lacuna::tools {

Work count_work(const SpecDocument& document, const Inputs& inputs, const RunResult& result) {
  MaskClasses classes(document, inputs, result.tile_q, result.tile_k);
  const auto& shape = result.tile_mask.shape;
  const double pairs = static_cast<double>(result.tile_q) * result.tile_k;
  Work work;
  std::size_t at = 0;
  for (std::int32_t b = 0; b < shape[0]; ++b)
    for (std::int32_t h = 0; h < shape[1]; ++h)
      for (std::int32_t i = 0; i < shape[2]; ++i)
        for (std::int32_t j = 0; j < shape[3]; ++j) {
          const auto code = static_cast<std::uint8_t>(result.tile_mask.bytes[at++]);
          // As if visited: says whether the tile needs the mask.
          const bool visible = classes.look(b, h, i, j, 0) != TileLook::kInvisible;
          if (!visible) continue;
          const double share = classes.look(b, h, i, j, 1) == TileLook::kPartial ? 0.5 : 1.0;
          work.visible += share * pairs;
          if (code != 0) work.visited += share * pairs;
        }
  return work;
}

}  // namespace lacuna::tools

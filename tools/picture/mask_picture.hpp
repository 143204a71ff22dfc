// The map of kept tiles as a picture: one panel for each head, queries down, keys across.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/picture/picture.hpp"
#include "tools/run/mask_classes.hpp"

namespace lacuna::tools {

struct MaskPanels {
  std::string title;
  std::vector<std::string> captions;  ///< one for each panel
  std::int64_t q_tiles = 0, k_tiles = 0;
  /// Of tile (i, j) of a panel.
  std::function<TileLook(std::size_t panel, std::int64_t i, std::int64_t j)> look;
};

/// Where there are more tiles than a panel has cells, a cell blends those it stands for.
Picture mask_picture(const MaskPanels& panels);

}  // namespace lacuna::tools

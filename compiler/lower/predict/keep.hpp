// What the formula `keep` of a predictor reads of a tile. It says what the kernels have to find out
// about a tile, and in which order they visit tiles.
#pragma once

#include <optional>

#include "compiler/lower/kernel.hpp"

namespace lacuna {

struct KeepQuestion {
  const char* step = "kOnly";        ///< of the predictor: Step of templates/base/kinds.cuh
  bool score = false, mass = false;  ///< reads them
  bool similar_q = false, similar_k = false;  ///< `keep` or the estimate's `exclude` reads them
  bool p_max = false;                         ///< reads it: p of the first tile in order
  bool ranks_tiles = false;                   ///< reads what is known only of tiles in order
  /// What it asks of a tile's rank, if that makes the tile one of the first so many of its row, as
  /// many whatever the tile, and if it asks nothing else but for the tile's place.
  std::optional<Expr> rank_condition{};
  bool reads_place = false;
  /// What it asks of p, if that is the same for all tiles of a row; only where pairs are estimated
  /// by their bounds.
  std::optional<Expr> p_condition{};

  /// Each row takes its first tiles by rank: no order has to be made of the others.
  bool keeps_first = false;
  /// The same where all rows of a head have one order: each takes its first visible tiles of that.
  bool keeps_first_in_order = false;
  bool orders_tiles() const { return ranks_tiles && !keeps_first; }
};

KeepQuestion keep_question(const Plan& plan, const PredictStep& step);

/// Fields of a Config of a kernel that decides.
std::vector<ConfigField> keep_config(const KeepQuestion& keep);

}  // namespace lacuna

// The predictor in fp64: which tiles are kept, and which of these decisions are out of reach of
// rounding. One definition for each term: permutation and means before (order.hpp, summary.hpp,
// quantise.hpp), then estimate, rank, mass and the keep rule here.
//
// Every estimate is a Band: an implementation in f32 may be anywhere in it. A decision is stable if
// the keep rule says the same at every corner of the bands.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/oracle/quantise.hpp"
#include "tests/oracle/summary.hpp"

namespace lacuna::oracle {

enum class Compared { kMean, kCellMean, kTokens, kAntidiagonal, kLast, kBounds, kStride };
enum class Reduction { kMax, kSum };
enum class Norm { kNone, kSoftmax, kReference, kPrevious, kRowMax };

/// What a keep rule knows about a tile. `similar` rules of exclude see similar_* and the tile
/// alone.
struct TileFacts {
  double score = 0, p = 0, p_max = 0, mass_before = 0, similar_q = 0, similar_k = 0;
  int rank = 0, visible = 0;
  int n_i = 0, n_j = 0;
  TileIndex tile;
};

/// Vectors that are compared in the place of q and k, as they are after rounding.
struct IndexVectors {
  int heads = 0, dim = 0;      ///< no heads: q and k are compared
  std::vector<double> q;       ///< [n_b, heads, n_q, dim]
  std::vector<double> k;       ///< [n_b, n_k, dim]
  std::vector<double> weight;  ///< [n_b, heads, n_q]
};

struct EstimateRule {
  IndexVectors index;
  /// Scores of tiles, in place of logits: nothing is compared. Empty: rows with columns.
  std::function<double(const TileFacts&)> from;
  Compared rows = Compared::kMean, columns = Compared::kMean;
  int count = 1;         ///< tokens of a cell (of rows), of the last rows, from row to row
  int column_count = 0;  ///< tokens of a cell of columns; 0: as of rows
  Format cells;          ///< that means of cells are rounded to
  double temperature = 1;
  std::function<bool(int element)> takes;  ///< of q and k, what is compared; empty: all
  int bits = 32;                           ///< 8 and 4: integers
  Group group = Group::kThread;
  Reduction reduction = Reduction::kMax;
  Norm norm = Norm::kSoftmax;
  /// Keys whose exact logits normalise (kReference). Empty: all.
  std::function<bool(int q, int k)> reference;
  std::vector<double> previous_lse;               ///< [n_b, n_h, n_q] (kPrevious)
  std::function<bool(const TileFacts&)> exclude;  ///< empty: no tile
};

struct Predictor {
  int tile_q = 128, tile_k = 64;
  bool smooth_q = false, smooth_k = false;
  Similarity similarity = Similarity::kCosine;
  bool uses_similarity = false, uses_rank = true;  ///< false: `keep` reads none; saves time
  std::optional<EstimateRule> estimate;
  std::function<bool(const TileFacts&)> keep;
  bool shared_heads = false;
  /// At most one: the step before, of the same tiles. This one looks within what it keeps, or keeps
  /// that as well.
  std::vector<Predictor> before;
  bool joins = false;
};

/// For each tile of the predictor [n_b, n_h, q_tiles, k_tiles]: kept, and whether any
/// implementation must say the same.
struct KeptTiles {
  int q_tiles = 0, k_tiles = 0;
  std::vector<std::uint8_t> kept, stable;
};
KeptTiles oracle_kept(const Problem& problem, const Predictor& predictor);

/// The same for a few work tiles of a problem too large for all; each head's own decision.
struct WorkTile {
  int b = 0, h = 0, i = 0;
};
struct KeptRow {
  std::vector<std::uint8_t> kept, stable;  ///< [k_tiles]
};
std::vector<KeptRow> oracle_kept_rows(const Problem& problem, const Predictor& predictor,
                                      const std::vector<WorkTile>& rows);

/// Estimates of one work tile: score and p of each tile, and whether the tile is visible. The
/// piece of oracle_kept that tests look into.
struct RowEstimate {
  std::vector<Band> score, p;
  std::vector<std::uint8_t> visible;
};
RowEstimate oracle_estimate(const Problem& problem, const Predictor& predictor, int b, int h,
                            int i);

}  // namespace lacuna::oracle

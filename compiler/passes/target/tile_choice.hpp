// The search behind choose_tiles: which shapes are tried, in which order, and why a shape is
// refused.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/passes/pass.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {

/// What the tiles of attend have to go with, besides the target.
struct TileRequest {
  const TileSpec& spec;
  const Target& target;
  int keep_q = 0, keep_k = 0;  ///< the predictor's tiles; 0: there is none
  bool gathers = false;        ///< tiles of keys are gathered from columns of keep_k keys
  bool has_wide_rows = false;  ///< of more elements than one warp's registers hold of O
  /// The parameter by which the predictor tells tiles of attend apart; "" if there is none.
  std::string per_q_tile{}, per_k_tile{};
  QuantGroup group = QuantGroup::kBlock;  ///< of 8-bit Q and K
};
TileRequest tile_request(const Program& program, const TileSpec& spec, const Target& target);

/// The values tried for each field, in order of preference: the user's, else defaults, which divide
/// the predictor's tiles.
struct TileCandidates {
  std::vector<int> tile_q, tile_k, stages;
};
TileCandidates tile_candidates(const TileRequest& request);
/// Of the stages that are tried where nothing asks for others.
inline constexpr const char* kLeastStagesReason =
    "the least: one tile is loaded while another is multiplied";

/// Why a shape cannot be; `message` has the numbers, `note` the rule.
struct TileViolation {
  Code code{};
  std::string message, note;
  const char* pointer = nullptr;  ///< the field at fault; null: the tile as a whole is too large
};
std::optional<TileViolation> find_violation(const TileShape& shape, const TileRequest& request);

/// The part of it that the predictor's tiles are to blame for.
std::optional<TileViolation> find_kept_violation(const TileShape& shape,
                                                 const TileRequest& request);

/// The measured shape, if it is measured whole and within what the spec writes; the rest of it as
/// in `usual`.
std::optional<TileShape> tuned_shape(const TunedTiles* tuned, const TileSpec& spec,
                                     TileShape usual);

/// Why a legal shape is taken only if there is no other: what its registers spill for. "" if
/// nothing.
std::string spill_reason(const TileShape& shape, const Target& target);

/// The field that the author wrote, or would write, to change a side ("q" or "k") of the tiles.
const char* written_place(std::string_view side, const TileRequest& request);

using IsLegal = std::function<bool(const TileShape& shape, const TileRequest& request)>;

struct LegalValues {
  std::string_view pointer;  ///< of the field, as it was written, or would be
  std::string text;          ///< "tile.k = 96 or 128"
};
/// For each field the legal values next to the first shape's, the others as in one of `shapes`.
std::vector<LegalValues> nearest_legal(const std::vector<TileShape>& shapes,
                                       const TileRequest& request, const IsLegal& is_legal);

}  // namespace lacuna

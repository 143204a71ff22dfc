// Formulas of a kernel that computes a part of a problem: a rank of a group has some of the queries
// and some of the heads, and its formulas have to see where these stand in the whole.
//
//   whole   q: 0 .................... n_q         k <= q + n_k - n_q
//   part         |first_q .. |                    k <= q + group_first_q + n_k - group_n_q
//
// The positions are scalar parameters that the runtime passes, so backends need nothing new.
#pragma once

#include <array>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/ir/program.hpp"

namespace lacuna {

enum class PositionParam : std::uint8_t {
  kFirstQ,         ///< the part's first query
  kNQ,             ///< queries of the whole
  kFirstH,         ///< the part's first query head
  kNH,             ///< query heads of the whole
  kFirstKeepTile,  ///< the part's first query tile of the predictor
  kKeepTiles,      ///< query tiles of the predictor in the whole
  kFirstGateTile,  ///< the part's first query tile of attend
  kGateTiles,      ///< query tiles of attend in the whole
};

inline constexpr std::array<std::string_view, 8> kPositionParamNames = {
    "group_first_q",         "group_n_q",        "group_first_h",         "group_n_h",
    "group_first_keep_tile", "group_keep_tiles", "group_first_gate_tile", "group_gate_tiles"};

constexpr std::string_view name_of(PositionParam param) {
  return kPositionParamNames[static_cast<std::size_t>(param)];
}

/// What a part may be.
enum class PartKind : std::uint8_t {
  kQueriesOfHeads,  ///< some queries of some heads
  kHeads,           ///< all queries of some heads: positions of queries stay
};

/// The program with formulas over positions in the whole. The PositionParams that they read come
/// behind the spec's parameters; dimensions of parameters that formulas do not write out (heads,
/// q_tiles) are still indexed by positions in the part. Keys are all there, so k and n_k stay.
/// Adds a diagnostic where the spec has a parameter of such a name, or too many.
Program shift_positions(Program program, PartKind kind, Diagnostics& diagnostics);

/// The parameter of a position.
ParamSpec position_param(PositionParam param);

}  // namespace lacuna

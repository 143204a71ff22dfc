// Expressions as the text of hooks (hooks.hpp): their names in CUDA, and what of them stays the
// same for many scores or tiles.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/emit/cuda/cuda_writer.hpp"
#include "compiler/expr/text/print_cuda.hpp"

namespace lacuna {

/// Tiles are those of attend, or those that the predictor decides about.
enum class Tiling : std::uint8_t { kAttend, kPredictor };

CudaNames cuda_names(Tiling tiling);
/// Of the score formula, which is worked out for each pair of tokens: what it asks of tanh is what
/// a weight of 16 bits shows.
CudaNames score_names();

/// `absent` where there is no expression.
std::string cuda_text(const Expr& expr, const char* absent, Tiling tiling = Tiling::kAttend);
CudaBody cuda_body(const Expr& expr, const char* absent, Tiling tiling = Tiling::kAttend);

/// What a gate reads that changes from tile to tile of a row.
inline constexpr Variable kTileVariables[] = {Variable::kTileMax, Variable::kGap, Variable::kJ,
                                              Variable::kK0, Variable::kK1};
/// The variables of a score formula whose values differ from key to key. p, score and mass_before
/// are none of the formula's own: in its rest they take the places of parts that are evaluated
/// before it (compiler/expr/parts/shared_parts.hpp, element_parts.hpp).
inline constexpr Variable kScoreVariables[] = {Variable::kS, Variable::kK, Variable::kP,
                                               Variable::kScore, Variable::kMassBefore};

/// What `keep` reads that changes from tile to tile of a row, and what kernels find out about a row
/// while they decide it: how many tiles are visible, how similar its queries are.
inline constexpr Variable kKeepVariables[] = {
    Variable::kScore,    Variable::kP,        Variable::kRank, Variable::kMassBefore,
    Variable::kSimilarQ, Variable::kSimilarK, Variable::kJ,    Variable::kK0,
    Variable::kK1,       Variable::kVisible,  Variable::kPMax};

/// What a mask reads that changes from pair to pair.
inline constexpr Variable kPairVariables[] = {Variable::kQ, Variable::kK};

/// What a condition on a whole tile (full, visible) reads that changes from tile to tile.
inline constexpr Variable kBoundVariables[] = {Variable::kQ0, Variable::kQ1, Variable::kK0,
                                               Variable::kK1};

/// An expression in two steps: what stays the same for many scores or tiles are members of a
/// struct, and what is left reads them.
struct RowText {
  std::string members, values;
  CudaBody rest;
};

/// `parts` and `divisors`, the nodes that stay the same, become members of the struct that hooks
/// know as `holder`.
RowText split_text(const Expr& expr, const std::string& name, const std::string& holder,
                   std::vector<std::int32_t> parts, const std::vector<std::int32_t>& divisors,
                   CudaNames names);

/// All that stays the same for a work tile, or for a row's scores.
RowText row_text(const Expr& expr, const std::string& name, std::span<const Variable> changing,
                 const char* absent, CudaNames names = cuda_names(Tiling::kAttend));

inline constexpr const char* kBounds = "int q0, int q1, int k0, int k1";
inline constexpr const char* kIndices =
    "int i, int j, int q0, int q1, int k0, int k1, int h, int b";

/// `pointer`: the field that the text is of.
void write_hook(CudaWriter& out, const std::string& signature, const char* pointer,
                const CudaBody& body);
void write_row_struct(CudaWriter& out, const std::string& name, const std::string& members);

}  // namespace lacuna

// What the kernels around attend need to know of a program: its ops by the part they play. Made
// once for each emission; stages.cpp, workspace.cpp and hooks.cpp read it.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/emit/block_layout.hpp"
#include "compiler/target/estimate_block.hpp"
#include "compiler/target/plan.hpp"

namespace lacuna {

/// The tensor that a stage works on.
enum class Tensor : std::uint8_t { kQ, kK, kV };
std::string_view name_of(Tensor tensor);  ///< "q", "k", "v"

/// Ops on the queries, or on the keys; null where the program has none.
struct TokenOps {
  const Smooth* smooth = nullptr;
  const Summarise* summary = nullptr;
  const Similarity* similarity = nullptr;
  const Quantise* quantise = nullptr;           ///< what attend reads
  const Quantise* estimate_quantise = nullptr;  ///< what only the estimate reads
  const Project* bias = nullptr;                ///< queries: row_bias; keys: column_bias

  /// Is there anything for the prepare kernel to do?
  bool prepares() const { return summary || similarity || quantise || estimate_quantise || bias; }
};

/// Points into the plan it is made of.
struct StageFacts {
  const Plan& plan;
  const Attend& attend;
  TokenOps q{}, k{};
  const QuantiseValues* quantise_values = nullptr;
  const Estimate* estimate = nullptr;
  const Select* select = nullptr;
  const Compact* compact = nullptr;
  bool permutes = false;
  bool has_stages = false;  ///< any op besides Input and Attend
  /// What `keep` asks of a tile's rank, if that makes it one of the first so many of its row, as
  /// many whatever the tile, and if `keep` asks nothing else but for the tile's place.
  std::optional<Expr> rank_condition{};
  /// What `keep` asks of p, if that is the same for all tiles of a row; only where pairs are
  /// estimated by their bounds.
  std::optional<Expr> p_condition{};

  const TokenOps& ops(Tensor tensor) const { return tensor == Tensor::kQ ? q : k; }
  int head_dim() const { return plan.program.head_dim; }
  bool is_wgmma() const { return plan.attend.family.value == AttendFamily::kWgmma; }
  int split_rows() const { return plan.attend.split_rows.value; }
  bool splits_rows() const { return split_rows() > 1; }
  BlockParts parts() const {
    return {.wgmma = is_wgmma(), .split = splits_rows(), .predict = has_stages};
  }
  bool gathers() const { return attend.columns >= 0; }
  bool quantises_attend() const { return attend.q_scale >= 0; }
  /// Rows of the estimate are the last queries: it leaves the decision to `select`.
  bool estimates_last_rows() const {
    return estimate != nullptr && estimate->rows.kind == SummaryKind::kLast;
  }
  bool keeps_first() const { return rank_condition && !estimates_last_rows(); }
  /// The same where all rows of a head have one order: each takes its first visible tiles of that.
  bool keeps_first_in_order() const { return rank_condition && estimates_last_rows(); }
  /// ... and for that too.
  bool keeps_by_place() const;
  /// `keep` reads what is known only of tiles in order.
  bool orders_tiles() const;
  /// Means of queries decide about single keys: templates/select/pooled/pooled_tokens.cuh.
  bool decides_keys() const;
  /// Of the estimate, that a block takes together.
  int rows_of_estimate() const;
  bool estimates_cells() const {
    return estimate != nullptr && estimate->rows.kind == SummaryKind::kAntidiagonal;
  }
  /// Tokens are compared by wgmma.
  bool estimates_by_wgmma() const {
    return estimate != nullptr && plan.attend.estimate_family.value == AttendFamily::kWgmma;
  }
  /// ... in integers; as they are.
  bool estimates_pairs() const { return estimates_by_wgmma() && estimate->bits <= 8; }
  bool estimates_exactly() const { return estimates_by_wgmma() && estimate->bits > 8; }
  /// A stage of its own finds what the weights of each row are relative to.
  bool has_reference() const {
    return estimates_by_wgmma() && estimate->normalise != Normalise::kPreviousLse;
  }
};

StageFacts find_stages(const Plan& plan);

/// Groups of `tile` tokens.
int groups_in_tile(const Quantise& quantise, Tensor tensor);

}  // namespace lacuna

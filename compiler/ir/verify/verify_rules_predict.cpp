// Rules of the ops that decide which tiles are computed: estimate, select, compact.
#include <cmath>

#include "compiler/ir/names.hpp"
#include "compiler/ir/verify/verify_rules.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/bands.hpp"

namespace lacuna {
namespace {

using enum SummaryKind;

bool is_tile(int size) { return size > 0 && size <= kLargestTile; }

/// A summary of the input `name`, taken over tiles of this many tokens.
bool is_summary(const Program& program, int id, std::string_view name, const Summarise& like) {
  const auto* summary = defined_by<Summarise>(program, id);
  return summary != nullptr && tensor_name(program, summary->x) == name &&
         summary->tile == like.tile && summary->rounded == like.rounded &&
         summary->bounds == like.bounds;
}

/// Self-similarity of tiles of the input `name`.
bool is_similarity(const Program& program, int id, std::string_view name, int tile) {
  const auto* similarity = defined_by<Similarity>(program, id);
  return similarity != nullptr && tensor_name(program, similarity->x) == name &&
         similarity->tile == tile;
}

/// similar_q and similar_k are given where the expression reads them, and are of these tiles.
template <class T>
bool has_similarities(const Program& p, const T& op, const Expr& expr) {
  const auto is_right = [&](int id, Variable variable, std::string_view name, int tile) {
    return id < 0 ? !reads(expr, variable) : is_similarity(p, id, name, tile);
  };
  return is_right(op.similar_q, Variable::kSimilarQ, "q", op.tile_q) &&
         is_right(op.similar_k, Variable::kSimilarK, "k", op.tile_k);
}

bool has_right_bits(const Estimate& e) {
  if (e.rows.kind == kMean) return e.bits == 32;
  if (e.rows.kind == kTokens) return e.bits == 16 || e.bits == 8 || e.bits == 4;
  return e.bits == 16;
}

/// One side of an estimate of 16 or 32 bits: a summary, or the tensor.
bool is_compared(const Program& program, int id, std::string_view name, const Summary& summary,
                 int tile) {
  if (summary.kind == kMean) return is_summary(program, id, name, {.tile = tile});
  if (summary.kind == kMinMax) return is_summary(program, id, name, {.tile = tile, .bounds = true});
  if (summary.kind == kCellMean)
    return is_summary(program, id, name, {.tile = summary.count, .rounded = true});
  return tensor_name(program, id) == name;
}

/// Cells, or steps from row to row, of at least two tokens, which lie in one tile.
bool divides(const Summary& summary, int tile) {
  if (!info(summary.kind).divides_tile) return summary.count >= 1;
  return summary.count >= 2 && tile % summary.count == 0;
}

bool has_operands(const Program& p, const Estimate& e) {
  if (e.is_given() || e.is_indexed()) return e.q < 0 && e.k < 0 && e.q_scale < 0 && e.k_scale < 0;
  if (e.bits >= 16) {
    return is_compared(p, e.q, "q", e.rows, e.tile_q) &&
           is_compared(p, e.k, "k", e.columns, e.tile_k) && e.q_scale < 0 && e.k_scale < 0;
  }
  for (const Quantise* op :
       {quantised(p, e.q, e.q_scale, "q"), quantised(p, e.k, e.k_scale, "k")}) {
    if (op == nullptr || op->bits != e.bits || op->group != e.group || op->tile == 0) return false;
  }
  return true;
}

bool has_biases(const Program& p, const Estimate& e) {
  const Quantise* q = quantised(p, e.q, e.q_scale, "q");
  const Quantise* k = quantised(p, e.k, e.k_scale, "k");
  if (q == nullptr || k == nullptr) return e.row_bias < 0 && e.column_bias < 0;
  return has_right_biases(p, *q, *k, e.row_bias, e.column_bias);
}

constexpr OpRule<Estimate> kEstimate[] = {
    {"with from, rows and columns are means of tiles, and weights are relative to these, if to "
     "anything",
     [](const Program&, const Node&, const Estimate& e) {
       const bool is_plain = e.rows == Summary{} && e.columns == Summary{} && e.bits == 32;
       return !e.is_given() || (is_plain && e.reduce == Reduce::kMax);
     }},
    {"an index has 1 to 128 heads, vectors of 32 to 256 elements in steps of 16 and formulas of "
     "both; it compares tokens in 16 bits, and no lse of exact logits normalises",
     [](const Program&, const Node&, const Estimate& e) {
       const bool has_parts = !e.index_q.empty() && !e.index_k.empty();
       if (!e.is_indexed())
         return e.index_dim == 0 && e.index_q.empty() && e.index_k.empty() &&
                e.index_weight.empty();
       const bool has_size = e.index_heads <= kMostIndexHeads && e.index_dim % kIndexDimStep == 0 &&
                             e.index_dim >= kLeastIndexDim && e.index_dim <= kMostIndexDim;
       return has_parts && has_size && !e.is_given() && e.columns.kind == kTokens && e.bits == 16 &&
              e.dims.empty() && !has_exact_lse(e.normalise);
     }},
    {"rows and columns are mean and mean, min_max or tokens, mean(n) and mean(m), antidiagonal(n) "
     "both, or all or some of the tokens and tokens",
     [](const Program&, const Node&, const Estimate& e) {
       return are_compared(e.rows, e.columns);
     }},
    {"cells and strides have at least 2 tokens and divide the tiles, last rows are at least 1",
     [](const Program&, const Node&, const Estimate& e) {
       return divides(e.rows, e.tile_q) && divides(e.columns, e.tile_k);
     }},
    {"means of tiles are compared in 32 bits, tokens in 16, 8 or 4, cells and some of the queries "
     "in "
     "16",
     [](const Program&, const Node&, const Estimate& e) { return has_right_bits(e); }},
    {"q and k are summaries of the estimate's tiles or cells where means are compared, else the "
     "tensors, or their integers with scales where these have 8 or 4 bits; with from or an index "
     "there are none",
     [](const Program& p, const Node&, const Estimate& e) { return has_operands(p, e); }},
    {kBiasWords, [](const Program& p, const Node&, const Estimate& e) { return has_biases(p, e); }},
    {"exact_q and exact_k are q and k, given where an lse of exact logits normalises",
     [](const Program& p, const Node&, const Estimate& e) {
       if (e.normalise != Normalise::kLse) return e.exact_q < 0 && e.exact_k < 0;
       return tensor_name(p, e.exact_q) == "q" && tensor_name(p, e.exact_k) == "k";
     }},
    {"previous_lse is the input of this name, given where it normalises",
     [](const Program& p, const Node&, const Estimate& e) {
       if (e.normalise != Normalise::kPreviousLse) return e.previous_lse < 0;
       const auto* input = defined_by<Input>(p, e.previous_lse);
       return input != nullptr && input->name == "previous_lse";
     }},
    {"an lse normalises rows of tokens: means and antidiagonals have none",
     [](const Program&, const Node&, const Estimate& e) {
       return !has_exact_lse(e.normalise) || are_tokens(e.rows.kind);
     }},
    {"weights relative to the row's largest logit are not summed",
     [](const Program&, const Node&, const Estimate& e) {
       return e.normalise != Normalise::kRowMax || e.reduce == Reduce::kMax;
     }},
    {"temperature is a positive finite number, 1 where an lse of exact logits normalises",
     [](const Program&, const Node&, const Estimate& e) {
       const bool has_lse = has_exact_lse(e.normalise);
       return std::isfinite(e.temperature) && e.temperature > 0 && (!has_lse || e.temperature == 1);
     }},
    {"dims are ascending bands within the head dimension, of what is compared in 16 or 32 bits, "
     "and "
     "no lse of exact logits normalises",
     [](const Program& p, const Node&, const Estimate& e) {
       if (e.dims.empty()) return true;
       const std::optional<std::uint32_t> steps = band_steps(e.dims);
       return steps && last_band_end(*steps) <= p.head_dim && e.bits >= 16 && !e.is_given() &&
              !has_exact_lse(e.normalise);
     }},
    {"only an lse of exact logits has a reference",
     [](const Program&, const Node&, const Estimate& e) {
       return e.reference.empty() || e.normalise == Normalise::kLse;
     }},
    {"last rows serve all tiles of queries alike: exclude cannot tell these apart",
     [](const Program&, const Node&, const Estimate& e) {
       return e.rows.kind != kLast || e.exclude.empty();
     }},
    {"similar_q and similar_k are similarities of the estimate's tiles, given where exclude reads "
     "them",
     [](const Program& p, const Node&, const Estimate& e) {
       return has_similarities(p, e, e.exclude);
     }},
    {"mask, reference and exclude yield bool, from and the formulas of an index f32",
     [](const Program&, const Node&, const Estimate& e) {
       return yields(e.mask, ExprType::kBool) && yields(e.reference, ExprType::kBool) &&
              yields(e.exclude, ExprType::kBool) && yields(e.from, ExprType::kF32) &&
              yields(e.index_q, ExprType::kF32) && yields(e.index_k, ExprType::kF32) &&
              yields(e.index_weight, ExprType::kF32);
     }},
    {"expressions know the program's parameters, in its order",
     [](const Program& p, const Node&, const Estimate& e) {
       return reads_program_parameters(p, e.mask) && reads_program_parameters(p, e.reference) &&
              reads_program_parameters(p, e.exclude) && reads_program_parameters(p, e.from) &&
              reads_program_parameters(p, e.index_q) && reads_program_parameters(p, e.index_k) &&
              reads_program_parameters(p, e.index_weight);
     }},
    {"scale is a positive finite number",
     [](const Program&, const Node&, const Estimate& e) {
       return std::isfinite(e.scale) && e.scale > 0;
     }},
    {"tile_q and tile_k are between 1 and 1024 tokens",
     [](const Program&, const Node&, const Estimate& e) {
       return is_tile(e.tile_q) && is_tile(e.tile_k);
     }},
    {"estimate defines p and score, a number f32 for each tile",
     [](const Program& p, const Node& node, const Estimate&) {
       using enum Dim;
       const ValueType numbers{Element::kF32, {kBatch, kHeads, kKeepQTiles, kKeepKTiles}};
       return defines(p, node, {numbers, numbers});
     }},
};

/// Bits of the same tiles.
template <class T>
bool has_tiles_of(const Program& program, int id, const T& op) {
  if (id < 0) return true;
  const auto* select = defined_by<Select>(program, id);
  return select != nullptr && select->tile_q == op.tile_q && select->tile_k == op.tile_k;
}

/// p (index 0) or score (1) of an estimate of the select's tiles.
bool is_estimated(const Program& program, int id, std::size_t index, const Select& select) {
  const auto* estimate = defined_by<Estimate>(program, id, index);
  return estimate != nullptr && estimate->tile_q == select.tile_q &&
         estimate->tile_k == select.tile_k;
}

bool reads_p(const Expr& keep) {
  return reads(keep, Variable::kP) || reads(keep, Variable::kRank) ||
         reads(keep, Variable::kMassBefore) || reads(keep, Variable::kPMax);
}

constexpr OpRule<Select> kSelect[] = {
    {"p and score are those of an estimate of the same tiles, given where keep reads p, p_max, "
     "rank, mass_before or score",
     [](const Program& p, const Node&, const Select& s) {
       const bool has_p = s.p < 0 ? !reads_p(s.keep) : is_estimated(p, s.p, 0, s);
       const bool has_score =
           s.score < 0 ? !reads(s.keep, Variable::kScore) : is_estimated(p, s.score, 1, s);
       return has_p && has_score;
     }},
    {"mass_before sums weights: the estimate is normalised",
     [](const Program& p, const Node&, const Select& s) {
       const auto* estimate = defined_by<Estimate>(p, s.p);
       return !reads(s.keep, Variable::kMassBefore) || estimate == nullptr ||
              estimate->normalise != Normalise::kNone;
     }},
    {"similar_q and similar_k are similarities of the select's tiles, given where keep reads them",
     [](const Program& p, const Node&, const Select& s) { return has_similarities(p, s, s.keep); }},
    {"within and joins, of which one is given at most, are bits of the select's tiles; its "
     "estimate "
     "has the same within",
     [](const Program& p, const Node&, const Select& s) {
       const Estimate* estimate = estimate_of(p, s);
       return has_tiles_of(p, s.within, s) && has_tiles_of(p, s.joins, s) &&
              (s.within < 0 || s.joins < 0) &&
              (estimate == nullptr || estimate->within == s.within);
     }},
    {"pairs are those of a mask, and its estimate asks them too",
     [](const Program& p, const Node&, const Select& s) {
       const Estimate* estimate = estimate_of(p, s);
       return (!s.pairs || !s.mask.empty()) && (estimate == nullptr || estimate->pairs == s.pairs);
     }},
    {"keep is given; keep and mask yield bool",
     [](const Program&, const Node&, const Select& s) {
       return !s.keep.empty() && yields(s.keep, ExprType::kBool) && yields(s.mask, ExprType::kBool);
     }},
    {"expressions know the program's parameters, in its order",
     [](const Program& p, const Node&, const Select& s) {
       return reads_program_parameters(p, s.keep) && reads_program_parameters(p, s.mask);
     }},
    {"tile_q and tile_k are between 1 and 1024 tokens",
     [](const Program&, const Node&, const Select& s) {
       return is_tile(s.tile_q) && is_tile(s.tile_k);
     }},
    {"select defines the bits of each work tile, in words of u32",
     [](const Program& p, const Node& node, const Select&) {
       using enum Dim;
       return defines(p, node, {{Element::kU32, {kBatch, kHeads, kKeepQTiles, kKeepWords}}});
     }},
};

constexpr OpRule<Compact> kCompact[] = {
    {"bits are those of a select with tiles of keep_q x keep_k tokens",
     [](const Program& p, const Node&, const Compact& c) {
       const auto* select = defined_by<Select>(p, c.bits);
       return select != nullptr && select->tile_q == c.keep_q && select->tile_k == c.keep_k;
     }},
    {"a tile of the bits is a whole number of attend's tiles, which may still be open (0)",
     [](const Program& p, const Node&, const Compact& c) {
       const Attend& attend = attend_of(p);
       if (c.tile_q != attend.tile_q || c.tile_k != attend.tile_k) return false;
       return c.tile_q == 0 || c.tile_k == 0 ||
              (c.keep_q % c.tile_q == 0 && c.keep_k % c.tile_k == 0);
     }},
    {"mask yields bool and knows the program's parameters, in its order",
     [](const Program& p, const Node&, const Compact& c) {
       return yields(c.mask, ExprType::kBool) && reads_program_parameters(p, c.mask);
     }},
    {"compact defines list_indices and list_counts, of the types of the inputs of these names",
     [](const Program& p, const Node& node, const Compact&) {
       return defines(p, node,
                      {input_type("list_indices", p.dtype), input_type("list_counts", p.dtype)});
     }},
};

}  // namespace

std::span<const OpRule<Estimate>> rules_of(const Estimate*) { return kEstimate; }
std::span<const OpRule<Select>> rules_of(const Select*) { return kSelect; }
std::span<const OpRule<Compact>> rules_of(const Compact*) { return kCompact; }

}  // namespace lacuna

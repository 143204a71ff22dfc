#include "compiler/emit/workspace.hpp"

#include <algorithm>
#include <numeric>

#include "compiler/emit/launch_program.hpp"
#include "compiler/emit/stages.hpp"
#include "compiler/expr/parse.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {
namespace {

constexpr int kElementBytes = 2;  ///< of bf16 and f16
constexpr int kWordBytes = 4;     ///< of f32, i32 and u32
/// Of the 50 MB of an H100 or H200, whose queries and outputs pass through it, too.
constexpr int kL2BytesOfKeys = 32 << 20;

using Slots = std::vector<SlotSize>;

std::string text_of(int value) { return std::to_string(value); }

/// `outer` arrays of `count` elements: outer * ceil(count * element_bytes / unit), reduced so that
/// the product stays small.
std::string units(const std::string& outer, const std::string& count, int element_bytes) {
  const int common = std::gcd(element_bytes, kWorkspaceUnitBytes);
  const int factor = element_bytes / common, divisor = kWorkspaceUnitBytes / common;
  std::string inner = "(" + count + ")";
  if (factor > 1) inner += " * " + text_of(factor);
  if (divisor > 1) inner = ceil_divide(inner, divisor);
  return outer + " * (" + inner + ")";
}

std::string heads(Tensor tensor) { return std::string("n_b * ") + heads_of(tensor); }

/// Query and key tiles that the predictor decides about.
std::string keep_q_tiles(const StageFacts& f) { return ceil_divide("n_q", f.select->tile_q); }
std::string keep_k_tiles(const StageFacts& f) { return ceil_divide("n_k", f.select->tile_k); }
std::string keep_words(const StageFacts& f) { return ceil_divide("n_k", 32 * f.select->tile_k); }

std::string tiles(Tensor tensor, int tile) { return ceil_divide(length_of(tensor), tile); }

/// Groups of one head: those of whole padded tokens.
std::string groups(const Quantise& quantise, Tensor tensor) {
  const int in_padded = kPreparedTokens / quantise.tile * groups_in_tile(quantise, tensor);
  return ceil_divide(length_of(tensor), kPreparedTokens) + " * " + text_of(in_padded);
}

/// The grid of a stage, for arrays with a piece for each of its blocks.
std::string blocks_of(const StageFacts& f, std::string_view stage) {
  const std::vector<StageKernel> kernels = stage_kernels(f);
  return "(" + std::ranges::find(kernels, stage, &StageKernel::stage)->grid + ")";
}

void add_ordered(const StageFacts& f, Slots& slots) {
  if (!f.permutes) return;
  const int row_bytes = f.head_dim() * kElementBytes;
  slots.push_back({"ordered_q", units(heads(Tensor::kQ), "n_q", row_bytes)});
  slots.push_back({"ordered_k", units(heads(Tensor::kK), "n_k", row_bytes)});
  slots.push_back({"ordered_v", units(heads(Tensor::kV), "n_k", row_bytes)});
  slots.push_back({"ordered_o", units(heads(Tensor::kQ), "n_q", row_bytes)});
  if (f.attend.lse) slots.push_back({"ordered_lse", units(heads(Tensor::kQ), "n_q", kWordBytes)});
}

/// Reductions over all tokens, one tensor after the other through the same partial results.
void add_statistics(const StageFacts& f, Slots& slots) {
  const bool keys = f.k.smooth != nullptr || f.quantise_values != nullptr;
  const auto partial = [&](Tensor tensor) {
    return units(heads(tensor), tiles(tensor, kStatisticTokens), f.head_dim() * kWordBytes);
  };
  const auto per_head = [&](Tensor tensor) {
    return units(heads(tensor), text_of(f.head_dim()), kWordBytes);
  };
  if (f.q.smooth != nullptr && keys) {
    slots.push_back({"partial", "max(" + partial(Tensor::kQ) + ", " + partial(Tensor::kK) + ")"});
  } else if (f.q.smooth != nullptr || keys) {
    slots.push_back({"partial", partial(keys ? Tensor::kK : Tensor::kQ)});
  }
  if (f.q.smooth != nullptr) slots.push_back({"q_mean", per_head(Tensor::kQ)});
  if (f.k.smooth != nullptr) slots.push_back({"k_mean", per_head(Tensor::kK)});
  if (f.quantise_values != nullptr) slots.push_back({"v_scale", per_head(Tensor::kV)});
}

/// Names of the slots that the two prepare kernels fill.
struct PreparedNames {
  const char *summary, *similarity, *values, *scale, *estimate_values, *estimate_scale, *bias;
};
constexpr PreparedNames kPreparedQ{"q_summary",         "q_similarity",     "q_values", "q_scale",
                                   "estimate_q_values", "estimate_q_scale", "row_bias"};
constexpr PreparedNames kPreparedK{"k_summary",         "k_similarity",     "k_values",   "k_scale",
                                   "estimate_k_values", "estimate_k_scale", "column_bias"};

void add_prepared(const StageFacts& f, Tensor tensor, const PreparedNames& names, Slots& slots) {
  const TokenOps& ops = f.ops(tensor);
  const std::string all = heads(tensor);
  if (ops.summary != nullptr) {
    slots.push_back(
        {names.summary, units(all, tiles(tensor, ops.summary->tile), f.head_dim() * kWordBytes)});
  }
  if (ops.similarity != nullptr) {
    slots.push_back(
        {names.similarity, units(all, tiles(tensor, ops.similarity->tile), kWordBytes)});
  }
  const auto add_integers = [&](const Quantise* quantise, const char* values, const char* scale) {
    if (quantise == nullptr) return;
    slots.push_back({values, units(all, padded_length(tensor), f.head_dim())});
    slots.push_back({scale, units(all, groups(*quantise, tensor), kWordBytes)});
  };
  add_integers(ops.quantise, names.values, names.scale);
  add_integers(ops.estimate_quantise, names.estimate_values, names.estimate_scale);
  if (ops.bias != nullptr) {
    slots.push_back({names.bias, units(heads(Tensor::kQ), padded_length(tensor), kWordBytes)});
  }
}

/// Of each row of cells: templates/select/antidiagonal/cell_shape.cuh.
int cell_planes(const StageFacts& f) {
  const bool is_plain = f.estimate->normalise == Normalise::kNone;
  const bool sums = f.estimate->reduce == Reduce::kSum;
  const bool has_log_sums = !is_plain || sums;
  const bool has_logits = uses(f.select->keep, Variable::kScore) || !sums || is_plain;
  return f.rows_of_estimate() * (static_cast<int>(has_log_sums) + static_cast<int>(has_logits));
}

/// Scratch of the estimate's blocks, its result for the last rows, or what the stage before it has
/// found of each row (templates/select/).
void add_scores(const StageFacts& f, Slots& slots) {
  if (f.estimate == nullptr || f.decides_keys()) return;
  if (f.estimates_by_wgmma()) {
    if (f.has_reference())
      slots.push_back({"scores", units(heads(Tensor::kQ), padded_length(Tensor::kQ), kWordBytes)});
    return;
  }
  const bool orders = f.orders_tiles();
  const int ordering = orders ? 2 : 0;
  const bool pooled = f.estimate->rows.kind == SummaryKind::kMean;
  int rows = 0;
  if (pooled) {
    rows = 2 * f.rows_of_estimate() + ordering;
  } else if (f.estimates_cells()) {
    rows = cell_planes(f) + 2 + ordering;
  } else if (f.estimates_last_rows()) {
    rows = 2 + ordering;
  } else {
    rows = orders ? 4 : f.keeps_first() ? 1 : 0;
  }
  if (rows == 0) return;
  slots.push_back({"scores", units(blocks_of(f, "estimate"), keep_k_tiles(f), rows * kWordBytes)});
}

void add_decisions(const StageFacts& f, Slots& slots) {
  if (f.select == nullptr) return;
  add_scores(f, slots);
  const auto of_head = [](const std::string& rows, const std::string& columns) {
    return units(heads(Tensor::kQ), "(" + rows + ") * (" + columns + ")", kWordBytes);
  };
  slots.push_back({"kept", of_head(keep_q_tiles(f), keep_words(f))});
  if (f.compact != nullptr) {
    const std::string q_tiles = tiles(Tensor::kQ, f.attend.tile_q);
    slots.push_back({"list_indices", of_head(q_tiles, tiles(Tensor::kK, f.attend.tile_k))});
    slots.push_back({"list_counts", units(heads(Tensor::kQ), q_tiles, kWordBytes)});
    slots.push_back({"row_order", units(heads(Tensor::kQ), q_tiles, kWordBytes)});
  }
  if (f.gathers() && !f.is_wgmma()) {  // which expands columns in shared memory
    slots.push_back(
        {"gathered", units(blocks_of(f, "attend"), padded_length(Tensor::kK), kWordBytes)});
  }
}

/// What the items of split rows leave for `combine`: templates/args/split_args.cuh.
void add_partials(const StageFacts& f, Slots& slots) {
  if (!f.splits_rows()) return;
  const std::string outer = text_of(f.split_rows()) + " * " + heads(Tensor::kQ);
  slots.push_back({"partial_o", units(outer, "n_q", f.head_dim() * kWordBytes)});
  slots.push_back({"partial_lse", units(outer, "n_q", kWordBytes)});
}

/// Query heads that are at work together: under a mask, which makes rows uneven, those of as many
/// KV heads as stay in the L2 with all their keys and values.
std::string head_group(const StageFacts& f) {
  if (f.attend.mask.empty()) return "1";
  const int tokens = kL2BytesOfKeys / (2 * kElementBytes * f.head_dim());
  return "max(min(" + text_of(tokens) + " // max(n_k, 1), n_b * n_h_kv), 1) * (n_h // n_h_kv)";
}

}  // namespace

std::vector<SlotSize> workspace_slots(const StageFacts& facts) {
  Slots slots;
  add_ordered(facts, slots);
  add_statistics(facts, slots);
  add_prepared(facts, Tensor::kQ, kPreparedQ, slots);
  add_prepared(facts, Tensor::kK, kPreparedK, slots);
  if (facts.quantise_values != nullptr) {
    slots.push_back(
        {"v_values", units(heads(Tensor::kV), padded_length(Tensor::kV), facts.head_dim())});
  }
  add_decisions(facts, slots);
  add_partials(facts, slots);
  if (facts.is_wgmma()) slots.push_back({"next_row", "1", true});
  return slots;
}

std::vector<NamedSize> attend_sizes(const StageFacts& facts) {
  // A gathering attend counts and reports columns.
  const int tile_k = facts.gathers() ? facts.attend.keep_k : facts.attend.tile_k;
  std::vector<NamedSize> sizes{{"q_tiles", tiles(Tensor::kQ, facts.attend.tile_q)},
                               {"k_tiles", tiles(Tensor::kK, tile_k)},
                               {"heads_per_kv", "n_h // n_h_kv"}};
  if (facts.is_wgmma()) sizes.push_back({"head_group", head_group(facts)});
  return sizes;
}

std::vector<NamedSize> predict_sizes(const StageFacts& facts) {
  std::vector<NamedSize> sizes;
  if (!facts.has_stages) return sizes;
  sizes.push_back({"q_padded", padded_length(Tensor::kQ)});
  sizes.push_back({"k_padded", padded_length(Tensor::kK)});
  if (facts.select != nullptr) {
    sizes.push_back({"keep_q_tiles", keep_q_tiles(facts)});
    sizes.push_back({"keep_k_tiles", keep_k_tiles(facts)});
    sizes.push_back({"keep_words", keep_words(facts)});
  }
  if (facts.permutes) {
    sizes.push_back({"q_tokens", "n_q"});
    sizes.push_back({"k_tokens", "n_k"});
    sizes.push_back({"q_tokens_of_heads", "n_h * n_q"});
    sizes.push_back({"k_tokens_of_heads", "n_h_kv * n_k"});
  }
  const auto add_groups = [&](const char* name, const Quantise* quantise, Tensor tensor) {
    if (quantise != nullptr) sizes.push_back({name, groups(*quantise, tensor)});
  };
  add_groups("q_groups", facts.q.quantise, Tensor::kQ);
  add_groups("k_groups", facts.k.quantise, Tensor::kK);
  add_groups("estimate_q_groups", facts.q.estimate_quantise, Tensor::kQ);
  add_groups("estimate_k_groups", facts.k.estimate_quantise, Tensor::kK);
  return sizes;
}

}  // namespace lacuna

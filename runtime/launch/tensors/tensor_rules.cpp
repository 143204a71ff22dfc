#include "runtime/launch/tensors/tensor_rules.hpp"

#include <limits>

#include "runtime/base/whole_tiles.hpp"

namespace lacuna {
namespace {

constexpr DLDataType kU8{kDLUInt, 8, 1};

/// Leaves open what check_tensor will refuse, so that one extent draws one error.
std::int64_t extent_or_any(std::int64_t extent) {
  return extent >= 0 && extent <= std::numeric_limits<std::int32_t>::max() ? extent : kAnyExtent;
}

std::int64_t extent_of(const DLTensor* tensor, int d) {
  const bool has_shape = tensor != nullptr && tensor->ndim == 4 && tensor->shape != nullptr;
  return has_shape ? extent_or_any(tensor->shape[d]) : kAnyExtent;
}

std::int64_t tiles_or_any(std::int64_t extent, std::int64_t tile) {
  return extent == kAnyExtent ? kAnyExtent : ceil_div(extent, tile);
}

/// Words for the extents of tensors, for messages.
struct ExtentNames {
  const char *q_entries = "batch", *q_rows = "n_q", *k_entries = "batch", *k_rows = "n_k";
};

ExtentNames names_for(BatchLayout batch) {
  switch (batch) {
    case BatchLayout::kUniform:
      break;
    case BatchLayout::kSequences:
      return {"1", "tokens", "1", "tokens"};
    case BatchLayout::kPages:
      return {"1", "tokens", "pages", "page_tokens"};
  }
  return {};
}

/// q, k, v, o: rows of `width` elements.
TensorRule rows_rule(const char* name, bool of_keys, bool is_output, int width,
                     const LaunchContract& c, const Extents& e) {
  const ExtentNames names = names_for(c.batch);
  if (of_keys) {
    return {name,
            c.kv == KvFormat::kE4M3 ? kE4M3 : dl_dtype(c.dtype),
            4,
            {names.k_entries, "heads_kv", names.k_rows, "d"},
            {e.k_entries, e.heads_kv, e.k_rows, width},
            Layout::kRows,
            is_output};
  }
  return {name,
          dl_dtype(c.dtype),
          4,
          {names.q_entries, "heads", names.q_rows, "d"},
          {e.q_entries, e.heads, e.q_rows, width},
          Layout::kRows,
          is_output};
}

/// A number for each query.
TensorRule lse_rule(const char* name, bool is_output, const LaunchContract& c, const Extents& e) {
  const ExtentNames names = names_for(c.batch);
  return {name,
          kF32,
          3,
          {names.q_entries, "heads", names.q_rows},
          {e.q_entries, e.heads, e.q_rows},
          Layout::kCompact,
          is_output};
}

/// Something for each work tile.
TensorRule work_tile_rule(const char* name, DLDataType dtype, const char* last, std::int64_t extent,
                          bool is_output, const Extents& e) {
  return {name,
          dtype,
          4,
          {"batch", "heads", "q_tiles", last},
          {e.batch, e.heads, e.q_tiles, extent},
          Layout::kCompact,
          is_output};
}

/// Scales of codes: one for each head of each entry of k. An extent of 1 stands for all.
TensorRule scale_rule(const char* name, const LaunchContract& c) {
  return {name,
          kF32,
          2,
          {names_for(c.batch).k_entries, "heads_kv"},
          {kAnyExtent, kAnyExtent},
          Layout::kStrided,
          false};
}

/// Summaries of key tiles that stay, a slot for each sequence.
TensorRule summaries_rule(const LaunchContract& c, const Extents& e) {
  return {"k_summaries",
          kF32,
          4,
          {"slots", "heads_kv", "summary_tiles", "summary_elements"},
          {kAnyExtent, e.heads_kv, kAnyExtent, c.summary_elements},
          Layout::kCompact,
          true};
}

TensorRule of_entries(const char* name, const char* dim, std::int64_t extent) {
  return {name, kI32, 1, {dim}, {extent}, Layout::kCompact, false};
}

}  // namespace

Extents read_extents(const LaunchContract& contract, const lacuna_launch_args& args) {
  Extents e;
  e.heads = extent_of(args.q, 1);
  e.heads_kv = extent_of(args.k, 1);
  e.q_entries = extent_of(args.q, 0);
  e.q_rows = extent_of(args.q, 2);
  e.k_entries = extent_of(args.k, 0);
  e.k_rows = extent_of(args.k, 2);
  if (contract.batch == BatchLayout::kUniform) {
    e.batch = e.k_entries = e.q_entries;
    e.n_q = e.q_rows;
    e.n_k = e.k_rows;
  } else {
    e.batch = args.sequences->count;
    e.n_q = args.sequences->max_n_q;
    e.n_k = args.sequences->max_n_k;
    e.q_entries = 1;
    if (contract.batch == BatchLayout::kSequences) e.k_entries = 1;
  }
  e.q_tiles = tiles_or_any(e.n_q, contract.tile_q);
  e.k_tiles = tiles_or_any(e.n_k, contract.tile_k);
  return e;
}

const DLTensor* tensor_of(const lacuna_launch_args& args, TensorRole role) {
  const lacuna_sequences* sequences = args.sequences;
  switch (role) {
    case TensorRole::kQ:
      return args.q;
    case TensorRole::kK:
      return args.k;
    case TensorRole::kV:
      return args.v;
    case TensorRole::kO:
      return args.o;
    case TensorRole::kLse:
      return args.lse;
    case TensorRole::kCounts:
      return args.counts;
    case TensorRole::kTileMask:
      return args.tile_mask;
    case TensorRole::kListIndices:
      return args.list_indices;
    case TensorRole::kListCounts:
      return args.list_counts;
    case TensorRole::kPreviousLse:
      return args.previous_lse;
    case TensorRole::kOrder:
      return args.order;
    case TensorRole::kQBegin:
      return sequences != nullptr ? sequences->q_begin : nullptr;
    case TensorRole::kLengths:
      return sequences != nullptr ? sequences->n_k : nullptr;
    case TensorRole::kKBegin:
      return sequences != nullptr ? sequences->k_begin : nullptr;
    case TensorRole::kPages:
      return sequences != nullptr ? sequences->pages : nullptr;
    case TensorRole::kKScale:
      return args.k_scale;
    case TensorRole::kVScale:
      return args.v_scale;
    case TensorRole::kKSummaries:
      return args.k_summaries;
    case TensorRole::kSummarySlots:
      return args.summary_slots;
    case TensorRole::kSummarised:
      return args.summarised;
  }
  return nullptr;
}

TensorRule rule_of(TensorRole role, const LaunchContract& c, const Extents& e) {
  switch (role) {
    case TensorRole::kQ:
      return rows_rule("q", false, false, c.head_dim, c, e);
    case TensorRole::kK:
      return rows_rule("k", true, false, c.head_dim, c, e);
    case TensorRole::kV:
      return rows_rule("v", true, false, c.head_dim_v, c, e);
    case TensorRole::kO:
      return rows_rule("o", false, true, c.head_dim_v, c, e);
    case TensorRole::kLse:
      return lse_rule("lse", true, c, e);
    case TensorRole::kPreviousLse:
      return lse_rule("previous_lse", false, c, e);
    case TensorRole::kCounts:
      return work_tile_rule("counts", kI32, "3", 3, true, e);
    case TensorRole::kTileMask:
      return work_tile_rule("tile_mask", kU8, "k_tiles", e.k_tiles, true, e);
    case TensorRole::kListIndices:
      return work_tile_rule("list_indices", kI32, "capacity", kAnyExtent, false, e);
    case TensorRole::kListCounts:
      return {
          "list_counts",    kI32, 3, {"batch", "heads", "q_tiles"}, {e.batch, e.heads, e.q_tiles},
          Layout::kCompact, false};
    case TensorRole::kOrder:
      return {"order", kI32, 1, {names_for(c.batch).q_rows}, {e.q_rows}, Layout::kCompact, false};
    case TensorRole::kQBegin:
      return of_entries("sequences.q_begin", "count + 1", e.batch + 1);
    case TensorRole::kLengths:
      return of_entries("sequences.n_k", "count", e.batch);
    case TensorRole::kKBegin:
      return of_entries("sequences.k_begin", "count", e.batch);
    case TensorRole::kPages:
      return {"sequences.pages",    kI32, 2, {"count", "max_pages"}, {e.batch, kAnyExtent},
              Layout::kDenseInLast, false};
    case TensorRole::kKScale:
      return scale_rule("k_scale", c);
    case TensorRole::kVScale:
      return scale_rule("v_scale", c);
    case TensorRole::kKSummaries:
      return summaries_rule(c, e);
    case TensorRole::kSummarySlots:
      return of_entries("summary_slots", "batch", e.batch);
    case TensorRole::kSummarised:
      return of_entries("summarised", "batch", e.batch);
  }
  return {};
}

bool is_required(TensorRole role, const LaunchContract& contract) {
  switch (role) {
    case TensorRole::kV:
      return !contract.v_of_k;
    case TensorRole::kListIndices:
    case TensorRole::kListCounts:
      return contract.takes_lists;
    case TensorRole::kPreviousLse:
      return contract.takes_previous_lse;
    case TensorRole::kOrder:
      return contract.takes_order;
    case TensorRole::kQBegin:
    case TensorRole::kLengths:
      return contract.batch != BatchLayout::kUniform;
    case TensorRole::kKBegin:
      return contract.batch == BatchLayout::kSequences;
    case TensorRole::kPages:
      return contract.batch == BatchLayout::kPages;
    default:
      return role <= TensorRole::kO;
  }
}

const char* refusal(TensorRole role, const LaunchContract& contract) {
  switch (role) {
    case TensorRole::kLse:
      if (contract.has_branches && !contract.has_lse)
        return "branches with weights have no log-sum-exp in common; without weights they are "
               "merged by it";
      return contract.has_lse ? nullptr : "the spec says \"lse\": false";
    case TensorRole::kCounts:
    case TensorRole::kTileMask:
      if (contract.has_branches)
        return "each branch of the spec has tiles of its own, and lacuna_branch_args takes its "
               "reports";
      return contract.packs_heads ? "heads that share keys share work tiles" : nullptr;
    case TensorRole::kListIndices:
    case TensorRole::kListCounts:
      return contract.takes_lists ? nullptr : "the spec does not say \"mask\": \"external\"";
    case TensorRole::kPreviousLse:
      return contract.takes_previous_lse ? nullptr
                                         : "the spec does not say \"normalise\": \"previous_lse\"";
    case TensorRole::kOrder:
      return contract.takes_order ? nullptr : "the spec has no \"permute\"";
    case TensorRole::kKBegin:
      return contract.batch == BatchLayout::kPages ? "keys lie in pages" : nullptr;
    case TensorRole::kKScale:
    case TensorRole::kVScale:
      return contract.kv == KvFormat::kE4M3 ? nullptr : "it was compiled for k and v of q's type";
    case TensorRole::kKSummaries:
    case TensorRole::kSummarySlots:
    case TensorRole::kSummarised:
      return contract.summary_tile > 0
                 ? nullptr
                 : "no summary of the spec follows from the keys of its tile alone";
    case TensorRole::kPages:
      return contract.batch == BatchLayout::kSequences ? "it was compiled for keys without pages"
                                                       : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace lacuna

#include <algorithm>
#include <limits>

#include "runtime/cpu/ops/estimate.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna::predict {
namespace {

constexpr float kLogitInfinity = std::numeric_limits<float>::infinity();
constexpr int kBlockColumns = 64;  ///< about as many columns at once

/// What the rows of a query tile see of a key tile.
enum Sight : std::uint8_t { kNothing, kSomething, kEverything };

void bind_tile(Bindings& bindings, TokenRange q, TokenRange k) {
  bindings.set(Variable::kQ0, q.first);
  bindings.set(Variable::kQ1, q.last);
  bindings.set(Variable::kK0, k.first);
  bindings.set(Variable::kK1, k.last);
}

/// One pass over the key tiles of a work tile.
struct Pass {
  const EstimateJob& job;
  LogitKind kind;
  HeadIndex head;
  int i;
  const ColumnPanels& panels;
  const RowVectors& rows;
  Bindings& bindings;

  bool is_reference() const { return kind == LogitKind::kReference; }
  Summary columns() const {
    return is_reference() ? Summary{SummaryKind::kTokens, 1} : job.op.columns;
  }
};

TokenRange query_tokens(const Pass& pass) {
  return {pass.rows.tokens.front().first, pass.rows.tokens.back().last};
}

TokenRange tile_tokens(const Pass& pass, int first_tile, int end_tile) {
  return {first_tile * pass.job.op.tile_k,
          std::min(end_tile * pass.job.op.tile_k, pass.job.args.n_k) - 1};
}

/// By interval analysis, for all pairs of the token ranges that are bound.
Sight classify(const Pass& pass) {
  const Estimate& op = pass.job.op;
  const Bindings& bindings = pass.bindings;
  const bool reference = pass.is_reference() && !op.reference.empty();
  if (!holds(op.classifier.may, bindings, true)) return kNothing;
  if (reference && !holds(op.reference_classifier.may, bindings, true)) return kNothing;
  if (!holds(op.classifier.must, bindings, true)) return kSomething;
  return reference && !holds(op.reference_classifier.must, bindings, true) ? kSomething
                                                                           : kEverything;
}

/// The tile at hand and key tile j, for formulas of tiles.
void bind_place(const Pass& pass, int j) {
  const EstimateJob& job = pass.job;
  const int i = pass.i;
  bind_tile(pass.bindings, {i * job.op.tile_q, std::min((i + 1) * job.op.tile_q, job.args.n_q) - 1},
            tile_tokens(pass, j, j + 1));
  pass.bindings.set(Variable::kI, i);
  pass.bindings.set(Variable::kJ, j);
}

/// Are the queries that are compared those of the tile at hand? The last ones of a head are
/// compared once for all of its tiles, whatever these see.
bool reads_own_rows(const Estimate& op) { return op.rows.kind != SummaryKind::kLast; }

/// Has the tile no part in the pass, although its bounds say that it is visible?
bool is_excluded(const Pass& pass, int j) {
  const EstimateJob& job = pass.job;
  if (pass.is_reference()) return false;
  if (reads_own_rows(job.op) && job.visible && !is_visible(*job.visible, pass.head, pass.i, j))
    return true;
  if (job.within && !has_bit(*job.within, pass.head, pass.i, j)) return true;
  if (job.op.exclude.empty()) return false;
  bind_place(pass, j);
  if (job.similar_q) {
    pass.bindings.set(Variable::kSimilarQ, *at<float>(*job.similar_q, pass.head, pass.i));
  }
  if (job.similar_k) {
    const HeadIndex kv_head = head_of(*job.similar_k, pass.head, job.args.n_h);
    pass.bindings.set(Variable::kSimilarK, *at<float>(*job.similar_k, kv_head, j));
  }
  return evaluate(job.op.exclude, pass.bindings).boolean;
}

/// Sight of each tile of a block; false if nothing of it is seen. The whole block is asked first:
/// what interval analysis says of it holds for its parts.
bool classify_tiles(const Pass& pass, LogitBlock& block, std::vector<std::uint8_t>& sight) {
  bind_tile(pass.bindings, query_tokens(pass), tile_tokens(pass, block.first_tile, block.end_tile));
  const Sight whole = classify(pass);
  sight.assign(static_cast<std::size_t>(block.end_tile - block.first_tile), whole);
  if (whole == kNothing) return false;
  bool any = false;
  for (int j = block.first_tile; j < block.end_tile; ++j) {
    std::uint8_t& tile = sight[static_cast<std::size_t>(j - block.first_tile)];
    if (whole == kSomething) {
      bind_tile(pass.bindings, query_tokens(pass), tile_tokens(pass, j, j + 1));
      tile = classify(pass);
    }
    if (tile != kNothing && is_excluded(pass, j)) tile = kNothing;
    any = any || tile != kNothing;
  }
  return any;
}

bool sees(const Pass& pass, TokenRange q, TokenRange k) {
  const Estimate& op = pass.job.op;
  if (q.first < q.last || k.first < k.last) {
    bind_tile(pass.bindings, q, k);
    const Sight sight = classify(pass);
    if (sight != kSomething || !op.pairs) return sight != kNothing;
    return has_visible_pair(op.mask, q.first, q.last, k.first, k.last, pass.bindings);
  }
  pass.bindings.set(Variable::kQ, q.first);
  pass.bindings.set(Variable::kK, k.first);
  return holds(op.mask, pass.bindings, true) &&
         (!pass.is_reference() || holds(op.reference, pass.bindings, true));
}

/// dot -> logit, for one row of the block.
void scale_row(const Pass& pass, const LogitBlock& block, int r, float* logits) {
  const EstimateJob& job = pass.job;
  const int count = block.end - block.first, n_h = job.args.n_h;
  if (!pass.is_reference() && job.q_scale) {
    const int token = pass.rows.tokens[static_cast<std::size_t>(r)].first;
    const HeadIndex kv_head = head_of(*job.k_scale, pass.head, n_h);
    const float row_scale = *at<float>(*job.q_scale, pass.head, token);
    const float* column_scale = at<float>(*job.k_scale, kv_head, block.first);
    for (int c = 0; c < count; ++c) logits[c] = logits[c] * row_scale * column_scale[c];
    if (job.row_bias) {
      const float bias = *at<float>(*job.row_bias, pass.head, token);
      for (int c = 0; c < count; ++c) logits[c] += bias;
    }
    if (job.column_bias) {
      const float* bias = at<float>(*job.column_bias, pass.head, block.first);
      for (int c = 0; c < count; ++c) logits[c] += bias[c];
    }
  }
  const bool cells = pass.columns().kind == SummaryKind::kAntidiagonal;
  const auto divisor = static_cast<float>(cells ? pass.columns().count : 1);
  const float of_launch = softmax_scale(job.args, job.op.scale);
  const float scale = job.op.is_indexed() ? job.op.temperature : of_launch * job.op.temperature;
  for (int c = 0; c < count; ++c) logits[c] = scale * (logits[c] / divisor);
}

/// Writes -inf where a row sees nothing.
void hide_columns(const Pass& pass, const LogitBlock& block, std::span<const std::uint8_t> sight,
                  int r, float* logits) {
  const TokenRange q = pass.rows.tokens[static_cast<std::size_t>(r)];
  for (int j = block.first_tile; j < block.end_tile; ++j) {
    const std::uint8_t tile = sight[static_cast<std::size_t>(j - block.first_tile)];
    if (tile == kEverything) continue;
    const int begin = j * block.tile_columns, end = std::min(begin + block.tile_columns, block.end);
    for (int c = begin; c < end; ++c) {
      if (tile == kNothing || !sees(pass, q, column_tokens(pass.job, pass.columns(), c))) {
        logits[c - block.first] = -kLogitInfinity;
      }
    }
  }
}

/// Scores that the spec says itself, one for each tile, in the place of a row's dot products.
void take_scores(const Pass& pass, const LogitBlock& block, float* logits) {
  for (int j = block.first_tile; j < block.end_tile; ++j) {
    bind_place(pass, j);
    logits[j - block.base] =
        pass.job.op.temperature * evaluate(pass.job.op.from, pass.bindings).f32;
  }
}

void compute_logits(const Pass& pass, LogitBlock& block, std::span<const std::uint8_t> sight,
                    EstimateScratch& scratch) {
  std::vector<float>& logits = scratch.logits;
  block.base = block.first / kPanelColumns * kPanelColumns;
  block.stride =
      static_cast<std::size_t>(ceil_div(block.end - block.base, kPanelColumns)) * kPanelColumns;
  logits.resize(block.stride * static_cast<std::size_t>(pass.rows.count()));
  const bool is_given = pass.job.op.is_given();
  if (is_given) {
    take_scores(pass, block, logits.data());
  } else if (pass.job.op.is_indexed()) {
    index_products(pass.job, pass.rows, pass.panels, block.base, block.end, logits.data(),
                   block.stride, scratch.products);
  } else {
    dot_products(pass.rows.values.data(), pass.rows.count(), pass.panels, block.base, block.end,
                 logits.data(), block.stride);
  }
  for (int r = 0; r < pass.rows.count(); ++r) {
    float* row =
        logits.data() + static_cast<std::size_t>(r) * block.stride + (block.first - block.base);
    if (!is_given) scale_row(pass, block, r, row);
    hide_columns(pass, block, sight, r, row);
  }
  block.logits = logits.data();
}

}  // namespace

EstimateScratch::EstimateScratch(const EstimateJob& job) {
  bind_head(job.args, job.params, {}, bindings);
  bindings.set(Variable::kNI, job.q_tiles());
  bindings.set(Variable::kNJ, job.k_tiles());
}

void for_each_block(const EstimateJob& job, const KeyColumns& keys, HeadIndex head, int i,
                    LogitKind kind, EstimateScratch& scratch,
                    const std::function<void(const LogitBlock&)>& visit) {
  const bool reference = kind == LogitKind::kReference;
  const Pass pass{job,
                  kind,
                  head,
                  i,
                  reference ? keys.exact : keys.estimated,
                  reference ? scratch.exact_rows : scratch.rows,
                  scratch.bindings};
  if (pass.rows.count() == 0) return;
  bind_head(job.args, job.params, head, scratch.bindings);
  LogitBlock block;
  block.tile_columns = columns_of_tile(job, pass.columns());
  const int tiles = ceil_div(kBlockColumns, block.tile_columns);
  for (int j = 0; j < job.k_tiles(); j += tiles) {
    block.first_tile = j;
    block.end_tile = std::min(j + tiles, job.k_tiles());
    block.first = j * block.tile_columns;
    block.end = std::min(block.end_tile * block.tile_columns, pass.panels.columns);
    if (!classify_tiles(pass, block, scratch.sight)) continue;
    compute_logits(pass, block, scratch.sight, scratch);
    visit(block);
  }
}

}  // namespace lacuna::predict

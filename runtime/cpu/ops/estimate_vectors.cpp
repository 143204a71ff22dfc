#include <algorithm>

#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/bands.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/estimate.hpp"

namespace lacuna::predict {
namespace {

/// Stored vectors of a row or column, one after the other.
int parts_of(Summary kind) { return kind.kind == SummaryKind::kAntidiagonal ? kind.count : 1; }

/// Vectors that stand for `tokens` tokens in tiles of `tile`.
int vector_count(Summary kind, int tokens, int tile) {
  return ceil_div(tokens, row_tokens(kind, tile).width);
}

TokenRange vector_tokens(Summary kind, int tile, int tokens, int index) {
  const RowTokens row = row_tokens(kind, tile);
  const int first = index * row.step;
  return {first, std::min(first + row.width, tokens) - 1};
}

/// Row or column `index`: one stored vector, or the tokens of a cell one after the other, those of
/// a row in reverse. Tokens past the end are 0.
void load_vector(const Array& x, HeadIndex head, Summary kind, int tile, bool reversed, int index,
                 float* to) {
  const int cell = parts_of(kind);
  for (int s = 0; s < cell; ++s) {
    const int number = are_tokens(kind.kind) ? index * row_tokens(kind, tile).step : index;
    const int token = number * cell + (reversed ? cell - 1 - s : s);
    float* part = to + std::ptrdiff_t{s} * x.width();
    if (token < x.tokens()) {
      load_row(x, head, token, part);
    } else {
      std::fill(part, part + x.width(), 0.0F);
    }
  }
}

ColumnPanels pack_columns(const Array& k, HeadIndex kv_head, Summary kind, int tile, int count,
                          const Threads& threads) {
  ColumnPanels panels(count, parts_of(kind) * k.width());
  const std::size_t workers = worker_count(threads, panels.panels());
  std::vector<std::vector<float>> columns(
      workers, std::vector<float>(static_cast<std::size_t>(panels.length)));
  parallel_for(threads, workers, panels.panels(), [&](std::int64_t panel, std::size_t worker) {
    const int begin = static_cast<int>(panel) * kPanelColumns;
    for (int c = begin; c < std::min(begin + kPanelColumns, count); ++c) {
      load_vector(k, kv_head, kind, tile, false, c, columns[worker].data());
      panels.set_column(c, columns[worker].data());
    }
  });
  return panels;
}

/// What is not compared has no part in a product.
void drop_elements(std::uint32_t bands, float* row, int width) {
  for (int c = 0; c < width; ++c)
    if (!is_in_bands(bands, c)) row[c] = 0.0F;
}

/// What a row is compared with bounds by: its negative elements, then its positive ones. The
/// product with the smallest and the largest of each element has the larger of the two products.
void split_signs(float* row, int width) {
  for (int c = 0; c < width; ++c) {
    const float x = row[c];
    row[c] = std::min(x, 0.0F);
    row[width + c] = std::max(x, 0.0F);
  }
}

float* row_at(RowVectors& rows, int r, int length) {
  return rows.values.data() + std::ptrdiff_t{r} * length;
}

}  // namespace

int columns_of_tile(const EstimateJob& job, Summary kind) {
  return ceil_div(job.op.tile_k, row_tokens(kind, job.op.tile_k).width);
}

TokenRange column_tokens(const EstimateJob& job, Summary kind, int column) {
  return vector_tokens(kind, job.op.tile_k, job.args.n_k, column);
}

KeyColumns load_columns(const EstimateJob& job, HeadIndex kv_head) {
  const int n_k = job.args.n_k, tile = job.op.tile_k;
  const Summary kind = job.op.columns;
  if (job.op.is_given()) return {ColumnPanels(job.k_tiles(), 0), {}};
  if (job.op.is_indexed()) return {load_index_columns(job, kv_head), {}};
  KeyColumns keys{
      pack_columns(*job.k, kv_head, kind, tile, vector_count(kind, n_k, tile), job.args.threads),
      {}};
  if (job.exact_k) {
    keys.exact =
        pack_columns(*job.exact_k, kv_head, {SummaryKind::kTokens, 1}, tile, n_k, job.args.threads);
  }
  return keys;
}

void load_rows(const EstimateJob& job, HeadIndex head, int i, RowVectors& rows) {
  const Summary kind = job.op.rows;
  const int n_q = job.args.n_q, tile = job.op.tile_q;
  int first = 0, end = 0;
  if (kind.kind == SummaryKind::kLast) {
    first = std::max(0, n_q - kind.count);
    end = n_q;
  } else {
    first = i * tile / row_tokens(kind, tile).step;
    end = ceil_div(std::min((i + 1) * tile, n_q), row_tokens(kind, tile).step);
  }
  if (job.op.is_indexed()) {
    rows.tokens.clear();
    for (int row = first; row < end; ++row)
      rows.tokens.push_back(vector_tokens(kind, tile, n_q, row));
    return load_index_rows(job, head, rows);
  }
  const bool has_bounds = job.op.columns.kind == SummaryKind::kMinMax;
  const int width = job.q == nullptr ? 0 : job.q->width();
  const std::uint32_t bands = band_steps(job.op.dims).value_or(0);
  const int length = (has_bounds ? 2 : parts_of(kind)) * width;
  rows.values.resize(static_cast<std::size_t>(end - first) * static_cast<std::size_t>(length));
  rows.tokens.clear();
  for (int row = first; row < end; ++row) {
    rows.tokens.push_back(vector_tokens(kind, tile, n_q, row));
    if (job.q == nullptr) continue;
    float* const vector = row_at(rows, row - first, length);
    load_vector(*job.q, head, kind, tile, true, row, vector);
    for (int part = 0; part < parts_of(kind); ++part)
      drop_elements(bands, vector + std::ptrdiff_t{part} * width, width);
    if (has_bounds) split_signs(vector, width);
  }
}

void load_exact_rows(const EstimateJob& job, HeadIndex head, const RowVectors& like,
                     RowVectors& rows) {
  const int width = job.exact_q->width();
  rows.tokens = like.tokens;
  rows.values.resize(like.tokens.size() * static_cast<std::size_t>(width));
  for (int r = 0; r < rows.count(); ++r) {
    load_row(*job.exact_q, head, rows.tokens[static_cast<std::size_t>(r)].first,
             row_at(rows, r, width));
  }
}

}  // namespace lacuna::predict

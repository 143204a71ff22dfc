// Estimate, one work tile at a time: nothing of the size of the attention map is ever stored.
//
//   estimate_vectors.cpp  what is compared: rows of a query tile, columns of a KV head
//   estimate_index.cpp    the same of an index: vectors that formulas give
//   dot_products.cpp      all products of a few rows with many columns
//   estimate_logits.cpp   their logits, a few key tiles at once, invisible and excluded ones -inf
//   estimate.cpp          normalisation and reduction to score and p of each tile
// Semantics: ir/program.hpp, Estimate.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "compiler/expr/evaluate.hpp"
#include "runtime/cpu/ops/array.hpp"

namespace lacuna::predict {

/// An estimate and the arrays it reads; null: not given. Quantised values have a scale per token.
struct EstimateJob {
  const Estimate& op;
  const HostArgs& args;
  std::span<const ParamView> params;
  const Array *q = nullptr, *k = nullptr;
  const Array *q_scale = nullptr, *k_scale = nullptr;
  const Array *row_bias = nullptr, *column_bias = nullptr;
  const Array *exact_q = nullptr, *exact_k = nullptr;
  const Array* previous_lse = nullptr;
  const Array *similar_q = nullptr, *similar_k = nullptr;
  const Array* within = nullptr;   ///< bits of the step before
  const Array* visible = nullptr;  ///< with Estimate::pairs: visible_tiles
  Element dtype = Element::kF32;   ///< of the Program: what index vectors are rounded to

  int q_tiles() const { return ceil_div(args.n_q, op.tile_q); }
  int k_tiles() const { return ceil_div(args.n_k, op.tile_k); }
};

// dot_products.cpp: the arithmetic of an estimate, in f32

inline constexpr int kPanelColumns = 8;

/// Columns in panels of eight: [panel][element][column of the panel]. Ragged ends hold 0.
struct ColumnPanels {
  int columns = 0, length = 0;
  std::vector<float> data;

  ColumnPanels() = default;
  ColumnPanels(int columns, int length);
  int panels() const { return (columns + kPanelColumns - 1) / kPanelColumns; }
  void set_column(int column, const float* values);
};

/// dots[r * stride + c - first] = rows[r * length ..] . column c, for whole panels that cover
/// [first, end); `first` is a multiple of kPanelColumns. Writes ceil8(end - first) of each row.
/// Sums of products of integers are exact as long as they stay below 2^24.
void dot_products(const float* rows, int row_count, const ColumnPanels& columns, int first, int end,
                  float* dots, std::size_t stride);

// estimate_vectors.cpp

/// First and last token of what one vector stands for.
struct TokenRange {
  int first = 0, last = 0;
};

/// The columns of a KV head: those of the estimate, and for kLse the keys themselves.
struct KeyColumns {
  ColumnPanels estimated, exact;
};
KeyColumns load_columns(const EstimateJob& job, HeadIndex kv_head);
TokenRange column_tokens(const EstimateJob& job, Summary kind, int column);
/// Columns of a whole tile; the last may have fewer.
int columns_of_tile(const EstimateJob& job, Summary kind);

/// The rows of a query tile, [rows][length].
struct RowVectors {
  std::vector<float> values;   ///< of an index: those of one index head after another
  std::vector<float> weights;  ///< of an index: [index_heads][rows]
  std::vector<TokenRange> tokens;
  int count() const { return static_cast<int>(tokens.size()); }
};
void load_rows(const EstimateJob& job, HeadIndex head, int i, RowVectors& rows);
/// The tokens of `like` from exact_q.
void load_exact_rows(const EstimateJob& job, HeadIndex head, const RowVectors& like,
                     RowVectors& rows);

/// What a thread needs for one work tile.
struct EstimateScratch {
  explicit EstimateScratch(const EstimateJob& job);
  Bindings bindings;
  RowVectors rows, exact_rows;
  std::vector<float> logits;                         ///< [rows][stride] of the tiles at hand
  std::vector<float> products;                       ///< of an index head, as many
  std::vector<std::uint8_t> sight;                   ///< of each of them
  std::vector<float> lse, running_max, denominator;  ///< by row
  std::vector<bool> seen;                            ///< rows with a visible column
};

/// Logits of tiles [first_tile, end_tile): those of row r and of columns [first, end) stand at
/// logits[r * stride + column - base]; -inf where there is none.
struct LogitBlock {
  int first_tile = 0, end_tile = 0;
  int tile_columns = 0, first = 0, end = 0;
  const float* logits = nullptr;
  std::size_t stride = 0;
  int base = 0;

  std::span<const float> row(int r) const { return row(r, first, end); }
  std::span<const float> work_tile(int r, int j) const {
    const int begin = j * tile_columns;
    return row(r, begin, begin + tile_columns < end ? begin + tile_columns : end);
  }

 private:
  std::span<const float> row(int r, int begin, int finish) const {
    return {logits + static_cast<std::size_t>(r) * stride + (begin - base),
            static_cast<std::size_t>(finish - begin)};
  }
};

// estimate_index.cpp

/// Key vectors, which all heads of a batch entry share.
ColumnPanels load_index_columns(const EstimateJob& job, HeadIndex head);
/// Vectors and weights of the rows, whose tokens are known.
void load_index_rows(const EstimateJob& job, HeadIndex head, RowVectors& rows);
/// The weighted sums of products, [rows][stride], for whole panels as dot_products; `products` is
/// room for as many.
void index_products(const EstimateJob& job, const RowVectors& rows, const ColumnPanels& columns,
                    int first, int end, float* logits, std::size_t stride,
                    std::vector<float>& products);

enum class LogitKind : std::uint8_t { kEstimated, kReference };

/// visit(block) for all tiles of work tile i that have a logit, in ascending order; kReference:
/// the exact logits of keys for which op.reference holds. The rows are loaded.
void for_each_block(const EstimateJob& job, const KeyColumns& keys, HeadIndex head, int i,
                    LogitKind kind, EstimateScratch& scratch,
                    const std::function<void(const LogitBlock&)>& visit);

/// p and score of all key tiles (k_tiles each) of query tile i.
void estimate_row(const EstimateJob& job, const KeyColumns& keys, HeadIndex head, int i,
                  EstimateScratch& scratch, std::span<float> p, std::span<float> score);

}  // namespace lacuna::predict

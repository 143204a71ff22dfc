#include <algorithm>

#include "runtime/base/half.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/estimate.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna::predict {
namespace {

float round_to(Element element, float value) {
  if (element == Element::kBF16) return bf16_to_f32(f32_to_bf16(value));
  return element == Element::kF16 ? f16_to_f32(f32_to_f16(value)) : value;
}

/// Elements of one vector, whose token and index head are bound.
void load_elements(const EstimateJob& job, const Expr& formula, Bindings& bindings, float* to) {
  for (int d = 0; d < job.op.index_dim; ++d) {
    bindings.set(Variable::kIndexD, d);
    to[d] = round_to(job.dtype, evaluate(formula, bindings).f32);
  }
}

/// What of a head's product is added; NaN stays NaN.
float positive_part(float x) { return x < 0 ? 0.0F : x; }

}  // namespace

ColumnPanels load_index_columns(const EstimateJob& job, HeadIndex head) {
  ColumnPanels panels(job.args.n_k, job.op.index_dim);
  const std::size_t workers = worker_count(job.args.threads, panels.panels());
  std::vector<std::vector<float>> columns(
      workers, std::vector<float>(static_cast<std::size_t>(panels.length)));
  parallel_for(job.args.threads, workers, panels.panels(),
               [&](std::int64_t panel, std::size_t worker) {
                 Bindings bindings;
                 bind_head(job.args, job.params, head, bindings);
                 const int begin = static_cast<int>(panel) * kPanelColumns;
                 for (int k = begin; k < std::min(begin + kPanelColumns, panels.columns); ++k) {
                   bindings.set(Variable::kK, k);
                   load_elements(job, job.op.index_k, bindings, columns[worker].data());
                   panels.set_column(k, columns[worker].data());
                 }
               });
  return panels;
}

void load_index_rows(const EstimateJob& job, HeadIndex head, RowVectors& rows) {
  const auto count = static_cast<std::size_t>(rows.count());
  const auto heads = static_cast<std::size_t>(job.op.index_heads);
  const auto dim = static_cast<std::size_t>(job.op.index_dim);
  rows.values.resize(heads * count * dim);
  rows.weights.assign(heads * count, 1.0F);
  Bindings bindings;
  bind_head(job.args, job.params, head, bindings);
  for (std::size_t g = 0; g < heads; ++g) {
    bindings.set(Variable::kIndexH, static_cast<std::int32_t>(g));
    for (std::size_t r = 0; r < count; ++r) {
      bindings.set(Variable::kQ, rows.tokens[r].first);
      load_elements(job, job.op.index_q, bindings, rows.values.data() + (g * count + r) * dim);
      if (!job.op.index_weight.empty())
        rows.weights[g * count + r] = evaluate(job.op.index_weight, bindings).f32;
    }
  }
}

void index_products(const EstimateJob& job, const RowVectors& rows, const ColumnPanels& columns,
                    int first, int end, float* logits, std::size_t stride,
                    std::vector<float>& products) {
  const auto count = static_cast<std::size_t>(rows.count());
  const auto dim = static_cast<std::size_t>(job.op.index_dim);
  products.resize(count * stride);
  std::fill(logits, logits + count * stride, 0.0F);
  for (std::size_t g = 0; g < static_cast<std::size_t>(job.op.index_heads); ++g) {
    dot_products(rows.values.data() + g * count * dim, rows.count(), columns, first, end,
                 products.data(), stride);
    for (std::size_t r = 0; r < count; ++r) {
      const float weight = rows.weights[g * count + r];
      for (std::size_t c = r * stride; c < (r + 1) * stride; ++c)
        logits[c] += weight * positive_part(products[c]);
    }
  }
}

}  // namespace lacuna::predict

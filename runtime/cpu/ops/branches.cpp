// Means of keys and values, and the sum of branches.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "compiler/expr/evaluate.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/run_ops.hpp"

namespace lacuna::predict {
namespace {

/// What a row of the sum so far, and one of the branch, are multiplied with.
struct Factors {
  float before = 0, own = 0;
};

/// Of two softmaxes over different keys, as one over both; lse becomes that of both.
Factors merged_factors(float before_lse, float own_lse, float& lse) {
  const float largest = std::max(before_lse, own_lse);
  if (largest == -std::numeric_limits<float>::infinity()) {
    lse = largest;
    return {};
  }
  const float before = std::exp(before_lse - largest), own = std::exp(own_lse - largest);
  lse = largest + std::log(before + own);
  return {before / (before + own), own / (before + own)};
}

float weight_of(const MergeBranch& op, const BranchResults& r, HeadIndex head, int q) {
  Bindings bindings;
  bindings.parameters = {r.caller.params, r.program.params.size()};
  bindings.set(Variable::kQ, q);
  bindings.set(Variable::kH, static_cast<std::int32_t>(head.h));
  bindings.set(Variable::kB, static_cast<std::int32_t>(head.b) + r.caller.first_b);
  bindings.set(Variable::kNQ, r.caller.n_q);
  bindings.set(Variable::kNK, r.caller.n_k);
  bindings.set(Variable::kNH, r.caller.n_h);
  return evaluate(op.weight, bindings).f32;
}

/// A query of the computation, which of the caller's it is, and where its sum lies.
struct MergedRow {
  int n, q;
  std::int64_t sum;
};

/// The factors of one row; updates its log-sum-exp.
Factors factors_of(const MergeBranch& op, const BranchResults& r, const Array& lse, HeadIndex head,
                   const MergedRow& row) {
  if (!op.weight.empty()) return {op.is_first() ? 0.0F : 1.0F, weight_of(op, r, head, row.q)};
  float& sum = r.sums.lse[row.sum];
  const float before = op.is_first() ? -std::numeric_limits<float>::infinity() : sum;
  return merged_factors(before, *at<float>(lse, head, row.n), sum);
}

/// Which query of the caller's each of the computation is; empty: the same.
int callers_query(std::span<const std::int32_t> order, int n) {
  if (order.empty()) return n;
  return std::clamp(order[static_cast<std::size_t>(n)], 0, static_cast<int>(order.size()) - 1);
}

}  // namespace

Array token_means(const Array& x, int tokens, const Threads& threads) {
  const int count = ceil_div(x.tokens(), tokens);
  Array sums = make_array(Element::kF32, x.batches(), x.heads(), count, x.width());
  const std::size_t workers = worker_count(threads, x.head_count());
  const auto d = static_cast<std::size_t>(x.width());
  std::vector<std::vector<float>> rows(workers, std::vector<float>(d));
  parallel_for(threads, workers, x.head_count(), [&](std::int64_t item, std::size_t worker) {
    const HeadIndex head = head_at(x, item);
    std::vector<float>& row = rows[worker];
    for (int n = 0; n < count; ++n) {
      float* sum = at<float>(sums, head, n);
      std::fill_n(sum, d, 0.0F);
      const int first = n * tokens, end = std::min(first + tokens, x.tokens());
      for (int token = first; token < end; ++token) {
        load_row(x, head, token, row.data());
        for (std::size_t c = 0; c < d; ++c) sum[c] += row[c];
      }
      for (std::size_t c = 0; c < d; ++c) sum[c] /= static_cast<float>(end - first);
    }
  });
  return convert(sums, x.element, threads);
}

void merge_branch(const MergeBranch& op, const BranchResults& r) {
  const HostArgs& args = r.caller;
  const Element element = element_of(r.program.dtype);
  const int width = value_dim(r.program);
  const Array o = view_array(r.attended.o, element, args.n_b, args.n_h, args.n_q, width);
  const Array lse = view_array(r.attended.lse, Element::kF32, args.n_b, args.n_h, args.n_q);
  const int queries = query_tokens(r.program, args);
  const Array to = view_array(args.o, element, args.n_b, args.n_h, queries, width);
  const auto order = op.order < 0 ? std::span<const std::int32_t>() : order_of(r.program, args);
  const std::size_t workers = worker_count(args.threads, o.head_count());
  std::vector<std::vector<float>> rows(workers,
                                       std::vector<float>(static_cast<std::size_t>(width)));
  parallel_for(args.threads, workers, o.head_count(), [&](std::int64_t item, std::size_t worker) {
    const HeadIndex head = head_at(o, item);
    std::vector<float>& own = rows[worker];
    for (int n = 0; n < queries; ++n) {
      const MergedRow row = {n, callers_query(order, n), item * queries + n};
      const Factors factors = factors_of(op, r, lse, head, row);
      float* sum = r.sums.o + row.sum * width;
      load_row(o, head, n / op.queries, own.data());
      for (int c = 0; c < width; ++c) {
        const float before = op.is_first() ? 0.0F : factors.before * sum[c];
        sum[c] = before + factors.own * own[static_cast<std::size_t>(c)];
      }
      if (!op.is_last()) continue;
      store_row(to, head, row.q, sum);
      if (!op.weight.empty() || args.lse.data == nullptr) continue;
      const float natural = r.sums.lse[row.sum];
      auto* target = static_cast<float*>(args.lse.data) + head.b * args.lse.stride[0] +
                     head.h * args.lse.stride[1] + row.q * args.lse.stride[2];
      *target = op.lse_base == LseBase::k2 ? natural * std::numbers::log2e_v<float> : natural;
    }
  });
}

}  // namespace lacuna::predict

#include "runtime/cpu/ops/select.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "compiler/expr/text/parse.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna::predict {
namespace {

/// Memory of one thread for one work tile.
struct RowScratch {
  explicit RowScratch(const SelectJob& job);
  Bindings bindings;
  std::optional<EstimateScratch> estimate;
  std::vector<float> p, score, mass_before;
  std::vector<int> visible, by_rank, rank;
};

RowScratch::RowScratch(const SelectJob& job) {
  const auto tiles = static_cast<std::size_t>(job.k_tiles());
  bind_head(job.args, job.params, {}, bindings);
  bindings.set(Variable::kNI, job.q_tiles());
  bindings.set(Variable::kNJ, job.k_tiles());
  if (job.estimate) estimate.emplace(*job.estimate);
  for (auto* values : {&p, &score, &mass_before}) values->resize(tiles);
  rank.resize(tiles);
}

void bind_place(const SelectJob& job, int i, int j, Bindings& bindings) {
  bindings.set(Variable::kI, i);
  bindings.set(Variable::kJ, j);
  bind_bounds(job.op, job.args, i, j, bindings);
}

void find_visible(const SelectJob& job, HeadIndex head, int i, RowScratch& row) {
  row.visible.clear();
  for (int j = 0; j < job.k_tiles(); ++j) {
    if (job.within && !has_bit(*job.within, head, i, j)) continue;
    if (job.visible) {
      if (is_visible(*job.visible, head, i, j)) row.visible.push_back(j);
      continue;
    }
    bind_place(job, i, j, row.bindings);
    if (holds(job.op.classifier.may, row.bindings, true)) row.visible.push_back(j);
  }
}

/// Rank of each visible tile, and the mass of those before it. A NaN ranks first and
/// adds no mass.
void rank_tiles(RowScratch& row) {
  const auto p = [&](int j) { return row.p[static_cast<std::size_t>(j)]; };
  std::fill(row.rank.begin(), row.rank.end(), 0);
  std::fill(row.mass_before.begin(), row.mass_before.end(), 0.0F);
  row.by_rank.clear();
  for (const int j : row.visible) {
    if (!std::isnan(p(j))) row.by_rank.push_back(j);
  }
  std::stable_sort(row.by_rank.begin(), row.by_rank.end(),
                   [&](int a, int b) { return p(a) > p(b); });
  float mass = 0;
  int rank = 0;
  for (const int j : row.by_rank) {
    row.rank[static_cast<std::size_t>(j)] = rank++;
    row.mass_before[static_cast<std::size_t>(j)] = mass;
    mass += p(j);
  }
}

/// The largest p of the visible tiles; a NaN is none.
float largest_p(const RowScratch& row) {
  float largest = -std::numeric_limits<float>::infinity();
  for (const int j : row.visible) {
    const float p = row.p[static_cast<std::size_t>(j)];
    if (p > largest) largest = p;
  }
  return largest;
}

/// Variables of `keep` that do not depend on the key tile.
void bind_row(const SelectJob& job, HeadIndex head, int i, RowScratch& row) {
  bind_head(job.args, job.params, head, row.bindings);
  find_visible(job, head, i, row);
  row.bindings.set(Variable::kVisible, static_cast<std::int32_t>(row.visible.size()));
  if (job.similar_q) {
    row.bindings.set(Variable::kSimilarQ, *at<float>(*job.similar_q, head, i));
  }
}

/// p and score of the row are known.
void select_row(const SelectJob& job, HeadIndex head, int i, RowScratch& row, const Array& bits) {
  bind_row(job, head, i, row);
  if (uses(job.op.keep, Variable::kRank) || uses(job.op.keep, Variable::kMassBefore)) {
    rank_tiles(row);
  }
  if (uses(job.op.keep, Variable::kPMax)) row.bindings.set(Variable::kPMax, largest_p(row));
  auto* words = at<std::uint32_t>(bits, head, i);
  std::fill(words, words + job.words(), 0U);
  for (const int j : row.visible) {
    const auto tile = static_cast<std::size_t>(j);
    bind_place(job, i, j, row.bindings);
    row.bindings.set(Variable::kP, row.p[tile]);
    row.bindings.set(Variable::kScore, row.score[tile]);
    row.bindings.set(Variable::kRank, row.rank[tile]);
    row.bindings.set(Variable::kMassBefore, row.mass_before[tile]);
    if (job.similar_k) {
      const HeadIndex kv_head = head_of(*job.similar_k, head, job.args.n_h);
      row.bindings.set(Variable::kSimilarK, *at<float>(*job.similar_k, kv_head, j));
    }
    const bool joins = job.joins && has_bit(*job.joins, head, i, j);
    if (joins || job.op.keep.empty() || evaluate(job.op.keep, row.bindings).boolean) {
      words[j / 32] |= 1U << (static_cast<unsigned>(j) % 32U);
    }
  }
}

/// The query heads that share one KV head.
void select_group(const SelectJob& job, HeadIndex kv_head, std::vector<RowScratch>& scratch,
                  const Array& bits) {
  const int group = job.args.n_h / job.args.n_h_kv, tiles = job.q_tiles();
  const auto head_at = [&](std::int64_t number) {
    return HeadIndex{kv_head.b, kv_head.h * group + number};
  };
  KeyColumns keys;
  if (job.estimate) keys = load_columns(*job.estimate, kv_head);
  // The last queries of the sequence give all work tiles the same estimate.
  const bool one_for_all = job.estimate && job.estimate->op.rows.kind == SummaryKind::kLast &&
                           job.estimate->op.exclude.empty() && !job.estimate->within;
  const std::int64_t rows_of_item = one_for_all ? tiles : 1;
  const std::int64_t items = std::int64_t{group} * tiles / std::max<std::int64_t>(1, rows_of_item);
  parallel_for(job.args.threads,
               std::min(scratch.size(), static_cast<std::size_t>(std::max<std::int64_t>(1, items))),
               items, [&](std::int64_t item, std::size_t worker) {
                 RowScratch& row = scratch[worker];
                 const std::int64_t begin = item * rows_of_item;
                 const HeadIndex head = head_at(begin / tiles);
                 if (job.estimate) {
                   estimate_row(*job.estimate, keys, head, static_cast<int>(begin % tiles),
                                *row.estimate, row.p, row.score);
                 }
                 for (std::int64_t r = begin; r < begin + rows_of_item; ++r) {
                   select_row(job, head, static_cast<int>(r % tiles), row, bits);
                 }
               });
}

/// Every head of a KV head gets what any of them keeps.
void unite_heads(const SelectJob& job, const Array& bits) {
  const int group = job.args.n_h / job.args.n_h_kv;
  const std::int64_t words = std::int64_t{job.q_tiles()} * job.words();
  for (std::int64_t item = 0; item < std::int64_t{job.args.n_b} * job.args.n_h_kv; ++item) {
    const std::int64_t b = item / job.args.n_h_kv, first = item % job.args.n_h_kv * group;
    auto* const heads = at<std::uint32_t>(bits, {b, first}, 0);
    for (std::int64_t word = 0; word < words; ++word) {
      std::uint32_t all = 0;
      for (int h = 0; h < group; ++h) all |= heads[h * words + word];
      for (int h = 0; h < group; ++h) heads[h * words + word] = all;
    }
  }
}

}  // namespace

void select_tiles(const SelectJob& job, const Array& bits) {
  const HostArgs& args = job.args;
  const std::int64_t rows = std::int64_t{args.n_h / args.n_h_kv} * job.q_tiles();
  std::vector<RowScratch> scratch(worker_count(args.threads, rows), RowScratch(job));
  for (std::int64_t item = 0; item < std::int64_t{args.n_b} * args.n_h_kv; ++item) {
    select_group(job, {item / args.n_h_kv, item % args.n_h_kv}, scratch, bits);
  }
  if (job.op.shared_heads) unite_heads(job, bits);
}

}  // namespace lacuna::predict

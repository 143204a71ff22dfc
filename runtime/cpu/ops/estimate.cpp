#include "runtime/cpu/ops/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cpu/interpreter/softmax.hpp"

namespace lacuna::predict {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Log of the sum of exp(logit) of every row, over one pass; kRowMax: the largest logit alone.
void sum_exponentials(const EstimateJob& job, const KeyColumns& keys, HeadIndex head, int i,
                      LogitKind kind, EstimateScratch& scratch) {
  const auto rows = static_cast<std::size_t>(scratch.rows.count());
  scratch.running_max.assign(rows, -kInfinity);
  scratch.denominator.assign(rows, 0.0F);
  for_each_block(job, keys, head, i, kind, scratch, [&](const LogitBlock& block) {
    for (std::size_t r = 0; r < rows; ++r) {
      const std::span<const float> logits = block.row(static_cast<int>(r));
      float& running_max = scratch.running_max[r];
      const float largest = std::max(running_max, max_of(logits));
      const float base = largest == -kInfinity ? 0.0F : largest;
      float sum = 0;
      for (const float logit : logits) sum += std::exp(logit - base);
      scratch.denominator[r] = scratch.denominator[r] * std::exp(running_max - base) + sum;
      running_max = largest;
    }
  });
  for (std::size_t r = 0; r < rows; ++r) {
    const float sum = scratch.denominator[r];
    scratch.lse[r] = sum == 0 ? -kInfinity : scratch.running_max[r] + std::log(sum);
    if (job.op.normalise == Normalise::kRowMax && !std::isnan(sum)) {
      scratch.lse[r] = scratch.running_max[r];
    }
  }
}

/// What normalises each row; without a normalisation 0, which nothing reads.
void find_lse(const EstimateJob& job, const KeyColumns& keys, HeadIndex head, int i,
              EstimateScratch& scratch) {
  scratch.lse.assign(static_cast<std::size_t>(scratch.rows.count()), 0.0F);
  switch (job.op.normalise) {
    case Normalise::kNone:
      break;
    case Normalise::kSoftmax:
    case Normalise::kRowMax:
      sum_exponentials(job, keys, head, i, LogitKind::kEstimated, scratch);
      break;
    case Normalise::kLse:
      load_exact_rows(job, head, scratch.rows, scratch.exact_rows);
      sum_exponentials(job, keys, head, i, LogitKind::kReference, scratch);
      break;
    case Normalise::kPreviousLse:
      for (std::size_t r = 0; r < scratch.lse.size(); ++r) {
        scratch.lse[r] = *at<float>(*job.previous_lse, head, scratch.rows.tokens[r].first);
      }
      break;
  }
}

bool is_logit(float value) { return value != -kInfinity; }

/// A row without a normaliser says nothing about any tile.
bool has_weights(float lse) { return lse != -kInfinity && !std::isnan(lse); }

/// The largest logit of each tile and row, and its weight.
void take_largest(const EstimateJob& job, const LogitBlock& block, const EstimateScratch& scratch,
                  std::span<float> p, std::span<float> score) {
  const bool weighted = job.op.normalise != Normalise::kNone;
  for (int j = block.first_tile; j < block.end_tile; ++j) {
    const auto tile = static_cast<std::size_t>(j);
    for (std::size_t r = 0; r < scratch.lse.size(); ++r) {
      if (!has_weights(scratch.lse[r])) continue;
      const float largest = max_of(block.work_tile(static_cast<int>(r), j));
      if (!is_logit(largest)) continue;
      score[tile] = std::max(score[tile], largest);
      p[tile] = std::max(p[tile], weighted ? std::exp(largest - scratch.lse[r]) : largest);
    }
  }
}

/// The sums of each tile's logits and weights over its rows and columns.
void add_all(const EstimateJob& job, const LogitBlock& block, EstimateScratch& scratch,
             std::span<float> p, std::span<float> score) {
  const bool weighted = job.op.normalise != Normalise::kNone;
  for (int j = block.first_tile; j < block.end_tile; ++j) {
    float logit_sum = 0, weight_sum = 0;
    bool any = false;
    for (std::size_t r = 0; r < scratch.lse.size(); ++r) {
      const float lse = scratch.lse[r];
      float row_logits = 0, row_weights = 0;
      bool sees_tile = false;
      for (const float logit : block.work_tile(static_cast<int>(r), j)) {
        if (!is_logit(logit)) continue;
        sees_tile = true;
        row_logits += logit;
        if (weighted) row_weights += std::exp(logit - lse);
      }
      if (!sees_tile) continue;
      scratch.seen[r] = true;
      if (!has_weights(lse)) continue;
      any = true;
      logit_sum += row_logits;
      weight_sum += row_weights;
    }
    if (!any) continue;
    score[static_cast<std::size_t>(j)] = logit_sum;
    p[static_cast<std::size_t>(j)] = weighted ? weight_sum : logit_sum;
  }
}

}  // namespace

void estimate_row(const EstimateJob& job, const KeyColumns& keys, HeadIndex head, int i,
                  EstimateScratch& scratch, std::span<float> p, std::span<float> score) {
  const bool sums = job.op.reduce == Reduce::kSum;
  std::fill(score.begin(), score.end(), -kInfinity);
  std::fill(p.begin(), p.end(), job.op.normalise == Normalise::kNone ? -kInfinity : 0.0F);
  load_rows(job, head, i, scratch.rows);
  scratch.seen.assign(static_cast<std::size_t>(scratch.rows.count()), false);
  find_lse(job, keys, head, i, scratch);
  for_each_block(job, keys, head, i, LogitKind::kEstimated, scratch, [&](const LogitBlock& block) {
    if (sums) {
      add_all(job, block, scratch, p, score);
    } else {
      take_largest(job, block, scratch, p, score);
    }
  });
  if (!sums) return;
  const auto rows = std::count(scratch.seen.begin(), scratch.seen.end(), true);
  for (float& value : p) {
    if (rows > 0) value /= static_cast<float>(rows);
  }
}

}  // namespace lacuna::predict

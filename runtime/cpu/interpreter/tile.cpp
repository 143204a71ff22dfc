#include "runtime/cpu/interpreter/tile.hpp"

#include <algorithm>
#include <limits>
#include <numbers>

#include "runtime/base/fp8.hpp"

namespace lacuna::interpreter {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kRowsOfWarp = 16;

/// Mask and score of one row of logits. The score is asked for visible keys only.
void apply_expressions(const Job& job, int q, bool masked, std::span<const int> keys,
                       Bindings& bindings, std::span<float> logits) {
  const Attend& attend = job.attend;
  masked = masked && !attend.mask.empty();
  if (!masked && attend.score.empty()) return;
  const float unseen = attend.normalise == Weights::kNone ? 0.0F : -kInfinity;  // has weight 0
  bindings.set(Variable::kQ, q);
  for (std::size_t c = 0; c < logits.size(); ++c) {
    bindings.set(Variable::kK, keys[c]);
    if (masked && !evaluate(attend.mask, bindings).boolean) {
      logits[c] = unseen;
    } else if (!attend.score.empty()) {
      bindings.set(Variable::kS, logits[c]);
      logits[c] = evaluate(attend.score, bindings).f32;
    }
  }
}

/// Dot products of quantised values -> dot products of what they stand for.
void dequantise(const Job& job, const WorkTile& row, int q, std::span<const int> keys,
                std::span<float> dots) {
  const HostArgs& args = job.args;
  if (!args.q_scale.data) return;
  const float q_scale = *element_at<float>(args.q_scale, row.head, q);
  const float row_bias = args.row_bias.data ? *element_at<float>(args.row_bias, row.head, q) : 0.0F;
  for (std::size_t c = 0; c < dots.size(); ++c) {
    const float k_scale = *element_at<float>(args.k_scale, row.head_kv, keys[c]);
    dots[c] = dots[c] * q_scale * k_scale + row_bias;
    if (args.column_bias.data) dots[c] += *element_at<float>(args.column_bias, row.head, keys[c]);
  }
}

/// Q K^T, scaled, with score and mask.
void compute_logits(const Job& job, const WorkTile& row, bool masked, Worker& worker) {
  const auto d = static_cast<std::size_t>(job.head_dim);
  for (int r = 0; r < row.rows; ++r) {
    const float* query = worker.q.data() + static_cast<std::size_t>(r) * d;
    worker.terms.clear();
    for (std::size_t c = 0; c < d; ++c) {
      worker.terms.push_back({query[c], worker.k_columns.data() + c * worker.tile_k});
    }
    const std::span<float> logits = worker.logits_of(r);
    std::fill(logits.begin(), logits.end(), 0.0F);
    add_terms(logits, worker.terms);
    dequantise(job, row, row.q0 + r, worker.keys, logits);
    for (float& logit : logits) logit *= job.scale;
    apply_expressions(job, row.q0 + r, masked, worker.keys, worker.bindings, logits);
  }
}

/// Does the gate skip the tile for rows [begin, end)?
bool is_gated(const Gate& gate, int begin, int end, Worker& worker) {
  float tile_max = -kInfinity, gap = -kInfinity;
  for (int r = begin; r < end; ++r) {
    const float row_max = max_of(worker.logits_of(r));
    if (row_max == -kInfinity) continue;
    tile_max = std::max(tile_max, row_max);
    gap = std::max(gap, row_max - worker.softmax.running_max(r));
  }
  worker.bindings.set(Variable::kTileMax, tile_max);
  worker.bindings.set(Variable::kGap, gap);
  return holds(gate.skip, worker.bindings, false) && !holds(gate.exempt, worker.bindings, false);
}

/// Decides for every scope; returns whether all of them are gated.
bool decide_gate(const Attend& attend, int rows, bool first, Worker& worker) {
  worker.gated.assign(worker.gated.size(), false);
  if (!attend.gate || first) return false;
  const int scope_rows = attend.gate->scope == GateScope::kWarp ? kRowsOfWarp : rows;
  bool all = true;
  for (int begin = 0; begin < rows; begin += scope_rows) {
    const int end = std::min(begin + scope_rows, rows);
    const bool skip = is_gated(*attend.gate, begin, end, worker);
    std::fill(worker.gated.begin() + begin, worker.gated.begin() + end, skip);
    all = all && skip;
  }
  return all;
}

}  // namespace

Worker::Worker(const Job& job)
    : tile_k(static_cast<std::size_t>(job.attend.tile_k)),
      softmax(job.attend.tile_q, job.head_dim_v, job.attend.normalise) {
  const auto tile_q = static_cast<std::size_t>(job.attend.tile_q);
  const auto d = static_cast<std::size_t>(job.head_dim);
  q.resize(tile_q * d);
  k_columns.resize(tile_k * d);
  v.resize(tile_k * static_cast<std::size_t>(job.head_dim_v));
  logits.resize(tile_q * tile_k);
  output.resize(static_cast<std::size_t>(job.head_dim_v));
  gated.resize(tile_q);
  bindings.parameters = job.params;
  bindings.set(Variable::kNQ, job.args.n_q);
  bindings.set(Variable::kNK, job.args.n_k);
  bindings.set(Variable::kNH, job.args.n_h);
  bindings.set(Variable::kNI, job.q_tiles);
  bindings.set(Variable::kNJ, job.k_tiles);
}

WorkTile begin_row(const Job& job, HeadIndex head, int i, Worker& worker) {
  const HostArgs& args = job.args;
  WorkTile row{head, {head.b, head.h / (args.n_h / args.n_h_kv)}, i, i * job.attend.tile_q, 0};
  row.rows = std::min(job.attend.tile_q, args.n_q - row.q0);
  Bindings& bindings = worker.bindings;
  bindings.set(Variable::kB, args.first_b + static_cast<std::int32_t>(head.b));
  bindings.set(Variable::kH, static_cast<std::int32_t>(head.h));
  bindings.set(Variable::kI, i);
  bindings.set(Variable::kQ0, row.q0);
  bindings.set(Variable::kQ1, row.q0 + row.rows - 1);
  load_rows(args.q, job.dtype, head, row.q0, row.rows, job.head_dim, worker.q.data());
  worker.softmax.reset();
  return row;
}

void bind_keys(int j, int first, int last, Worker& worker) {
  worker.bindings.set(Variable::kJ, j);
  worker.bindings.set(Variable::kK0, first);
  worker.bindings.set(Variable::kK1, last);
}

std::uint8_t visit_tile(const Job& job, const WorkTile& row, bool masked, bool first,
                        Worker& worker) {
  const HostArgs& args = job.args;
  load_columns(args.k, job.dtype, row.head_kv, worker.keys, job.head_dim, job.attend.tile_k,
               worker.k_columns.data());
  compute_logits(job, row, masked, worker);
  const bool all_gated = decide_gate(job.attend, row.rows, first, worker);
  if (!all_gated) {
    load_rows(args.v, job.dtype, row.head_kv, worker.keys, job.head_dim_v, worker.v.data());
  }
  for (int r = 0; r < row.rows; ++r) {
    const bool gated = worker.gated[static_cast<std::size_t>(r)];
    if (gated && job.attend.gate->skips_exp) continue;
    const std::span<float> logits = worker.logits_of(r);
    worker.softmax.absorb(r, logits);
    if (gated) continue;
    if (args.v_scale.data) {
      worker.softmax.add_values_e4m3(r, logits, worker.v.data());
    } else {
      worker.softmax.add_values(r, logits, worker.v.data());
    }
  }
  return all_gated ? kGated : kVisited;
}

namespace {

/// Adds the sink, a logit without a value, to the denominator.
void absorb_sink(const Job& job, const WorkTile& row, int r, Worker& worker) {
  if (job.attend.sink.empty()) return;
  worker.bindings.set(Variable::kQ, row.q0 + r);
  float sink = evaluate(job.attend.sink, worker.bindings).f32;
  worker.softmax.absorb(r, {&sink, 1});
}

float lse_of(const Job& job, int r, const Worker& worker) {
  const float natural = worker.softmax.log_sum_exp(r);
  return job.attend.lse_base == LseBase::k2 ? natural * std::numbers::log2e_v<float> : natural;
}

}  // namespace

void write_results(const Job& job, const WorkTile& row, Worker& worker) {
  const HostArgs& args = job.args;
  for (int r = 0; r < row.rows; ++r) {
    absorb_sink(job, row, r, worker);
    if (job.attend.lse && args.lse.data) {
      *element_at<float>(args.lse, row.head, row.q0 + r) = lse_of(job, r, worker);
    }
    const std::span<const float> output = worker.softmax.output(r);
    std::copy(output.begin(), output.end(), worker.output.begin());
    if (args.v_scale.data) {
      const float* scale = element_at<float>(args.v_scale, row.head_kv, 0);
      for (std::size_t c = 0; c < output.size(); ++c) {
        worker.output[c] *= scale[c] / kLargestE4M3;
      }
    }
    store_row(args.o, job.dtype, row.head, row.q0 + r, job.head_dim_v, worker.output.data());
  }
}

}  // namespace lacuna::interpreter

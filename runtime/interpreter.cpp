#include "runtime/interpreter.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <system_error>
#include <thread>

#include "runtime/interpreter_softmax.hpp"
#include "runtime/interpreter_tensor.hpp"

namespace lacuna {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kWarpRows = 16;
constexpr std::uint8_t kVisited = 1, kGated = 2;

int tiles_of(int tokens, int tile) { return (tokens + tile - 1) / tile; }

/// What all threads share.
struct Job {
  const Attend& attend;
  const HostArgs& args;
  std::span<const ParamView> params;
  DType dtype;
  int head_dim;
  int q_tiles, k_tiles;
};

/// A tile of the attention map: its tokens that exist.
struct Tile {
  int i = 0, j = 0;
  int q0 = 0, rows = 0;
  int k0 = 0, columns = 0;
};

struct Visit {
  int j = 0;
  bool masked = false;  ///< some pair may be invisible
};

/// One thread's memory, and the expressions' view of where it is.
struct Worker {
  explicit Worker(const Job& job);

  std::span<float> logits_of(int r, int columns) {
    return std::span(logits).subspan(static_cast<std::size_t>(r) * tile_k,
                                     static_cast<std::size_t>(columns));
  }

  std::size_t tile_k;
  Bindings bindings;
  OnlineSoftmax softmax;
  std::vector<float> q, k_columns, v, logits;
  std::vector<Term> terms;
  std::vector<Visit> visits;
  std::vector<bool> gated;  ///< by row
};

Worker::Worker(const Job& job)
    : tile_k(static_cast<std::size_t>(job.attend.tile_k)),
      softmax(job.attend.tile_q, job.head_dim) {
  const auto tile_q = static_cast<std::size_t>(job.attend.tile_q);
  const auto d = static_cast<std::size_t>(job.head_dim);
  q.resize(tile_q * d);
  k_columns.resize(tile_k * d);
  v.resize(tile_k * d);
  logits.resize(tile_q * tile_k);
  gated.resize(tile_q);
  bindings.parameters = job.params;
  bindings.set(Variable::kNQ, job.args.n_q);
  bindings.set(Variable::kNK, job.args.n_k);
  bindings.set(Variable::kNI, job.q_tiles);
  bindings.set(Variable::kNJ, job.k_tiles);
}

/// An expression that is not given has the value `otherwise`.
bool holds(const Expr& expr, const Bindings& bindings, bool otherwise) {
  return expr.empty() ? otherwise : evaluate(expr, bindings).boolean;
}

Tile enter_tile(const Job& job, int i, int j, Bindings& bindings) {
  Tile tile{.i = i, .j = j, .q0 = i * job.attend.tile_q, .k0 = j * job.attend.tile_k};
  tile.rows = std::min(job.attend.tile_q, job.args.n_q - tile.q0);
  tile.columns = std::min(job.attend.tile_k, job.args.n_k - tile.k0);
  bindings.set(Variable::kI, i);
  bindings.set(Variable::kJ, j);
  bindings.set(Variable::kQ0, tile.q0);
  bindings.set(Variable::kQ1, tile.q0 + tile.rows - 1);
  bindings.set(Variable::kK0, tile.k0);
  bindings.set(Variable::kK1, tile.k0 + tile.columns - 1);
  return tile;
}

/// The caller's list of this row of tiles.
void read_list(const Job& job, HeadIndex head, int i, std::vector<Visit>& visits) {
  constexpr std::uint32_t kMaskFlag = std::uint32_t{1} << 31U;
  const int count = *element_at<const std::int32_t>(job.args.list_counts, head, i);
  for (int entry = 0; entry < std::min(count, job.k_tiles); ++entry) {
    const auto bits = static_cast<std::uint32_t>(
        *element_at<const std::int32_t>(job.args.list_indices, head, i, entry));
    const std::uint32_t j = bits & ~kMaskFlag;
    if (j < static_cast<std::uint32_t>(job.k_tiles)) {
      visits.push_back({static_cast<int>(j), (bits & kMaskFlag) != 0});
    }
  }
}

/// Fills `visits` in order of execution; returns the number of visible tiles.
int choose_visits(const Job& job, HeadIndex head, int i, Worker& worker) {
  const bool listed = job.args.list_indices.data != nullptr;
  int visible = 0;
  worker.visits.clear();
  for (int j = 0; j < job.k_tiles; ++j) {
    enter_tile(job, i, j, worker.bindings);
    if (!holds(job.attend.classifier.may, worker.bindings, true)) continue;
    ++visible;
    if (!listed) {
      worker.visits.push_back({j, !holds(job.attend.classifier.must, worker.bindings, true)});
    }
  }
  if (listed) read_list(job, head, i, worker.visits);
  if (job.attend.order == TileOrder::kDescending) {
    std::reverse(worker.visits.begin(), worker.visits.end());
  }
  return visible;
}

/// Mask and score of one row of logits. The score is asked for visible keys only.
void apply_expressions(const Job& job, const Tile& tile, int r, bool masked, Bindings& bindings,
                       std::span<float> logits) {
  const Attend& attend = job.attend;
  masked = masked && !attend.mask.empty();
  if (!masked && attend.score.empty()) return;
  bindings.set(Variable::kQ, tile.q0 + r);
  for (std::size_t c = 0; c < logits.size(); ++c) {
    bindings.set(Variable::kK, tile.k0 + static_cast<int>(c));
    if (masked && !evaluate(attend.mask, bindings).boolean) {
      logits[c] = -kInfinity;
    } else if (!attend.score.empty()) {
      bindings.set(Variable::kS, logits[c]);
      logits[c] = evaluate(attend.score, bindings).f32;
    }
  }
}

/// Q K^T, scaled, with score and mask.
void compute_logits(const Job& job, const Tile& tile, bool masked, Worker& worker) {
  const auto d = static_cast<std::size_t>(job.head_dim);
  for (int r = 0; r < tile.rows; ++r) {
    const float* query = worker.q.data() + static_cast<std::size_t>(r) * d;
    worker.terms.clear();
    for (std::size_t c = 0; c < d; ++c) {
      worker.terms.push_back({query[c], worker.k_columns.data() + c * worker.tile_k});
    }
    const std::span<float> logits = worker.logits_of(r, tile.columns);
    std::fill(logits.begin(), logits.end(), 0.0F);
    add_terms(logits, worker.terms);
    for (float& logit : logits) logit *= job.attend.scale;
    apply_expressions(job, tile, r, masked, worker.bindings, logits);
  }
}

/// Does the gate skip the tile for rows [begin, end)?
bool is_gated(const Gate& gate, const Tile& tile, int begin, int end, Worker& worker) {
  float tile_max = -kInfinity, gap = -kInfinity;
  for (int r = begin; r < end; ++r) {
    const float row_max = max_of(worker.logits_of(r, tile.columns));
    if (row_max == -kInfinity) continue;
    tile_max = std::max(tile_max, row_max);
    gap = std::max(gap, row_max - worker.softmax.running_max(r));
  }
  worker.bindings.set(Variable::kTileMax, tile_max);
  worker.bindings.set(Variable::kGap, gap);
  return holds(gate.skip, worker.bindings, false) && !holds(gate.exempt, worker.bindings, false);
}

/// Decides for every scope; returns whether all of them are gated.
bool decide_gate(const Attend& attend, const Tile& tile, bool first, Worker& worker) {
  worker.gated.assign(worker.gated.size(), false);
  if (!attend.gate || first) return false;
  const int scope_rows = attend.gate->scope == GateScope::kWarp ? kWarpRows : tile.rows;
  bool all = true;
  for (int begin = 0; begin < tile.rows; begin += scope_rows) {
    const int end = std::min(begin + scope_rows, tile.rows);
    const bool skip = is_gated(*attend.gate, tile, begin, end, worker);
    std::fill(worker.gated.begin() + begin, worker.gated.begin() + end, skip);
    all = all && skip;
  }
  return all;
}

/// Visits one tile; returns its code in the tile mask.
std::uint8_t visit_tile(const Job& job, HeadIndex head_kv, const Tile& tile, bool masked,
                        bool first, Worker& worker) {
  const HostArgs& args = job.args;
  load_columns(args.k, job.dtype, head_kv, tile.k0, tile.columns, job.head_dim, job.attend.tile_k,
               worker.k_columns.data());
  compute_logits(job, tile, masked, worker);
  const bool all_gated = decide_gate(job.attend, tile, first, worker);
  if (!all_gated) {
    load_rows(args.v, job.dtype, head_kv, tile.k0, tile.columns, job.head_dim, worker.v.data());
  }
  for (int r = 0; r < tile.rows; ++r) {
    const bool gated = worker.gated[static_cast<std::size_t>(r)];
    if (gated && job.attend.gate->skips_exp) continue;
    const std::span<float> logits = worker.logits_of(r, tile.columns);
    worker.softmax.absorb(r, logits);
    if (!gated) worker.softmax.add_values(r, logits, worker.v.data());
  }
  return all_gated ? kGated : kVisited;
}

void write_results(const Job& job, HeadIndex head, const Tile& tile, Worker& worker) {
  for (int r = 0; r < tile.rows; ++r) {
    if (job.attend.lse && job.args.lse.data) {
      *element_at<float>(job.args.lse, head, tile.q0 + r) = worker.softmax.log_sum_exp(r);
    }
    store_row(job.args.o, job.dtype, head, tile.q0 + r, job.head_dim,
              worker.softmax.output(r).data());
  }
}

void clear_report(const Job& job, HeadIndex head, int i) {
  if (!job.args.tile_mask.data) return;
  for (int j = 0; j < job.k_tiles; ++j) {
    *element_at<std::uint8_t>(job.args.tile_mask, head, i, j) = 0;
  }
}

void write_counts(const HostTensor& counts, HeadIndex head, int i, int visible, int visited,
                  int gated) {
  if (!counts.data) return;
  *element_at<std::int32_t>(counts, head, i, 0) = visible;
  *element_at<std::int32_t>(counts, head, i, 1) = visited;
  *element_at<std::int32_t>(counts, head, i, 2) = gated;
}

/// All key tiles of one tile of queries.
void run_row_of_tiles(const Job& job, HeadIndex head, int i, Worker& worker) {
  const HostArgs& args = job.args;
  const HeadIndex head_kv{head.b, head.h / (args.n_h / args.n_h_kv)};
  worker.bindings.set(Variable::kB, static_cast<std::int32_t>(head.b));
  worker.bindings.set(Variable::kH, static_cast<std::int32_t>(head.h));
  const int visible = choose_visits(job, head, i, worker);
  const Tile rows = enter_tile(job, i, 0, worker.bindings);
  load_rows(args.q, job.dtype, head, rows.q0, rows.rows, job.head_dim, worker.q.data());
  worker.softmax.reset();
  clear_report(job, head, i);

  int gated = 0;
  bool first = true;
  for (const Visit& visit : worker.visits) {
    const Tile tile = enter_tile(job, i, visit.j, worker.bindings);
    const std::uint8_t code = visit_tile(job, head_kv, tile, visit.masked, first, worker);
    if (args.tile_mask.data) *element_at<std::uint8_t>(args.tile_mask, head, i, visit.j) = code;
    gated += code == kGated ? 1 : 0;
    first = false;
  }
  write_results(job, head, rows, worker);
  write_counts(args.counts, head, i, visible, static_cast<int>(worker.visits.size()), gated);
}

/// Takes rows of tiles until none is left.
void work(const Job& job, std::atomic<std::int64_t>& next, Worker& worker) {
  const std::int64_t total = std::int64_t{job.args.n_b} * job.args.n_h * job.q_tiles;
  for (std::int64_t item = next++; item < total; item = next++) {
    const std::int64_t head = item / job.q_tiles;
    run_row_of_tiles(job, {head / job.args.n_h, head % job.args.n_h},
                     static_cast<int>(item % job.q_tiles), worker);
  }
}

}  // namespace

void run_interpreted(const Program& program, const HostArgs& args) {
  const Attend& attend = attend_of(program);
  const Job job{attend,
                args,
                {args.params, program.params.size()},
                program.dtype,
                program.head_dim,
                tiles_of(args.n_q, attend.tile_q),
                tiles_of(args.n_k, attend.tile_k)};
  const std::int64_t rows_of_tiles = std::int64_t{args.n_b} * args.n_h * job.q_tiles;
  const auto wanted = args.threads > 0 ? static_cast<unsigned>(args.threads)
                                       : std::max(1U, std::thread::hardware_concurrency());
  const auto count =
      static_cast<std::size_t>(std::clamp<std::int64_t>(rows_of_tiles, 1, std::int64_t{wanted}));
  std::vector<Worker> workers(count, Worker(job));

  std::atomic<std::int64_t> next{0};
  std::vector<std::jthread> threads;
  try {
    for (std::size_t t = 1; t < count; ++t) {
      threads.emplace_back([&, t] { work(job, next, workers[t]); });
    }
  } catch (const std::system_error&) {
    // No more threads to be had: those that run, and this one, do the work.
  }
  work(job, next, workers[0]);
}

}  // namespace lacuna

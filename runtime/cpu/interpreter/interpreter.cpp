#include "runtime/cpu/interpreter/interpreter.hpp"

#include <algorithm>
#include <numeric>

#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/base/whole_tiles.hpp"
#include "runtime/cpu/interpreter/gather.hpp"
#include "runtime/cpu/interpreter/tile.hpp"

namespace lacuna {
namespace {

using namespace interpreter;

/// Makes the keys of tile j those at hand.
void enter_tile(const Job& job, int j, Worker& worker) {
  const int first = j * job.attend.tile_k;
  const int end = std::min(first + job.attend.tile_k, job.args.n_k);
  worker.keys.resize(static_cast<std::size_t>(end - first));
  std::iota(worker.keys.begin(), worker.keys.end(), first);
  bind_keys(j, first, end - 1, worker);
}

enum class TileClass : std::uint8_t { kEmpty, kPartial, kFull };

/// Of the keys that expressions are told of: what their bounds say, or with Attend::pairs, where
/// these leave it open, their pairs.
TileClass classify(const Job& job, const WorkTile& row, int first, int last, Bindings& bindings) {
  const Attend& attend = job.attend;
  if (!holds(attend.classifier.may, bindings, true)) return TileClass::kEmpty;
  if (holds(attend.classifier.must, bindings, true)) return TileClass::kFull;
  if (!attend.pairs) return TileClass::kPartial;
  bool some = false, all = true;
  for (int q = row.q0; q < row.q0 + row.rows; ++q) {
    bindings.set(Variable::kQ, q);
    for (int k = first; k <= last; ++k) {
      bindings.set(Variable::kK, k);
      const bool visible = evaluate(attend.mask, bindings).boolean;
      some = some || visible;
      all = all && visible;
      if (some && !all) return TileClass::kPartial;
    }
  }
  return all ? TileClass::kFull : TileClass::kEmpty;
}

/// The list of this work tile.
void read_list(const Job& job, const WorkTile& row, std::vector<Visit>& visits) {
  constexpr std::uint32_t kMaskFlag = std::uint32_t{1} << 31U;
  const int count = *element_at<const std::int32_t>(job.args.list_counts, row.head, row.i);
  for (int entry = 0; entry < std::min(count, job.k_tiles); ++entry) {
    const auto bits = static_cast<std::uint32_t>(
        *element_at<const std::int32_t>(job.args.list_indices, row.head, row.i, entry));
    const std::uint32_t j = bits & ~kMaskFlag;
    if (j < static_cast<std::uint32_t>(job.k_tiles)) {
      visits.push_back({static_cast<int>(j), (bits & kMaskFlag) != 0});
    }
  }
}

/// Fills `visits` in order of execution; returns the number of visible tiles.
int choose_visits(const Job& job, const WorkTile& row, Worker& worker) {
  const bool listed = job.args.list_indices.data != nullptr;
  int visible = 0;
  worker.visits.clear();
  std::vector<TileClass> classes;
  for (int j = 0; j < job.k_tiles; ++j) {
    const int first = j * job.attend.tile_k;
    const int last = std::min(first + job.attend.tile_k, job.args.n_k) - 1;
    bind_keys(j, first, last, worker);
    classes.push_back(classify(job, row, first, last, worker.bindings));
    if (classes.back() == TileClass::kEmpty) continue;
    ++visible;
    if (!listed) worker.visits.push_back({j, classes.back() != TileClass::kFull});
  }
  if (listed) read_list(job, row, worker.visits);
  if (listed && job.attend.pairs) {
    std::erase_if(worker.visits, [&](const Visit& visit) {
      return classes[static_cast<std::size_t>(visit.j)] == TileClass::kEmpty;
    });
  }
  if (job.attend.order == TileOrder::kDescending) {
    std::reverse(worker.visits.begin(), worker.visits.end());
  }
  return visible;
}

void clear_report(const Job& job, const WorkTile& row) {
  if (!job.args.tile_mask.data) return;
  for (int j = 0; j < job.k_tiles; ++j) {
    *element_at<std::uint8_t>(job.args.tile_mask, row.head, row.i, j) = 0;
  }
}

Counts visit_tiles(const Job& job, const WorkTile& row, Worker& worker) {
  Counts counts;
  counts.visible = choose_visits(job, row, worker);
  clear_report(job, row);
  for (const Visit& visit : worker.visits) {
    enter_tile(job, visit.j, worker);
    const std::uint8_t code = visit_tile(job, row, visit.masked, counts.visited == 0, worker);
    if (job.args.tile_mask.data) {
      *element_at<std::uint8_t>(job.args.tile_mask, row.head, row.i, visit.j) = code;
    }
    counts.gated += code == kGated ? 1 : 0;
    ++counts.visited;
  }
  return counts;
}

void write_counts(const HostTensor& tensor, const WorkTile& row, const Counts& counts) {
  if (!tensor.data) return;
  *element_at<std::int32_t>(tensor, row.head, row.i, 0) = counts.visible;
  *element_at<std::int32_t>(tensor, row.head, row.i, 1) = counts.visited;
  *element_at<std::int32_t>(tensor, row.head, row.i, 2) = counts.gated;
}

/// All keys of one tile of queries.
void run_work_tile(const Job& job, HeadIndex head, int i, Worker& worker) {
  const WorkTile row = begin_row(job, head, i, worker);
  const Counts counts =
      job.attend.columns >= 0 ? visit_columns(job, row, worker) : visit_tiles(job, row, worker);
  write_results(job, row, worker);
  write_counts(job.args.counts, row, counts);
}

}  // namespace

void run_interpreted(const Program& program, const HostArgs& args) {
  const Attend& attend = attend_of(program);
  const Job job{attend,
                args,
                {args.params, program.params.size()},
                program.dtype,
                softmax_scale(args, attend.scale),
                program.head_dim,
                value_dim(program),
                ceil_div(args.n_q, attend.tile_q),
                ceil_div(args.n_k, attend.columns >= 0 ? attend.keep_k : attend.tile_k)};
  const std::int64_t work_tiles = std::int64_t{args.n_b} * args.n_h * job.q_tiles;
  std::vector<Worker> workers(worker_count(args.threads, work_tiles), Worker(job));
  parallel_for(args.threads, workers.size(), work_tiles,
               [&](std::int64_t item, std::size_t worker) {
                 const std::int64_t head = item / job.q_tiles;
                 run_work_tile(job, {head / args.n_h, head % args.n_h},
                               static_cast<int>(item % job.q_tiles), workers[worker]);
               });
}

}  // namespace lacuna

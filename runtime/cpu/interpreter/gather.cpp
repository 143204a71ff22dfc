#include "runtime/cpu/interpreter/gather.hpp"

#include <algorithm>

namespace lacuna::interpreter {
namespace {

/// The row's bits, 32 columns in each word.
const std::uint32_t* bits_of(const Job& job, const WorkTile& row) {
  const std::int64_t words = (job.k_tiles + 31) / 32;
  const std::int64_t rows = (row.head.b * job.args.n_h + row.head.h) * job.q_tiles + row.i;
  return static_cast<const std::uint32_t*>(job.args.columns.data) + rows * words;
}

/// Fills `gathered` with the keys of the kept columns.
Counts choose_columns(const Job& job, const WorkTile& row, Worker& worker) {
  const std::uint32_t* bits = bits_of(job, row);
  const int keep_k = job.attend.keep_k;
  Counts counts;
  worker.gathered.clear();
  for (int j = 0; j < job.k_tiles; ++j) {
    const int begin = j * keep_k, end = std::min(begin + keep_k, job.args.n_k);
    bind_keys(j, begin, end - 1, worker);
    counts.visible += holds(job.attend.classifier.may, worker.bindings, true) ? 1 : 0;
    const bool kept = is_kept(bits, j);
    if (job.args.tile_mask.data) {
      *element_at<std::uint8_t>(job.args.tile_mask, row.head, row.i, j) = kept ? kVisited : 0;
    }
    if (!kept) continue;
    ++counts.visited;
    for (int key = begin; key < end; ++key) worker.gathered.push_back(key);
  }
  return counts;
}

}  // namespace

Counts visit_columns(const Job& job, const WorkTile& row, Worker& worker) {
  const Counts counts = choose_columns(job, row, worker);
  for (std::size_t begin = 0; begin < worker.gathered.size(); begin += worker.tile_k) {
    const std::size_t end = std::min(begin + worker.tile_k, worker.gathered.size());
    const auto first = worker.gathered.begin();
    worker.keys.assign(first + static_cast<std::ptrdiff_t>(begin),
                       first + static_cast<std::ptrdiff_t>(end));
    // Where all keys between the first and the last are visible, the gathered ones are.
    bind_keys(static_cast<int>(begin / worker.tile_k), worker.keys.front(), worker.keys.back(),
              worker);
    const bool masked = !holds(job.attend.classifier.must, worker.bindings, true);
    visit_tile(job, row, masked, begin == 0, worker);
  }
  return counts;
}

}  // namespace lacuna::interpreter

#include "runtime/launch/tensors/optional_tensors.hpp"

#include <string>
#include <utility>

#include "runtime/base/whole_tiles.hpp"

namespace lacuna {

void check_scales(const Extents& extents, Mismatches& mismatches, BoundLaunch& bound) {
  const std::pair<const char*, TensorRole> scales[] = {{"k_scale", TensorRole::kKScale},
                                                       {"v_scale", TensorRole::kVScale}};
  for (const auto& [name, role] : scales) {
    BoundTensor& tensor = bound.tensors[static_cast<std::size_t>(role)];
    const std::int64_t expected[] = {extents.k_entries, extents.heads_kv};
    if (tensor.data == nullptr) continue;
    for (int d = 0; d < 2; ++d) {
      if (tensor.extent[d] == 1) {
        tensor.stride[d] = 0;
      } else if (expected[d] != kAnyExtent && tensor.extent[d] != expected[d]) {
        mismatches.argument(name, std::string(d == 0 ? "entries" : "heads_kv") + " expected 1 or " +
                                      std::to_string(expected[d]) + ", got " +
                                      std::to_string(tensor.extent[d]));
      }
    }
  }
}

void check_summaries(const Extents& extents, Mismatches& mismatches, const BoundLaunch& bound) {
  const BoundTensor& kept = bound[TensorRole::kKSummaries];
  const BoundTensor &slots = bound[TensorRole::kSummarySlots],
                    &known = bound[TensorRole::kSummarised];
  if (mismatches.any() || (kept.data == nullptr && slots.data == nullptr && known.data == nullptr))
    return;
  if (kept.data == nullptr) {
    mismatches.argument("k_summaries",
                        "expected a tensor beside summarised and summary_slots, "
                        "which say what it holds, got null");
    return;
  }
  if (known.data == nullptr)
    mismatches.argument("summarised",
                        "expected i32 [batch], how many keys of each sequence "
                        "k_summaries has already, got null");
  const int tile = mismatches.contract().summary_tile;
  const std::int64_t needed = ceil_div(extents.n_k, tile);
  if (kept.extent[2] < needed)
    mismatches.argument("k_summaries", "summary_tiles expected at least " + std::to_string(needed) +
                                           " (" + std::to_string(extents.n_k) +
                                           " keys in tiles of " + std::to_string(tile) + "), got " +
                                           std::to_string(kept.extent[2]));
  if (slots.data == nullptr && kept.extent[0] < extents.batch)
    mismatches.argument("k_summaries", "slots expected at least " + std::to_string(extents.batch) +
                                           ", one for each entry where there are no "
                                           "summary_slots, got " +
                                           std::to_string(kept.extent[0]));
}

}  // namespace lacuna

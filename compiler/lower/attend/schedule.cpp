#include "compiler/lower/attend/schedule.hpp"

#include "compiler/lower/launch_text.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

constexpr int kSequenceBytes = 64;  ///< of ScheduledSequence in templates/args/sequence_args.cuh
constexpr int kSequenceMapBytes = 4 * 128;
/// Items of split work tiles that there is room for, on each multiprocessor: of few queries, which
/// have small results, and of many.
constexpr int kItemsOfFew = 8, kItemsOfMany = 2;

/// Rows of queries that share keys, from which on a launch uses all places of values. Many rows
/// read keys from L2, and the place more hides the way from there. Fewer take keys from memory,
/// which two work tiles read once only while they stay side by side, and with the place more they
/// do not.
constexpr int kRowsOfAllPlaces = 2048;

/// Query heads whose rows a work tile has: all of a KV head, or one.
std::string tile_heads(const Plan& plan) { return packs_heads(plan) ? "(n_h // n_h_kv)" : "1"; }

/// Heads, or KV heads, that have work tiles of their own.
std::string heads_of_tiles(const Plan& plan) { return packs_heads(plan) ? "n_h_kv" : "n_h"; }

constexpr const char* kHeadsOfKvHead = "n_h // n_h_kv";

bool has_gate(const Plan& plan) { return attend_of(plan.program).gate.has_value(); }

/// Of a warpgroup of packed heads: rows of each. With a gate an aligned group within a warp: as
/// many as the largest power of two, up to 16, of which there is room for all heads.
std::string rows_of_head(const Plan& plan) {
  if (!has_gate(plan)) return std::to_string(kWarpgroupRows) + " // (" + kHeadsOfKvHead + ")";
  std::string rows = std::to_string(kWarpRows);
  for (int left = kWarpRows; left > 0; left /= 2) {
    const int less = left > 1 ? left / 2 : 1;  // with more heads than there is room for
    rows += " - " + std::to_string(less) + " * min(max(" + kHeadsOfKvHead + " - " +
            std::to_string(kWarpgroupRows / left) + ", 0), 1)";
  }
  return rows;
}

/// Queries of a warpgroup: its rows are shared out among the heads of the work tile. The second
/// attend of a plan takes no sequences where there are more heads than rows.
std::string group_queries(const Plan& plan) {
  if (plan.is_packed) return "max(" + rows_of_head(plan) + ", 1)";
  return std::to_string(kWarpgroupRows) + " // " + tile_heads(plan);
}

/// Queries of a work tile.
std::string tile_queries(const Plan& plan) {
  return "(" + std::to_string(plan.attend.warpgroups.value) + " * (" + group_queries(plan) + "))";
}

std::string partial_queries(const Plan& plan) { return "min(" + tile_queries(plan) + ", n_q)"; }

std::string partials(const Plan& plan) {
  const int split = plan.attend.split_kv.value;
  if (split == 1) return "0";
  if (split > 1) {
    const std::string tile = tile_queries(plan);
    return std::to_string(split) + " * n_sequences * " + heads_of_tiles(plan) + " * ((n_q + " +
           tile + " - 1) // " + tile + ")";
  }
  const std::string rows = "max(n_q * " + tile_heads(plan) + ", 1)";
  return "sm_count * max(" + std::to_string(kItemsOfMany) + ", min(" + std::to_string(kItemsOfFew) +
         ", " + std::to_string(kItemsOfFew * kWarpgroupRows) + " // " + rows + "))";
}

/// Of the values' ring.
std::string value_places(const Plan& plan) {
  const int fewest = plan.attend.stages.value, most = plan.attend.value_stages.value;
  if (most <= fewest) return std::to_string(most);
  const std::string rows =
      "n_q // max(" + std::to_string(kRowsOfAllPlaces) + " // " + tile_heads(plan) + ", 1)";
  return "(" + std::to_string(fewest) + " + " + std::to_string(most - fewest) + " * min(" + rows +
         ", 1))";
}

}  // namespace

std::vector<Slot> schedule_slots(const Plan& plan, const std::string& prefix) {
  const std::string items = partials(plan);
  const std::string rows = tile_heads(plan) + " * " + partial_queries(plan);
  const std::string warps = std::to_string(plan.attend.warps.value);
  const auto slot = [&](const char* name, std::string size, bool cleared = false) {
    return Slot{prefix + name, std::move(size), cleared, SlotRegion::kBatch};
  };
  return {slot("next_row", "1", true),
          slot("sequences", units("1", "n_sequences", kSequenceBytes)),
          slot("first_items", units("1", "n_sequences + 1", kWordBytes)),
          slot("maps", units("1", "n_sequences", kSequenceMapBytes)),
          slot("partial_o", units("(" + items + ")", rows, value_dim(plan.program) * kWordBytes)),
          slot("partial_lse", units("(" + items + ")", rows, kWordBytes)),
          slot("arrivals", units("1", "(" + items + ") * " + warps, kWordBytes))};
}

std::vector<NamedSize> schedule_sizes(const Plan& plan, const std::string& prefix) {
  return {{prefix + "group_queries", group_queries(plan)},
          {prefix + "group_inverse", "65535 // (" + group_queries(plan) + ") + 1"},
          {prefix + "partial_queries", partial_queries(plan)},
          {prefix + "partials", partials(plan)},
          {prefix + "sm_count", "sm_count"},
          {prefix + "value_places", value_places(plan)},
          {prefix + "value_places_inverse", "2147483647 // " + value_places(plan) + " + 1"}};
}

std::string most_few_queries(const Plan& plan) {
  const int warpgroups = has_gate(plan) ? 1 : plan.attend.warpgroups.value;
  const bool has_whole_rows = plan.packed->split_kv.value == 1;
  return std::to_string(warpgroups) + " * (" + rows_of_head(plan) + ") * min(" + kHeadsOfKvHead +
         " - 1, 1)" + (has_whole_rows ? " * min(max(n_sequences * n_h - sm_count, 0), 1)" : "");
}

}  // namespace lacuna

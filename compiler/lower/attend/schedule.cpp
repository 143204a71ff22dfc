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

/// Queries of a warpgroup: its rows are shared out among the heads of the work tile. The second
/// attend of a plan takes no sequences where there are more heads than rows.
std::string group_queries(const Plan& plan) {
  const std::string queries = std::to_string(kWarpgroupRows) + " // " + tile_heads(plan);
  return has_kept_tiles(plan) ? "max(" + queries + ", 1)" : queries;
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
  const std::string heads = "n_h // n_h_kv";
  return std::to_string(plan.attend.warpgroups.value) + " * (" + std::to_string(kWarpgroupRows) +
         " // (" + heads + ")) * min(" + heads + " - 1, 1)";
}

}  // namespace lacuna

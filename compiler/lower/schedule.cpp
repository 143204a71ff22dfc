// schedule: for a batch of sequences in the wgmma family, what its blocks find of lengths that lie
// on the device: items of work, their order, and tensor maps that end where a sequence ends.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

constexpr int kSequenceBytes = 32;  ///< of ScheduledSequence in templates/args/sequence_args.cuh
constexpr int kSequenceMapBytes = 3 * 128;
/// Items of split work tiles that there is room for, on each multiprocessor: of few queries, which
/// have small results, and of many.
constexpr int kItemsOfFew = 8, kItemsOfMany = 2;

constexpr const char* kHeadsOfGroup = "(n_h // n_h_kv)";

/// Queries of a warpgroup, whose rows are those of all heads of a KV head.
std::string group_queries() { return std::to_string(kWarpgroupRows) + " // " + kHeadsOfGroup; }

/// Queries of a work tile.
std::string tile_queries(const Plan& plan) {
  return "(" + std::to_string(plan.attend.warpgroups.value) + " * (" + group_queries() + "))";
}

std::string partial_queries(const Plan& plan) { return "min(" + tile_queries(plan) + ", n_q)"; }

std::string partials(const Plan& plan) {
  const int split = plan.attend.split_kv.value;
  if (split == 1) return "0";
  if (split > 1) {
    const std::string tile = tile_queries(plan);
    return std::to_string(split) + " * n_b * n_h_kv * ((n_q + " + tile + " - 1) // " + tile + ")";
  }
  const std::string rows = std::string("max(n_q * ") + kHeadsOfGroup + ", 1)";
  return "sm_count * max(" + std::to_string(kItemsOfMany) + ", min(" + std::to_string(kItemsOfFew) +
         ", " + std::to_string(kItemsOfFew * kWarpgroupRows) + " // " + rows + "))";
}

std::vector<Slot> schedule_slots(const Plan& plan) {
  const std::string items = partials(plan);
  const std::string rows = std::string(kHeadsOfGroup) + " * " + partial_queries(plan);
  const std::string warps = std::to_string(plan.attend.warps.value);
  return {{"next_row", "1"},
          {"sequences", units("1", "n_b", kSequenceBytes)},
          {"first_items", units("1", "n_b + 1", kWordBytes)},
          {"maps", units("1", "n_b", kSequenceMapBytes)},
          {"partial_o", units("(" + items + ")", rows, plan.program.head_dim * kWordBytes)},
          {"partial_lse", units("(" + items + ")", rows, kWordBytes)},
          {"arrivals", units("1", "(" + items + ") * " + warps, kWordBytes)}};
}

}  // namespace

Kernels lower_schedule(const Plan& plan) {
  if (!packs_heads(plan)) return {};
  const AttendPlan& chosen = plan.attend;
  std::vector<ConfigField> config{integer("kTileK", chosen.tile_k, "/tile/k"),
                                  integer("kWarpgroups", chosen.warpgroups, "/tile/q"),
                                  integer("kSplitItems", chosen.split_kv, "/tile/split_kv")};
  return {{.name = "schedule",
           .because = "lengths of sequences lie on the device",
           .header = "pipeline/schedule_sequences.cuh",
           .function = "schedule_sequences",
           .config = std::move(config),
           .grid = {ceil_divide("n_b", kBlockWarps), "a warp for each sequence"},
           .threads = block_threads(),
           .smem_bytes = no_smem(),
           .operands = {"q", "k", "v"},
           .slots = schedule_slots(plan),
           .sizes = {{"group_queries", group_queries()},
                     {"partial_queries", partial_queries(plan)},
                     {"partials", partials(plan)},
                     {"sm_count", "sm_count"}}}};
}

}  // namespace lacuna

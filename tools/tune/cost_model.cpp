#include "tools/tune/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "compiler/target/limits.hpp"

namespace lacuna::tune {
namespace {

// Of one multiprocessor, a clock. The rates are those of mma.sync with f32 sums, of which Hopper
// and datacentre Blackwell reach about two thirds.
double mma_flops_per_cycle(const Target& target) {
  if (target.compute_capability == 80) return 2048;
  if (target.compute_capability >= 90 && target.compute_capability <= 100) return 2700;
  return 1024;
}
/// Of wgmma beside its softmax; one block has a multiprocessor to itself.
constexpr double kWgmmaFlopsPerCycle = 3300;
constexpr double kL2BytesPerCycle = 64;
/// Barriers, the softmax of the rows, addresses: what a tile costs however small it is.
constexpr double kCyclesOfTile = 250;
constexpr double kCyclesOfBlock = 2500;
/// Of the kernel that merges the results of split work tiles, besides what it reads.
constexpr double kCyclesOfCombine = 6000;
constexpr double kWarpsForFullRate = 8;

// Of one core with 256-bit vectors or wider.
constexpr double kCpuFlopsPerCycle = 32;
constexpr double kCpuCyclesOfTile = 400;
constexpr double kCpuCyclesOfRow = 20000;
constexpr double kL1Bytes = 32 << 10, kL2Bytes = 1 << 20;
constexpr double kL2Penalty = 1.1, kMemoryPenalty = 1.5;
/// Register blocks of the CPU's products: smaller tiles leave part of them empty.
constexpr double kRegisterRows = 16, kRegisterColumns = 32;

/// A guess this much above the best is not worth a measurement.
constexpr double kGpuHopeless = 1.7, kCpuHopeless = 1.8;

double tiles_of(int tokens, int tile) { return std::ceil(static_cast<double>(tokens) / tile); }

double work_tiles_of(const LaunchShape& shape, int tile_q) {
  return static_cast<double>(shape.n_b) * shape.n_h * tiles_of(shape.n_q, tile_q);
}

/// Tiles that a block visits of its row: a tile at the edge of what is kept is visited whole.
double visited_tiles(const LaunchShape& shape, const Config& config, double density) {
  const double all = tiles_of(shape.n_k, config.tile_k);
  const double of_row = density >= 1 ? all : std::min(all, density * all + 0.5);
  return config.split_kv > 1 ? std::ceil(of_row / config.split_kv) : of_row;
}

/// Partial results are written and read again.
double cycles_to_combine(const LaunchShape& shape, int split_kv, int head_dim,
                         const Machine& machine) {
  if (split_kv == 1) return 0;
  const double queries = static_cast<double>(shape.n_b) * shape.n_h * shape.n_q;
  const double bytes = 2 * queries * head_dim * split_kv * sizeof(float);
  return kCyclesOfCombine + bytes / (kL2BytesPerCycle * machine.processors);
}

TileShape tile_shape(const Candidate& candidate) {
  const Attend& attend = attend_of(candidate.plan.program);
  // Work tiles that a block takes together count as one.
  return {.tile_q = candidate.config.tile_q * candidate.plan.attend.work_tiles.value,
          .tile_k = candidate.config.tile_k,
          .stages = candidate.config.stages,
          .head_dim = candidate.plan.program.head_dim,
          .votes = attend.gate && attend.gate->scope == GateScope::kTile,
          .values_on_demand = attend.gate && attend.gate->skips_v_load,
          .qk_bits = attend.q_scale >= 0 ? 8 : 16,
          .v_bits = attend.v_scale >= 0 ? 8 : 16};
}

/// How the blocks of a candidate share a multiprocessor, and what it computes with them.
struct Residency {
  Occupancy fit;
  double flops_per_cycle = 0;
};

Residency residency_of(const Candidate& candidate, const TileShape& tile, const Target& target) {
  const AttendPlan& plan = candidate.plan.attend;
  if (plan.family.value == AttendFamily::kWgmma)
    return {{plan.blocks_per_sm.value, "registers"}, kWgmmaFlopsPerCycle};
  return {occupancy(tile, target), mma_flops_per_cycle(target)};
}

Cost gpu_cost(const Candidate& candidate, const Machine& machine, const LaunchShape& shape,
              double density) {
  const TileShape tile = tile_shape(candidate);
  const auto [fit, flops_per_cycle] = residency_of(candidate, tile, machine.target);
  const double resident_blocks = std::max(1, fit.blocks);
  const double warps = resident_blocks * tile.warps();
  const double flops = 4.0 * tile.tile_q * tile.tile_k * tile.head_dim;
  // Each byte of 8-bit operands is multiplied at twice the rate of 16-bit ones.
  const double width = (tile.qk_bits + tile.v_bits) / 32.0;
  const double busy = std::min(1.0, warps / kWarpsForFullRate);
  const double math = flops * width * resident_blocks / flops_per_cycle / busy;
  const double bytes = tile.tile_k * tile.head_dim * (tile.qk_bits + tile.v_bits) / 8.0;
  const double load = bytes * resident_blocks / kL2BytesPerCycle;
  // Blocks of a multiprocessor hide each other's fixed costs, and stages a part of the loads.
  const double fixed = kCyclesOfTile * (1 + 1.0 / resident_blocks) / 2;
  const double hidden = 1 - 1.0 / (tile.stages * resident_blocks);
  const double of_tile = std::max(math, load) + (1 - hidden) * std::min(math, load) * 0.5 + fixed;
  const double of_block =
      visited_tiles(shape, candidate.config, density) * of_tile + kCyclesOfBlock;
  const int split_kv = candidate.config.split_kv;
  const double blocks = work_tiles_of(shape, tile.tile_q) * split_kv;
  const double waves = std::ceil(blocks / (resident_blocks * machine.processors));
  const double combine = cycles_to_combine(shape, split_kv, tile.head_dim, machine);
  Cost cost{waves * of_block + combine, math >= load ? "arithmetic" : "loads of keys and values"};
  cost.limited_by += ", " + std::to_string(fit.blocks) + " blocks an SM (" + fit.limited_by + ")";
  return cost;
}

Cost cpu_cost(const Candidate& candidate, const Machine& machine, const LaunchShape& shape,
              double density) {
  const Config& config = candidate.config;
  const double d = candidate.plan.program.head_dim;
  const double q = std::ceil(config.tile_q / kRegisterRows) * kRegisterRows;
  const double k = std::ceil(config.tile_k / kRegisterColumns) * kRegisterColumns;
  constexpr double kFloat = sizeof(float);
  const double of_keys = 2 * config.tile_k * d * kFloat;
  const double of_rows = config.tile_q * (2 * d + config.tile_k) * kFloat;
  double penalty = 1;
  std::string limited_by = "arithmetic";
  if (of_keys > kL1Bytes) penalty = kL2Penalty;
  if (of_keys + of_rows > kL2Bytes) penalty = kMemoryPenalty, limited_by = "tiles beyond the L2";
  const double of_tile = 4 * q * k * d / kCpuFlopsPerCycle * penalty + kCpuCyclesOfTile;
  const double of_row = visited_tiles(shape, config, density) * of_tile + kCpuCyclesOfRow;
  const double workers = std::min(config.threads, machine.cores);
  const double rounds = std::ceil(work_tiles_of(shape, config.tile_q) / workers);
  if (workers < machine.cores) limited_by = "idle cores";
  return {rounds * of_row, limited_by};
}

/// How many threads the system really grants is nothing that a model could know.
bool is_usual_but_for_threads(const Space& space, const Candidate& candidate) {
  Config config = candidate.config;
  config.threads = space.candidates.front().config.threads;
  return config == space.candidates.front().config;
}

std::string reason_of(const Cost& cost, double best, const Machine& machine) {
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.2f", cost.cycles / best);
  return "guessed at " + std::string(ratio) + " times the best on " + machine.target.name +
         ", limited by " + cost.limited_by;
}

}  // namespace

Cost estimate_cost(const Candidate& candidate, const Machine& machine, const LaunchShape& shape,
                   double density) {
  return machine.target.kind == TargetKind::kCuda ? gpu_cost(candidate, machine, shape, density)
                                                  : cpu_cost(candidate, machine, shape, density);
}

Ordered order_by_cost(const Space& space, const Machine& machine, const LaunchShape& shape,
                      double density) {
  Ordered ordered;
  if (space.candidates.empty()) return ordered;
  std::vector<Cost> costs;
  for (const Candidate& candidate : space.candidates)
    costs.push_back(estimate_cost(candidate, machine, shape, density));
  const double best = std::ranges::min_element(costs, {}, &Cost::cycles)->cycles;
  const double limit =
      best * (machine.target.kind == TargetKind::kCuda ? kGpuHopeless : kCpuHopeless);
  for (const Candidate& candidate : space.candidates) {
    const Cost& cost = costs[static_cast<std::size_t>(candidate.id)];
    if (is_usual_but_for_threads(space, candidate) || cost.cycles <= limit) {
      ordered.ids.push_back(candidate.id);
    } else {
      ordered.pruned.push_back({candidate.id, reason_of(cost, best, machine)});
    }
  }
  std::stable_sort(ordered.ids.begin() + 1, ordered.ids.end(), [&costs](int a, int b) {
    return costs[static_cast<std::size_t>(a)].cycles < costs[static_cast<std::size_t>(b)].cycles;
  });
  return ordered;
}

}  // namespace lacuna::tune

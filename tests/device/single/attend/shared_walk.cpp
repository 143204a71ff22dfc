#include "tests/device/single/attend/shared_walk.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "pipeline/two_list_walk.cuh"

using single::SharedWalkShape;

template <SharedWalkShape kShape>
struct Config {
  static constexpr int kWorkTiles = 2;
  static constexpr int kTileQ = 64;
  static constexpr int kTileK = single::kSharedTileKeys;
  static constexpr int kStepKeys = kShape.step_tiles * kTileK;
  static constexpr bool kDescending = kShape.descending;
  static constexpr lacuna::GateScope kGateScope =
      kShape.has_gate ? lacuna::GateScope::kWarpgroup : lacuna::GateScope::kNone;
};

struct Args {
  lacuna::AttendArgs attend;
  single::SharedSteps steps;
};

template <SharedWalkShape kShape>
void walk(const Args& args) {
  if (lacuna::warp_index() != 0) return;
  using lacuna::SharedTile;
  const single::SharedSteps& out = args.steps;
  const auto first = lacuna::work_tile<Config<kShape>>(args.attend, out.head, out.first_row);
  lacuna::SharedWalk<Config<kShape>> steps(args, first, 0);
  const int lane = lacuna::lane_index();
  int count = 0;
  for (SharedTile step = steps.take_step();
       __any_sync(lacuna::kAllLanes, step.exists()) && count < out.most_steps;
       step = steps.take_step(), ++count) {
    if (lane < kShape.step_tiles) out.tiles[count * kShape.step_tiles + lane] = step.bits();
  }
  if (lane == 0) *out.count = count;
}

template <SharedWalkShape kShape>
single::SharedWalkVariant variant() {
  const auto run_thread = [](const void* args) { walk<kShape>(*static_cast<const Args*>(args)); };
  return {kShape, {run_thread, {}}};
}

}  // namespace

const std::vector<single::SharedWalkVariant>& single::shared_walk_variants() {
  static const std::vector<SharedWalkVariant> variants = {
      variant<{1, false, false}>(), variant<{2, false, false}>(), variant<{4, false, true}>(),
      variant<{2, true, false}>(), variant<{2, true, true}>()};
  return variants;
}

single::SharedTileFacts single::facts_of(unsigned bits) {
  const lacuna::SharedTile tile(bits);
  unsigned masked = 0;
  for (int row = 0; row < 2; ++row) {
    const lacuna::TileRef own = tile.of(row);
    if (own.exists() && own.needs_mask()) masked |= 1u << row;
  }
  return {tile.index(), tile.listed(), masked};
}

#include "compiler/passes/target/choose_places.hpp"

#include <algorithm>

#include "compiler/ir/coded_rows.hpp"
#include "compiler/target/choose_variant.hpp"

namespace lacuna {
namespace {

constexpr int kFewValueStages = 2;  ///< of those that are loaded only if they count

/// Do values come late if they have as many places as keys? A place is refilled when only one more
/// product is left to hide the latency of its load. Tiles of a list lie anywhere, so fewer of their
/// lines are in L2; and a formula on the scores delays the warps that free the place. Of sequences
/// a launch decides how many places it uses (lower/attend/schedule.cpp). It does not help two
/// lists, which wait in any case, nor gates, which need keys early.
bool has_late_values(const WgmmaShape& shape, const Program& program) {
  const Attend& attend = attend_of(program);
  if (shape.has_gate || shape.gathers || shape.e4m3_rows) return false;
  if (shape.qk_bits == 8 || shape.v_bits == 8 || shape.work_tiles > 1) return false;
  return program.batch != BatchLayout::kUniform || shape.has_lists || !attend.score.empty();
}

/// Codes under way on a multiprocessor: 4.4 TB/s with a latency of 1 us ask for 33 KiB, and a place
/// is read for about as long as it is loaded.
constexpr int kCodeBytes = 64 << 10;
constexpr int kFewestCodePlaces = 2;  ///< of keys and of values

/// Places of codes and of queries. Where work tiles are split, or of few queries, it is the codes
/// that are waited for, and queries have one place; else those of the next work tile come first.
WgmmaShape with_code_places(WgmmaShape shape, const Target& target) {
  const auto fits = [&] { return smem_bytes(shape) <= target.smem_bytes_per_block; };
  shape.query_buffers = 2;
  shape.code_places = kFewestCodePlaces;
  if (shape.splits_kv || !fits()) shape.query_buffers = 1;
  const int wanted = kCodeBytes / (shape.step_keys() * std::max(shape.head_dim, value_dim(shape)));
  shape.code_places = std::clamp(wanted, kFewestCodePlaces, kMostCodePlaces);
  while (shape.code_places > kFewestCodePlaces && !fits()) --shape.code_places;
  if (shape.query_buffers == 1) {
    shape.query_buffers = 2;
    if (!fits()) shape.query_buffers = 1;
  }
  return shape;
}

}  // namespace

bool StagePreference::accepts(const WgmmaShape& shape) const {
  const bool has_least = shape.stages == *std::ranges::min_element(stages);
  return !wants_two_query_tiles || has_least || shape.query_buffers > 1;
}

StagePreference stage_preference(const Program& program, const TileRequest& request) {
  if (!request.spec.stages.is_auto()) return {.stages = request.spec.stages.values, .reason = ""};
  const Attend& attend = attend_of(program);
  if (decides_by_tile_max(attend) && !attends_to_codes(program))
    return {.stages = {4, 3, 2},
            .reason = "a gate that leaves out whole tiles wants keys early",
            .wants_two_query_tiles = true};
  if (request.gathers && program.head_dim == kPanelElements)
    return {.stages = {3, 2}, .reason = "narrow rows are gathered slowly"};
  if (attend.q_scale >= 0 || attend.v_scale >= 0)
    return {.stages = {4, 3, 2},
            .reason = "tiles of 8 bits are small, and soon multiplied",
            .wants_two_query_tiles = request.keep_q == kWarpgroupRows};
  return {.stages = tile_candidates(request).stages, .reason = kLeastStagesReason};
}

std::string stages_reason(const StagePreference& preference, int stages,
                          const std::function<bool(int stages)>& fits) {
  const auto at = std::ranges::find(preference.stages, stages);
  if (preference.reason.empty() || at == preference.stages.begin()) return preference.reason;
  const int more = at == preference.stages.end() ? stages : *(at - 1);
  if (fits(more)) return kLeastStagesReason;  // of measured tiles
  return preference.reason + ", but shared memory has no place for " + std::to_string(more) +
         (preference.wants_two_query_tiles ? " and two query tiles" : "");
}

/// A consumer whose values are loaded only for tiles that count needs few slots for them; the keys
/// of every step are read.
WgmmaShape with_value_places(WgmmaShape shape, const Attend& attend) {
  const bool has_few = consumer_of(shape, attend) == Consumer::kWgmmaTileGate;
  shape.value_stages = has_few ? kFewValueStages : shape.stages;
  return shape;
}

/// Two query tiles where they fit, so that the next one is loaded in time; then, where values come
/// late, one more place for them.
WgmmaShape with_places(WgmmaShape shape, const Program& program, const Target& target) {
  if (shape.e4m3_rows) return with_code_places(shape, target);
  const auto fits = [&] { return smem_bytes(shape) <= target.smem_bytes_per_block; };
  shape.query_buffers = 2;
  if (!fits()) shape.query_buffers = 1;
  if (!has_late_values(shape, program)) return shape;
  ++shape.value_stages;
  if (!fits()) --shape.value_stages;
  return shape;
}

}  // namespace lacuna

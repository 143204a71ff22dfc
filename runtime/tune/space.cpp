#include "runtime/tune/space.hpp"

#include <algorithm>

#include "cache/key.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna::tune {
namespace {

const std::vector kTileSizes{16, 32, 64, 128, 256};
const std::vector kStages{2, 3, 4};
const std::vector kOrders{TileOrder::kAscending, TileOrder::kDescending};
const std::vector kSplits{1, 2, 4, 8, 16};
const std::vector kQueryPlaces{QueryPlace::kRegisters, QueryPlace::kSharedMemory};

/// What besides the spec's own words fixes a field; "": nothing.
struct Reasons {
  std::string tile_q, tile_k, order;
  bool even_of_lists = false;  ///< of tile_q and tile_k
};

bool has_dimension(const VariantSpec& spec, ParamAxis axis) {
  return std::ranges::any_of(spec.params, [axis](const ParamSpec& param) {
    return std::ranges::count(param.symbol.shape, axis, &ParamDim::axis) > 0;
  });
}

/// A field and why it is fixed although the spec does not write one value.
std::string reason_of(const VariantSpec& spec, ParamAxis axis, bool is_list) {
  if (spec.external_mask) return "the caller's lists have tiles of it";
  if (has_dimension(spec, axis)) return "a parameter has one value for each tile";
  if (spec.gate && !is_list) return "the gate judges tiles of it";
  return "";
}

/// Values of a field: the spec's, else `all`; `usual` alone where something fixes it.
template <class T>
std::vector<T> values_of(const Choice<T>& choice, const std::vector<T>& all, T usual,
                         const std::string& reason) {
  if (!reason.empty()) return {usual};
  return choice.is_auto() ? all : choice.values;
}

/// The choice of tile.q. Each warp has a fixed number of rows, so a spec that writes tile.warps
/// alone has written it.
Choice<int> rows_of(const TileSpec& tile) {
  if (!tile.q.is_auto() || tile.warps.is_auto()) return tile.q;
  Choice<int> rows;
  for (const int warps : tile.warps.values) rows.values.push_back(warps * kWarpRows);
  return rows;
}

std::string order_reason(const VariantSpec& spec) {
  return spec.gate && spec.tile.order.is_auto() ? "the gate depends on it" : "";
}

/// Work tiles of a head, of all heads: what there is for blocks to do without splitting any.
std::int64_t blocks_of(const Plan& plan, const LaunchShape& shape) {
  const std::int64_t rows = std::int64_t{plan.attend.tile_q.value} * plan.attend.work_tiles.value;
  return std::int64_t{shape.n_b} * shape.n_h * ((shape.n_q + rows - 1) / rows);
}

std::string split_reason(const VariantSpec& spec, const Plan& usual, const Machine& machine,
                         const std::optional<LaunchShape>& shape) {
  if (spec.tile.split_kv.values.size() > 1) return "";
  if (spec.gate) return "the gate depends on the tiles before";
  if (spec.quantise.v_bits == 8) return "e4m3 weights depend on the tiles before";
  if (usual.attend.loader.value == Loader::kGather) return "one block gathers a row's columns";
  if (!shape || blocks_of(usual, *shape) >= machine.processors)
    return "there is a row for each multiprocessor";
  return "";
}

/// All hardware threads, and one for each core where that is less.
std::vector<int> thread_counts(const Machine& machine) {
  std::vector<int> counts{machine.processors};
  if (machine.cores < machine.processors) counts.push_back(machine.cores);
  if (machine.cores > 1) counts.push_back(machine.cores / 2);
  return counts;
}

template <class T>
bool is_among(const std::vector<T>& values, T value) {
  return std::ranges::count(values, value) > 0;
}

std::vector<Config> points_of(const Dimensions& dimensions) {
  std::vector<Config> points;
  for (const int threads : dimensions.threads)
    for (const TileOrder order : dimensions.order)
      for (const int stages : dimensions.stages)
        for (const int q : dimensions.tile_q)
          for (const int k : dimensions.tile_k)
            for (const int split : dimensions.split_kv)
              for (const QueryPlace queries : dimensions.queries)
                points.push_back({q, k, stages, order, threads, split, queries});
  return points;
}

/// "" if make_plan takes the point, both as if it were written, which tells errors with their
/// numbers, and as a tuned one, which is how it will come; else why not.
std::string refusal(const SpecDocument& document, const BuildOptions& options,
                    const Machine& machine, const Config& point, Plan& plan) {
  SpecDocument written = document;
  written.spec = fixed_spec(document.spec, point);
  Diagnostics found;
  const Plan measured = make_plan(written, options, machine.target, found);
  for (const Diagnostic& d : found.items)
    if (d.severity == Severity::kError) return d.message;
  BuildOptions tuned = options;
  tuned.tuned = tuned_tiles(point, "");
  plan = make_plan(document, tuned, machine.target, found);
  const Config got = config_of(plan, point.threads);
  if (!(got == point)) return "the compiler prefers " + print_config(got);
  return measured.program == plan.program ? "" : "written down, it is another program";
}

}  // namespace

Dimensions dimensions_of(const SpecDocument& document, const Plan& usual, const Machine& machine,
                         int threads, const std::optional<LaunchShape>& shape) {
  const VariantSpec& spec = document.spec;
  const Config config = config_of(usual, threads > 0 ? threads : machine.processors);
  const bool on_gpu = machine.target.kind == TargetKind::kCuda;
  Dimensions dimensions;
  const Choice<int> rows = rows_of(spec.tile);
  dimensions.tile_q = values_of(rows, kTileSizes, config.tile_q,
                                reason_of(spec, ParamAxis::kQTiles, rows.values.size() > 1));
  dimensions.tile_k = values_of(spec.tile.k, kTileSizes, config.tile_k,
                                reason_of(spec, ParamAxis::kKTiles, spec.tile.k.values.size() > 1));
  dimensions.order = values_of(spec.tile.order, kOrders, config.order, order_reason(spec));
  dimensions.stages =
      on_gpu ? values_of(spec.tile.stages, kStages, config.stages, "") : std::vector<int>{0};
  dimensions.split_kv = on_gpu ? values_of(spec.tile.split_kv, kSplits, config.split_kv,
                                           split_reason(spec, usual, machine, shape))
                               : std::vector<int>{1};
  dimensions.queries = machine.target.has_wgmma
                           ? values_of(spec.tile.queries, kQueryPlaces, config.queries, "")
                           : std::vector{config.queries};
  dimensions.threads = on_gpu        ? std::vector<int>{0}
                       : threads > 0 ? std::vector<int>{threads}
                                     : thread_counts(machine);
  return dimensions;
}

bool contains(const Dimensions& dimensions, const Config& config) {
  return is_among(dimensions.tile_q, config.tile_q) && is_among(dimensions.tile_k, config.tile_k) &&
         is_among(dimensions.stages, config.stages) && is_among(dimensions.order, config.order) &&
         is_among(dimensions.threads, config.threads) &&
         is_among(dimensions.split_kv, config.split_kv) &&
         is_among(dimensions.queries, config.queries);
}

std::vector<std::string> fixed_fields(const SpecDocument& document, const Plan& usual,
                                      const Machine& machine, int threads,
                                      const std::optional<LaunchShape>& shape) {
  const VariantSpec& spec = document.spec;
  std::vector<std::string> fields;
  const auto add = [&fields](const char* name, bool is_written, const std::string& reason) {
    if (is_written || !reason.empty())
      fields.push_back(std::string(name) + " (" + (is_written ? "written" : reason) + ")");
  };
  const Choice<int> rows = rows_of(spec.tile);
  add("tile.q", rows.values.size() == 1,
      reason_of(spec, ParamAxis::kQTiles, rows.values.size() > 1));
  add("tile.k", spec.tile.k.values.size() == 1,
      reason_of(spec, ParamAxis::kKTiles, spec.tile.k.values.size() > 1));
  add("tile.order", spec.tile.order.values.size() == 1, order_reason(spec));
  if (machine.target.kind == TargetKind::kCuda) {
    add("tile.stages", spec.tile.stages.values.size() == 1, "");
    add("tile.split_kv", spec.tile.split_kv.values.size() == 1,
        split_reason(spec, usual, machine, shape));
    if (machine.target.has_wgmma) add("tile.queries", spec.tile.queries.values.size() == 1, "");
  } else {
    add("threads", false,
        threads > 0               ? "--threads"
        : machine.processors == 1 ? "there is one"
                                  : "");
  }
  return fields;
}

std::string Space::hash() const {
  std::string text;
  for (const Candidate& candidate : candidates) text += print_config(candidate.config) + "\n";
  return cache::sha256_hex(text).substr(0, 16);
}

Space search_space(const SpecDocument& document, const BuildOptions& options,
                   const Machine& machine, int threads, const std::optional<LaunchShape>& shape,
                   Diagnostics& diagnostics) {
  Space space;
  BuildOptions untuned = options;
  untuned.tuned.reset();
  Diagnostics found;
  const Plan usual = make_plan(document, untuned, machine.target, found);
  if (found.has_errors()) {
    for (Diagnostic& d : found.items) diagnostics.add(std::move(d));
    return space;
  }
  const Dimensions dimensions = dimensions_of(document, usual, machine, threads, shape);
  const Config first = config_of(usual, dimensions.threads.front());
  space.candidates.push_back({0, first, usual});
  for (const Config& point : points_of(dimensions)) {
    if (point == first) continue;
    Plan plan;
    std::string reason = refusal(document, untuned, machine, point, plan);
    if (reason.empty()) {
      space.candidates.push_back({static_cast<int>(space.candidates.size()), point, plan});
    } else {
      space.refused.push_back({point, std::move(reason)});
    }
  }
  return space;
}

}  // namespace lacuna::tune

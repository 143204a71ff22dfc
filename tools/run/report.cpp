#include "tools/run/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/common/table.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

std::string percent(std::int64_t part, std::int64_t whole) {
  char text[32];
  const double share =
      whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
  std::snprintf(text, sizeof text, " (%.1f %%)", share);
  return text;
}

std::string ratio(double numerator, double denominator) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", numerator / denominator);
  return text;
}

/// "64 x 64: visited 10 of 20 visible (50.0 %), gated 0 of 10 visited (0.0 %)"
std::string print_tiles(std::int32_t tile_q, std::int32_t tile_k, const TileCounts& tiles) {
  return std::to_string(tile_q) + " x " + std::to_string(tile_k) + ": visited " +
         std::to_string(tiles.visited) + " of " + std::to_string(tiles.visible) + " visible" +
         percent(tiles.visited, tiles.visible) + ", gated " + std::to_string(tiles.gated) + " of " +
         std::to_string(tiles.visited) + " visited" + percent(tiles.gated, tiles.visited);
}

std::string print_branch(const BranchReport& branch) {
  return branch.name + ", " +
         (branch.query_means > 1 ? "means of " + std::to_string(branch.query_means) + " queries, "
                                 : "") +
         (branch.means > 1 ? "means of " + std::to_string(branch.means) + ", " : "") +
         print_tiles(branch.tile_q, branch.tile_k, branch.tiles);
}

/// What deciding takes of a launch: the rest of it without attend, never less than nothing.
double predict_us(const RunResult& result) {
  return std::max(0.0, result.sparse_us - result.attend_us);
}

std::string print_code_origin(const RunResult& result) {
  const auto cache = result.kernel.value("cache", ordered_json::object());
  if (cache.is_object() && cache.value("hit", false)) return "from the cache";
  return "compiled in " + print_time_us(result.kernel.value("compile_ms", 0.0) * 1e3);
}

/// Where what is not finite in v has gone: lacuna.h.
std::string print_not_finite(std::int64_t tokens, const RunResult& result) {
  return "NaN or infinity in " + std::to_string(tokens) + (tokens == 1 ? " token" : " tokens") +
         " of v, and so in o of every query that " +
         (result.device == "cpu" ? "sees such a token"
                                 : "visits the tile of such a token, seen or not");
}

}  // namespace

ordered_json tiles_json(const TileCounts& tiles) {
  return {{"visible", tiles.visible}, {"visited", tiles.visited}, {"gated", tiles.gated}};
}

ordered_json branches_json(const std::vector<BranchReport>& branches) {
  ordered_json list = ordered_json::array();
  for (const BranchReport& branch : branches) {
    ordered_json& own = list.emplace_back(ordered_json{{"name", branch.name}});
    if (branch.means > 1) own["means"] = branch.means;
    if (branch.query_means > 1) own["query_means"] = branch.query_means;
    own["tile"] = {{"q", branch.tile_q}, {"k", branch.tile_k}};
    own["tiles"] = tiles_json(branch.tiles);
  }
  return list;
}

std::string visited_text(const RunResult& result) {
  const auto of = [](const TileCounts& tiles) {
    return std::to_string(tiles.visited) + " of " + std::to_string(tiles.visible) + " tiles";
  };
  std::string text = result.branches.empty() ? of(result.tiles) : "";
  for (const BranchReport& branch : result.branches)
    text += (text.empty() ? "" : ", ") + branch.name + " " + of(branch.tiles);
  return text;
}

OutputError compare(const Array& sparse, const Array& dense) {
  const std::vector<float> a = to_f32(sparse);
  const std::vector<float> b = to_f32(dense);
  double difference = 0;
  double magnitude = 0;
  OutputError error;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double distance = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    difference += distance;
    magnitude += std::fabs(static_cast<double>(b[i]));
    // NaN stays, once met.
    if (std::isnan(distance) || distance > error.max_abs) error.max_abs = distance;
  }
  error.rel_l1 = magnitude > 0 ? difference / magnitude : difference;
  return error;
}

std::string print_run(const std::string& spec, const Inputs& inputs, const RunResult& result,
                      const OutputError& error) {
  Table table{.head = {}, .rows = {}};
  const std::string k = print_shape(inputs.k.shape), v = print_shape(inputs.v.shape);
  table.rows.push_back({"input", inputs.origin + ": q " + print_shape(inputs.q.shape) +
                                     (k == v ? ", k and v " + k : ", k " + k + ", v " + v) + ", " +
                                     std::string(name_of(inputs.q.type))});
  for (const ParamInput& param : inputs.params) {
    table.rows.push_back({"param", param.name + " = " + param.origin});
  }
  table.rows.push_back({"kernel", print_code_origin(result)});
  for (const BranchReport& branch : result.branches)
    table.rows.push_back({"branch", print_branch(branch)});
  if (result.branches.empty())
    table.rows.push_back({"tiles", print_tiles(result.tile_q, result.tile_k, result.tiles)});
  table.rows.push_back({"error", "relative L1 " + print_scientific(error.rel_l1) + ", largest " +
                                     print_scientific(error.max_abs) + ", against " +
                                     result.compared_with});
  if (inputs.v_not_finite > 0)
    table.rows.push_back({"warning", print_not_finite(inputs.v_not_finite, result)});
  if (result.o_not_finite > 0)
    table.rows.push_back({"warning", "NaN or infinity in " + std::to_string(result.o_not_finite) +
                                         (result.o_not_finite == 1 ? " element" : " elements") +
                                         " of o"});
  for (const std::string& warning : result.warnings) table.rows.push_back({"warning", warning});
  const bool predicts = result.selection_bytes > 0;
  table.rows.push_back(
      {"time", (predicts ? "predict " + print_time_us(predict_us(result)) + ", " : "") + "attend " +
                   print_time_us(result.attend_us) + ", dense " + print_time_us(result.dense_us) +
                   ": " + ratio(result.dense_us, result.sparse_us) + " x as fast" +
                   (predicts ? ", " + ratio(result.dense_us, result.attend_us) +
                                   " x with the tiles of an earlier call"
                             : "")});
  if (result.plain_us > 0)
    table.rows.push_back({"", result.plain + " attention " + print_time_us(result.plain_us) + ": " +
                                  ratio(result.plain_us, result.sparse_us) + " x as fast"});
  if (result.workspace_bytes > 0)
    table.rows.push_back({"memory", "workspace " + print_bytes(result.workspace_bytes) +
                                        ", kept tiles " + print_bytes(result.selection_bytes)});
  return spec + " on " + result.device + " (" + result.device_name + ", " + result.target + ")\n" +
         print_table(table, false);
}

void fill_run_json(const std::string& spec, const Inputs& inputs, const RunResult& result,
                   const OutputError& error, ordered_json& document) {
  const auto& q = inputs.q.shape;
  const auto& k = inputs.k.shape;
  ordered_json params = ordered_json::object();
  for (const ParamInput& param : inputs.params) params[param.name] = param.origin;
  document["spec"] = spec;
  document["device"] = result.device;
  document["device_name"] = result.device_name;
  document["target"] = result.target;
  document["input"] = inputs.origin;
  document["params"] = params;
  document["dtype"] = name_of(inputs.q.type);
  document["shape"] = {{"b", q[0]},   {"h", q[1]},   {"h_kv", k[1]},
                       {"n_q", q[2]}, {"n_k", k[2]}, {"d", q[3]}};
  if (const std::int64_t width = inputs.v.shape.back(); width != q[3])
    document["shape"]["d_v"] = width;
  if (result.branches.empty()) {
    document["tile"] = {{"q", result.tile_q}, {"k", result.tile_k}};
    document["tiles"] = tiles_json(result.tiles);
  } else {
    document["branches"] = branches_json(result.branches);
  }
  document["v_not_finite"] = inputs.v_not_finite;
  document["o_not_finite"] = result.o_not_finite;
  document["warnings"] = result.warnings;
  document["error"] = {
      {"rel_l1", error.rel_l1}, {"max_abs", error.max_abs}, {"against", result.compared_with}};
  document["time_us"] = {{"dense", result.dense_us},
                         {"sparse", result.sparse_us},
                         {"predict", predict_us(result)},
                         {"attend", result.attend_us}};
  if (result.plain_us > 0) document["time_us"][result.plain] = result.plain_us;
  document["workspace_bytes"] = result.workspace_bytes;
  document["selection_bytes"] = result.selection_bytes;
  const auto cache = result.kernel.value("cache", ordered_json::object());
  document["cache"] = {{"hit", cache.is_object() && cache.value("hit", false)}};
  document["kernel"] = result.kernel;
}

}  // namespace lacuna::tools

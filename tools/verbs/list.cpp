// lacuna list: the specs of a folder, a line each.
#include <algorithm>
#include <filesystem>

#include "compiler/diag/printable.hpp"
#include "compiler/expr/text/parse.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/common/table.hpp"
#include "tools/inputs/load_inputs.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kListDescription =
    R"(List specs: what each computes, how it decides, and its parameters.

Examples:
  lacuna list                       the specs that come with the project
  lacuna list specs/examples
  lacuna list my_specs --json

See also: check, explain)";

/// The specs of a folder, in order of their names; no schemas.
std::vector<std::string> specs_in(const std::string& folder, Session& session) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".json" && path.filename() != "schema.json") paths.push_back(path);
  }
  if (error) session.fail(ExitCode::kInput, folder + ": " + error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// "mean x mean", or the formula of scores that are given.
std::string evidence_of(const EstimateSpec& estimate) {
  if (!estimate.from.empty()) return print_expr(estimate.from);
  if (estimate.index) return "an index of " + std::to_string(estimate.index->heads) + " heads";
  return name_of(estimate.q) + " x " + name_of(estimate.k);
}

/// "keeps 128 x 64 by mean x mean, gates, int8"
std::string kind_of(const VariantSpec& spec) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (spec.permute.order != TokenOrder::kNone)
    add("tokens " + std::string(name_of(spec.permute.order)));
  if (spec.external_mask) add("the caller's lists");
  if (spec.predictor) {
    const PredictorSpec& predictor = *spec.predictor;
    std::string part =
        "keeps " + std::to_string(predictor.tile_q) + " x " + std::to_string(predictor.tile_k);
    if (predictor.estimate) part += " by " + evidence_of(*predictor.estimate);
    add(part);
  }
  if (!spec.branches.empty()) {
    std::string names;
    for (const VariantSpec& branch : spec.branches)
      names += (names.empty() ? "" : " + ") + branch.branch.name;
    add(names);
  }
  if (spec.gate) add("gates by " + std::string(name_of(spec.gate->scope)));
  if (spec.quantise.qk_bits < 16) add(spec.quantise.v_bits < 16 ? "int8 and e4m3" : "int8");
  if (!spec.attention.score.empty()) add("score");
  if (!spec.attention.sink.empty()) add("sink");
  if (const Weights weights = spec.attention.normalise; !has_denominator(weights))
    add(weights == Weights::kSigmoid ? "sigmoid" : "scores as weights");
  return text.empty() ? (spec.attention.mask.empty() ? "every key" : "mask") : text;
}

std::string params_of(const VariantSpec& spec) {
  std::string text;
  for (const ParamSpec& param : spec.params) text += (text.empty() ? "" : " ") + param.symbol.name;
  return text;
}

void run_list(const std::string& chosen, Session& session) {
  const std::string folder = chosen.empty() ? shipped_specs() : chosen;
  if (folder.empty()) {
    session.fail(ExitCode::kInput, "the specs are not beside this program; name a folder");
    return;
  }
  Table table{.head = {"spec", "does", "parameters"}, .rows = {}};
  session.document["folder"] = folder;
  session.document["specs"] = ordered_json::array();
  for (const std::string& path : specs_in(folder, session)) {
    const auto document = load_spec(path, session);
    if (!document) continue;
    const VariantSpec& spec = document->spec;
    table.rows.push_back({spec.name, kind_of(spec), params_of(spec)});
    ordered_json params = ordered_json::array();
    for (const ParamSpec& param : spec.params) params.push_back(param.symbol.name);
    session.document["specs"].push_back({{"path", path},
                                         {"name", spec.name},
                                         {"does", kind_of(spec)},
                                         {"doc", spec.doc},
                                         {"source", spec.source},
                                         {"params", params}});
  }
  session.print(printable(folder) + ":\n" + print_table(table, session.color_stdout()));
}

}  // namespace

void add_list(CLI::App& app, Session& session) {
  auto folder = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("list", kListDescription);
  verb->add_option("folder", *folder, "A folder of specs (those that come with the project)");
  verb->callback([folder, &session] { run_list(*folder, session); });
}

}  // namespace lacuna::tools

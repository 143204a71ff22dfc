#include "tools/calibration.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "cache/store.hpp"
#include "tools/file_io.hpp"
#include "tools/safetensors.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

constexpr const char* kFormat = "lacuna calibration 1";

ordered_json sample_json(const Calibration& calibration, std::size_t index) {
  const CalibrationSample& sample = calibration.samples[index];
  ordered_json heads = ordered_json::array();
  for (const HeadResult& head : calibration.results[index])
    heads.push_back({{"density", head.density}, {"rel_l1", head.rel_l1}});
  return {{"file", sample.file},     {"sha256", sample.sha256},
          {"batch", sample.batch},   {"first_token", sample.first_token},
          {"tokens", sample.tokens}, {"held_out", sample.held_out},
          {"heads", heads}};
}

/// -1 for what is no whole number of 63 bits; no field may be that.
std::int64_t whole(const ordered_json& json) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits = json.is_number_integer() &&
                    (!json.is_number_unsigned() || json.get<std::uint64_t>() <= kMost);
  return fits ? json.get<std::int64_t>() : -1;
}

void read_samples(const ordered_json& json, Calibration& calibration) {
  for (const ordered_json& item : json) {
    CalibrationSample sample;
    sample.file = item.at("file").get<std::string>();
    sample.sha256 = item.at("sha256").get<std::string>();
    sample.batch = whole(item.at("batch"));
    sample.first_token = whole(item.at("first_token"));
    sample.tokens = whole(item.at("tokens"));
    sample.held_out = item.at("held_out").get<bool>();
    calibration.samples.push_back(std::move(sample));
    std::vector<HeadResult>& heads = calibration.results.emplace_back();
    for (const ordered_json& head : item.at("heads"))
      heads.push_back({head.at("density").get<double>(), head.at("rel_l1").get<double>()});
  }
}

/// What cannot be written as a tensor, as one JSON text.
ordered_json facts_json(const Calibration& calibration) {
  ordered_json samples = ordered_json::array();
  for (std::size_t i = 0; i < calibration.samples.size(); ++i)
    samples.push_back(sample_json(calibration, i));
  return {{"spec", calibration.spec},
          {"spec_sha256", calibration.spec_sha256},
          {"dtype", calibration.dtype},
          {"heads", calibration.heads},
          {"head_dim", calibration.head_dim},
          {"tile_q", calibration.tile_q},
          {"target", {{"rel_l1", calibration.target_rel_l1}}},
          {"complete", calibration.complete},
          {"dense_heads", calibration.dense},
          {"samples", samples}};
}

void read_facts(const ordered_json& facts, Calibration& calibration) {
  calibration.spec = facts.at("spec").get<std::string>();
  calibration.spec_sha256 = facts.at("spec_sha256").get<std::string>();
  calibration.dtype = facts.at("dtype").get<std::string>();
  calibration.heads = whole(facts.at("heads"));
  calibration.head_dim = whole(facts.at("head_dim"));
  calibration.tile_q = whole(facts.at("tile_q"));
  calibration.target_rel_l1 = facts.at("target").at("rel_l1").get<double>();
  calibration.complete = facts.at("complete").get<bool>();
  calibration.dense = facts.at("dense_heads").get<std::vector<bool>>();
  read_samples(facts.at("samples"), calibration);
}

/// Sizes that readers of the results rely on.
bool is_sound(const Calibration& calibration) {
  constexpr std::int64_t kMostRows = 1 << 16;  // far beyond any tile
  const auto heads = static_cast<std::size_t>(std::max<std::int64_t>(calibration.heads, 0));
  return heads > 0 && calibration.tile_q > 0 && calibration.tile_q <= kMostRows &&
         calibration.dense.size() == heads &&
         std::all_of(calibration.samples.begin(), calibration.samples.end(),
                     [](const CalibrationSample& sample) {
                       return sample.batch >= 0 && sample.first_token >= 0 && sample.tokens >= 0;
                     }) &&
         std::all_of(calibration.results.begin(), calibration.results.end(),
                     [heads](const auto& result) { return result.size() == heads; });
}

/// "expected 4, got 8" of one thing that has to agree.
bool agrees(const std::string& path, const char* what, const std::string& made_for,
            const std::string& got, Session& session) {
  if (made_for == got) return true;
  session.fail(ExitCode::kInput, path + ": " + what + ": it was made for " + made_for +
                                     ", this is " + got + "; calibrate again");
  return false;
}

bool fits(const std::string& path, const Calibration& calibration, const Spec& spec,
          const CalibrationUse& use, Session& session) {
  if (!agrees(path, "spec", calibration.spec, spec.name, session)) return false;
  if (calibration.spec_sha256 != spec_sha256(spec)) {
    session.fail(ExitCode::kInput, path + ": spec " + spec.name +
                                       " computes something else since this calibration was made "
                                       "for it; calibrate again");
    return false;
  }
  const bool heads =
      agrees(path, "heads", std::to_string(calibration.heads), std::to_string(use.heads), session);
  const bool head_dim = agrees(path, "head dim", std::to_string(calibration.head_dim),
                               std::to_string(use.head_dim), session);
  return heads && head_dim;
}

std::string kept_name(const std::string& param, int kept) {
  return param + ".kept_" + std::to_string(kept);
}

/// The numbers N of all tables "NAME.kept_N" of the file: "8, 16, 32".
std::string kept_choices(const Calibration& calibration) {
  std::vector<int> choices;
  for (const auto& [name, array] : calibration.params) {
    int kept = 0;
    const std::size_t dot = name.find(".kept_");
    if (dot != std::string::npos && std::sscanf(name.c_str() + dot, ".kept_%d", &kept) == 1)
      choices.push_back(kept);
  }
  std::sort(choices.begin(), choices.end());
  std::string text;
  for (const int kept : choices) text += (text.empty() ? "" : ", ") + std::to_string(kept);
  return text.empty() ? "none" : text;
}

}  // namespace

std::string spec_sha256(const Spec& spec) {
  Spec plain = spec;
  plain.doc.clear();
  plain.source.clear();
  for (ParamSpec& param : plain.params) {
    param.has_default = false;
    param.default_value = 0;
    param.calibrate = Calibrate::kNone;
    param.doc.clear();
    param.unit.clear();
  }
  return cache::sha256_hex(print_spec(plain));
}

std::string print_calibration(const Calibration& calibration) {
  Safetensors file;
  file.tensors = calibration.params;
  file.metadata = {{"format", kFormat},
                   {"version", calibration.version},
                   {"date", calibration.date},
                   {"facts", facts_json(calibration).dump()}};
  return print_safetensors(file);
}

std::optional<Calibration> parse_calibration(std::string_view bytes, Diagnostics& diagnostics) {
  auto file = parse_safetensors(bytes, diagnostics);
  if (!file) return std::nullopt;
  const auto refuse = [&](const std::string& why) {
    diagnostics.add({.code = Code::kFileFormat,
                     .message = "calibration: " + why,
                     .helps = {"lacuna calibrate SPEC --samples FILE... -o FILE makes one"}});
    return std::nullopt;
  };
  auto& metadata = file->metadata;
  if (metadata["format"] != kFormat)
    return refuse("metadata \"format\": expected \"" + std::string(kFormat) + "\", got \"" +
                  metadata["format"] + "\"");
  Calibration calibration;
  calibration.version = metadata["version"];
  calibration.date = metadata["date"];
  try {
    read_facts(ordered_json::parse(metadata["facts"]), calibration);
  } catch (const ordered_json::exception& error) {
    return refuse(std::string("metadata \"facts\": ") + error.what());
  }
  if (!is_sound(calibration)) return refuse("metadata \"facts\": sizes that contradict each other");
  calibration.params = std::move(file->tensors);
  return calibration;
}

std::optional<Calibration> load_calibration(const std::string& path, Session& session) {
  Diagnostics diagnostics;
  const auto bytes = read_file(path, diagnostics);
  auto calibration = bytes ? parse_calibration(*bytes, diagnostics) : std::nullopt;
  session.report(diagnostics, {path, ""});
  return calibration;
}

Array fit_rows(const Array& array, std::int64_t rows) {
  const std::int64_t heads = array.shape[0], have = array.shape[1];
  const auto bytes = static_cast<std::size_t>(size_bytes(array.type));
  Array fitted{array.type, {heads, rows}, {}};
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t row = 0; row < rows; ++row)
      fitted.bytes += array.bytes.substr(
          static_cast<std::size_t>(head * have + std::min(row, have - 1)) * bytes, bytes);
  return fitted;
}

bool add_calibration(const CalibrationOptions& options, const Spec& spec, const CalibrationUse& use,
                     std::vector<ParamInput>& params, Session& session) {
  if (options.path.empty()) return true;
  const auto calibration = load_calibration(options.path, session);
  if (!calibration || !fits(options.path, *calibration, spec, use, session)) return false;
  bool has_table = !options.kept;
  for (const ParamSpec& param : spec.params) {
    const std::string& name = param.symbol.name;
    const bool assigned = std::any_of(params.begin(), params.end(),
                                      [&](const ParamInput& known) { return known.name == name; });
    auto found = calibration->params.find(name);
    if (found == calibration->params.end()) continue;
    const auto table =
        options.kept ? calibration->params.find(kept_name(name, *options.kept)) : found;
    has_table |= table != calibration->params.end();
    if (table != calibration->params.end()) found = table;
    if (assigned) continue;
    Array array = found->second;
    const bool by_tile = param.symbol.shape.size() == 2 && array.shape.size() == 2;
    if (by_tile && array.shape[1] > 0)
      array = fit_rows(array, (use.n_q + calibration->tile_q - 1) / calibration->tile_q);
    params.push_back(
        {.name = name, .tensor = std::move(array), .value = 0, .origin = options.path});
  }
  if (!has_table)
    session.fail(ExitCode::kInput, options.path + ": --kept " + std::to_string(*options.kept) +
                                       ": the file has tables for " + kept_choices(*calibration));
  return has_table;
}

}  // namespace lacuna::tools

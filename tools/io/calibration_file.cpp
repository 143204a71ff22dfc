#include "tools/io/calibration_file.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "tools/io/safetensors.hpp"

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

}  // namespace

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

}  // namespace lacuna::tools

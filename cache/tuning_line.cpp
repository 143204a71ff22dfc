// One line of the tuning database: a JSON object whose members are the fields of a record.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <unordered_map>

#include "cache/tuning.hpp"

namespace lacuna::cache {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLineVersion = 1;
constexpr std::array<std::string_view, 5> kStatusNames{"ok", "wrong", "spill", "crash", "hang"};

struct Field {
  const char* name;
  std::string TuningRecord::*member;
  bool required;
};
constexpr Field kFields[] = {
    {"hardware", &TuningRecord::hardware, true}, {"variant", &TuningRecord::variant, true},
    {"problem", &TuningRecord::problem, true},   {"density", &TuningRecord::density, true},
    {"config", &TuningRecord::config, true},     {"best", &TuningRecord::best, false},
    {"inputs", &TuningRecord::inputs, false},    {"spec", &TuningRecord::spec, false},
    {"shape", &TuningRecord::shape, false},      {"detail", &TuningRecord::detail, false},
    {"library", &TuningRecord::library, true},   {"driver", &TuningRecord::driver, false},
    {"compiler", &TuningRecord::compiler, true},
};

/// A file's name is made of it.
bool is_file_name(const std::string& hardware) {
  return !hardware.empty() && hardware.front() != '.' && hardware.size() <= 128 &&
         std::ranges::all_of(hardware, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

std::optional<TuningStatus> status_of(const Json& line) {
  const auto found = line.find("status");
  if (found == line.end() || !found->is_string()) return std::nullopt;
  const auto name = std::ranges::find(kStatusNames, found->get_ref<const std::string&>());
  if (name == kStatusNames.end()) return std::nullopt;
  return static_cast<TuningStatus>(name - kStatusNames.begin());
}

bool read_numbers(const Json& line, TuningRecord& record) {
  const auto number = [&line](const char* name) {
    const auto found = line.find(name);
    return found != line.end() && found->is_number() ? found->get<double>() : -1.0;
  };
  record.median_us = number("median_us");
  record.spread = number("spread");
  const double rung = number("rung");
  constexpr double kMostRungs = 64;
  if (record.median_us < 0 || record.spread < 0 || rung < 0 || rung > kMostRungs) return false;
  record.rung = static_cast<int>(rung);
  if (line.contains("budget_s")) record.budget_s = number("budget_s");
  return record.budget_s >= 0 && (record.status != TuningStatus::kOk || record.median_us > 0);
}

}  // namespace

std::string_view name_of(TuningStatus status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

std::string print_tuning_line(const TuningRecord& record) {
  Json line = {{"tuning", kLineVersion}};
  for (const Field& field : kFields) {
    const std::string& text = record.*field.member;
    if (field.required || !text.empty()) line[field.name] = text;
  }
  line["status"] = name_of(record.status);
  line["median_us"] = record.median_us;
  line["spread"] = record.spread;
  line["rung"] = record.rung;
  if (record.budget_s > 0) line["budget_s"] = record.budget_s;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<TuningRecord> parse_tuning_line(std::string_view text) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object() || line.value("tuning", Json()) != kLineVersion) return std::nullopt;
  TuningRecord record;
  for (const Field& field : kFields) {
    const auto found = line.find(field.name);
    if (found == line.end() && !field.required) continue;
    if (found == line.end() || !found->is_string()) return std::nullopt;
    record.*field.member = found->get<std::string>();
  }
  const auto status = status_of(line);
  if (!status || !is_file_name(record.hardware)) return std::nullopt;
  record.status = *status;
  if (!read_numbers(line, record)) return std::nullopt;
  return record;
}

bool same_subject(const TuningRecord& a, const TuningRecord& b) {
  return a.hardware == b.hardware && a.variant == b.variant && a.problem == b.problem &&
         a.density == b.density && a.config == b.config;
}

TuningFile parse_tuning(std::string_view text, const std::string& origin,
                        const std::string& variant) {
  TuningFile file;
  std::unordered_map<std::string, std::size_t> latest;  // subject -> index of its record
  std::vector<std::optional<TuningRecord>> found;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    if (!variant.empty() && line.find(variant) == std::string_view::npos) continue;
    auto record = parse_tuning_line(line);
    if (!record) {
      file.foreign.emplace_back(line);
      file.warnings.push_back(origin + ":" + std::to_string(number) +
                              ": not a tuning record of this version, skipped");
      continue;
    }
    if (!variant.empty() && record->variant != variant) continue;
    const std::string subject = record->hardware + '\n' + record->variant + '\n' + record->problem +
                                '\n' + record->density + '\n' + record->config;
    const auto [at, is_new] = latest.try_emplace(subject, found.size());
    if (!is_new) {
      found[at->second].reset();
      at->second = found.size();
      ++file.superseded;
    }
    found.push_back(std::move(record));
  }
  for (auto& record : found)
    if (record) file.records.push_back(std::move(*record));
  return file;
}

}  // namespace lacuna::cache

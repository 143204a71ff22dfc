#include "cache/tuning/line.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lacuna::cache {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLineVersion = 1;

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

/// Members of a record are texts and numbers: what lies deeper is passed over while it is read, so
/// that no depth of it matters.
Json parse_flat(std::string_view text) {
  const auto keep = [](int depth, Json::parse_event_t, Json&) { return depth <= 1; };
  return Json::parse(text, keep, /*allow_exceptions=*/false);
}

std::optional<TuningStatus> status_of(const Json& line) {
  const auto found = line.find("status");
  if (found == line.end() || !found->is_string()) return std::nullopt;
  const auto name = std::ranges::find(kTuningStatusNames, found->get_ref<const std::string&>());
  if (name == kTuningStatusNames.end()) return std::nullopt;
  return static_cast<TuningStatus>(name - kTuningStatusNames.begin());
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

Json line_of(const TuningRecord& record) {
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
  return line;
}

std::string print_line(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

bool is_file_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.size() <= 128 &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

std::string print_tuning_line(const TuningRecord& record) { return print_line(line_of(record)); }

std::string print_stored_line(const StoredRecord& stored) {
  Json line = line_of(stored.record);
  line["added_us"] = stored.added_us;
  return print_line(line);
}

std::optional<StoredRecord> parse_stored_line(std::string_view text) {
  if (text.size() > kLongestTuningLine) return std::nullopt;
  const Json line = parse_flat(text);
  if (!line.is_object() || line.value("tuning", Json()) != kLineVersion) return std::nullopt;
  StoredRecord stored;
  TuningRecord& record = stored.record;
  for (const Field& field : kFields) {
    const auto found = line.find(field.name);
    if (found == line.end() && !field.required) continue;
    if (found == line.end() || !found->is_string()) return std::nullopt;
    record.*field.member = found->get<std::string>();
  }
  const auto status = status_of(line);
  if (!status || !is_file_name(record.hardware) || !is_file_name(record.variant))
    return std::nullopt;
  record.status = *status;
  if (!read_numbers(line, record)) return std::nullopt;
  if (const auto found = line.find("added_us"); found != line.end()) {
    if (!found->is_number_unsigned() ||
        found->get<std::uint64_t>() > std::uint64_t{kLatestStamp_us})
      return std::nullopt;
    stored.added_us = found->get<std::int64_t>();
  }
  return stored;
}

std::optional<TuningRecord> parse_tuning_line(std::string_view text) {
  auto stored = parse_stored_line(text);
  if (!stored) return std::nullopt;
  return std::move(stored->record);
}

}  // namespace lacuna::cache

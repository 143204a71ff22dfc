#include "tools/tune/report.hpp"

#include <algorithm>
#include <cstdio>

#include "tools/common/shape_option.hpp"
#include "tools/common/table.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;
using tune::Result;
using tune::TuningStatus;

/// Lines of the table of candidates; the rest is in the JSON document and in the database.
constexpr std::size_t kShownResults = 8;

std::string print_ratio(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string config_text(const TuneFindings& findings, int id) {
  return print_config(findings.space.candidates[static_cast<std::size_t>(id)].config);
}

/// What is used without tuning, if it was measured.
const Result* usual_of(const TuneFindings& findings) {
  for (const Result& result : findings.outcome.results)
    if (result.id == 0 && result.status == TuningStatus::kOk) return &result;
  return nullptr;
}

std::string_view name_of(TuneState state) {
  switch (state) {
    case TuneState::kTuned:
      return "tuned";
    case TuneState::kKnown:
      return "known";
    case TuneState::kNothingOpen:
      return "nothing open";
    case TuneState::kInterrupted:
      break;
  }
  return "interrupted";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// The fastest first, then those that failed.
std::vector<Result> sorted_results(const TuneFindings& findings) {
  std::vector<Result> results = findings.outcome.results;
  std::stable_sort(results.begin(), results.end(), [](const Result& a, const Result& b) {
    if ((a.status == TuningStatus::kOk) != (b.status == TuningStatus::kOk))
      return a.status == TuningStatus::kOk;
    return a.rung != b.rung ? a.rung > b.rung : a.median_us < b.median_us;
  });
  return results;
}

std::string print_results(const TuneFindings& findings, bool color) {
  Table table{.head = {"configuration", "median", "spread", "rung", "status"}, .rows = {}};
  std::size_t shown = 0;
  for (const Result& result : sorted_results(findings)) {
    const bool is_ok = result.status == TuningStatus::kOk;
    if (is_ok && ++shown > kShownResults) continue;
    const std::string status(cache::name_of(result.status));
    table.rows.push_back(
        {config_text(findings, result.id), is_ok ? print_time_us(result.median_us) : "-",
         is_ok ? print_ratio(100 * result.spread) + " %" : "-", std::to_string(result.rung),
         result.detail.empty() ? status : status + ": " + result.detail});
  }
  return table.rows.empty() ? "" : print_table(table, color);
}

std::string print_winner(const TuneFindings& findings) {
  if (!findings.best) return "  nothing was measured\n";
  const cache::TuningRecord& best = *findings.best;
  std::string text = "  " + best.config + ": " + print_time_us(best.median_us);
  const Result* usual = usual_of(findings);
  if (usual != nullptr && config_text(findings, 0) == best.config) {
    text += ", which is used without tuning, too";
  } else if (usual != nullptr) {
    text += ", " + print_ratio(usual->median_us / best.median_us) +
            " times as fast as without tuning (" + config_text(findings, 0) + ")";
  }
  return text + "\n";
}

std::string print_counts(const TuneFindings& findings) {
  const auto& outcome = findings.outcome;
  const auto failed = std::ranges::count_if(
      outcome.results, [](const Result& r) { return r.status != TuningStatus::kOk; });
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", findings.seconds);
  std::string text = "  " + std::to_string(outcome.results.size()) + " of " +
                     std::to_string(findings.space.candidates.size()) +
                     " configurations measured in " + seconds;
  const auto add = [&text](std::size_t count, const char* what) {
    if (count > 0) text += ", " + std::to_string(count) + " " + what;
  };
  add(findings.reused, "of them known before");
  add(static_cast<std::size_t>(failed), "failed");
  add(findings.ordered.pruned.size(), "hopeless by the cost model");
  add(outcome.unmeasured.size(), "not reached in time");
  return text + "\n";
}

}  // namespace

std::string print_findings(const TuneFindings& findings, const std::string& spec,
                           const LaunchShape& shape, const std::string& values, bool color) {
  std::string text = spec + " on " + findings.facts.device_name + " at " + print_shape(shape) +
                     ", values " + values + ":\n";
  switch (findings.state) {
    case TuneState::kNothingOpen:
      return text + "  nothing to tune: " + joined(findings.fixed) + "\n";
    case TuneState::kKnown:
      return text + "  " + findings.best->config + ": " + print_time_us(findings.best->median_us) +
             ", tuned before\n";
    case TuneState::kInterrupted:
      text += "  interrupted; what was measured is kept\n";
      break;
    case TuneState::kTuned:
      break;
  }
  return text + print_winner(findings) + print_counts(findings) + print_results(findings, color);
}

ordered_json findings_json(const TuneFindings& findings, const std::string& spec,
                           const LaunchShape& shape, const std::string& values) {
  ordered_json json = {{"spec", spec},
                       {"state", name_of(findings.state)},
                       {"device", findings.facts.device_name},
                       {"hardware", findings.facts.hardware},
                       {"shape", print_shape(shape)},
                       {"values", values},
                       {"variant", findings.variant},
                       {"problem", findings.problem},
                       {"density", findings.density},
                       {"interpreted", findings.interpreted},
                       {"seconds", findings.seconds},
                       {"complete", findings.outcome.complete},
                       {"reused", findings.reused},
                       {"fixed", findings.fixed}};
  if (findings.best) {
    json["best"] = {{"config", findings.best->config}, {"median_us", findings.best->median_us}};
  }
  if (const Result* usual = usual_of(findings); usual != nullptr) {
    json["usual"] = {{"config", config_text(findings, 0)}, {"median_us", usual->median_us}};
  }
  json["measured"] = ordered_json::array();
  for (const Result& result : sorted_results(findings)) {
    json["measured"].push_back({{"id", result.id},
                                {"config", config_text(findings, result.id)},
                                {"status", cache::name_of(result.status)},
                                {"detail", result.detail},
                                {"rung", result.rung},
                                {"median_us", result.median_us},
                                {"spread", result.spread}});
  }
  json["not_measured"] = ordered_json::array();
  const auto add = [&json](const std::string& config, const char* by, const std::string& reason) {
    json["not_measured"].push_back({{"config", config}, {"by", by}, {"reason", reason}});
  };
  for (const tune::Pruned& pruned : findings.ordered.pruned)
    add(config_text(findings, pruned.id), "cost model", pruned.reason);
  for (const tune::Refused& refused : findings.space.refused)
    add(print_config(refused.config), "compiler", refused.reason);
  for (const int id : findings.outcome.unmeasured)
    add(config_text(findings, id), "budget", "the time was up");
  return json;
}

}  // namespace lacuna::tools

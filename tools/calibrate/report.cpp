#include <algorithm>
#include <cstdio>

#include "tools/common/table.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/calibrate/report.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// The mean density and the largest error of one head over samples of one kind.
struct Summary {
  double density = 0, rel_l1 = 0;
  int samples = 0;
};

Summary summarise(const Calibration& calibration, std::size_t head, bool held_out) {
  Summary summary;
  for (std::size_t i = 0; i < calibration.samples.size(); ++i) {
    if (calibration.samples[i].held_out != held_out) continue;
    summary.density += calibration.results[i][head].density;
    summary.rel_l1 = std::max(summary.rel_l1, calibration.results[i][head].rel_l1);
    ++summary.samples;
  }
  if (summary.samples > 0) summary.density /= summary.samples;
  return summary;
}

/// The values of one head: one, or the least and greatest of its rows.
std::string print_values(const SoughtParam& param, std::size_t head) {
  if (param.values.size() == 1) return number(param.values.front());
  const auto rows = static_cast<std::ptrdiff_t>(param.rows);
  const auto first = param.values.begin() + static_cast<std::ptrdiff_t>(head) * rows;
  if (rows == 1) return number(*first);
  const auto [least, greatest] = std::minmax_element(first, first + rows);
  return number(*least) + " to " + number(*greatest);
}

Table head_table(const CalibrateReport& report) {
  const Calibration& calibration = report.calibration;
  const bool has_held_out =
      std::any_of(calibration.samples.begin(), calibration.samples.end(),
                  [](const CalibrationSample& sample) { return sample.held_out; });
  Table table{.head = {"head"}, .rows = {}};
  for (const SoughtParam& param : report.search.params)
    table.head.push_back(param.spec->symbol.name);
  table.head.insert(table.head.end(), {"density", "relative L1"});
  if (has_held_out)
    table.head.insert(table.head.end(), {"held-out density", "held-out relative L1"});
  table.head.emplace_back("");
  for (std::size_t head = 0; head < calibration.dense.size(); ++head) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(std::to_string(head));
    for (const SoughtParam& param : report.search.params) row.push_back(print_values(param, head));
    const Summary fitted = summarise(calibration, head, false);
    row.insert(row.end(), {percent(fitted.density), print_scientific(fitted.rel_l1)});
    if (has_held_out) {
      const Summary held_out = summarise(calibration, head, true);
      row.insert(row.end(), {percent(held_out.density), print_scientific(held_out.rel_l1)});
    }
    row.emplace_back(calibration.dense[head] ? "left dense" : "");
  }
  return table;
}

Table kept_table(const std::vector<KeptTable>& tables) {
  Table table{.head = {"kept tiles", "density predicted", "measured", "largest relative L1"},
              .rows = {}};
  for (const KeptTable& row : tables)
    table.rows.push_back({std::to_string(row.kept), percent(row.predicted), percent(row.measured),
                          print_scientific(row.rel_l1)});
  return table;
}

ordered_json head_json(const CalibrateReport& report, std::size_t head) {
  const Calibration& calibration = report.calibration;
  ordered_json params = ordered_json::object();
  for (const SoughtParam& param : report.search.params) {
    const auto rows = static_cast<std::ptrdiff_t>(param.rows);
    const auto first = param.values.begin() +
                       (param.values.size() == 1 ? 0 : static_cast<std::ptrdiff_t>(head) * rows);
    ordered_json values = ordered_json::array();
    // JSON has no infinite numbers.
    std::for_each(first, first + rows,
                  [&values](double value) { values.push_back(number(value)); });
    params[param.spec->symbol.name] = rows == 1 ? values[0] : values;
  }
  const auto json_of = [](const Summary& summary) {
    return ordered_json{{"density", summary.density}, {"rel_l1", summary.rel_l1}};
  };
  ordered_json json = {{"head", head},
                       {"dense", static_cast<bool>(calibration.dense[head])},
                       {"params", params},
                       {"fitted", json_of(summarise(calibration, head, false))}};
  const Summary held_out = summarise(calibration, head, true);
  if (held_out.samples > 0) json["held_out"] = json_of(held_out);
  return json;
}

}  // namespace

std::string unreachable_message(double target, double least_error, bool quantised) {
  return "--target rel_l1=" + number(target) +
         ": no head can meet it; with nothing left out the best one reaches " +
         print_scientific(least_error) +
         (quantised ? ", the error of the spec's quantisation" : ", the error of rounding");
}

void report_calibration(const CalibrateReport& report, Session& session) {
  const Calibration& calibration = report.calibration;
  ordered_json& document = session.document;
  document["spec"] = calibration.spec;
  document["spec_sha256"] = calibration.spec_sha256;
  document["device"] = report.device;
  document["target"] = {{"rel_l1", calibration.target_rel_l1}};
  document["complete"] = calibration.complete;
  document["launches"] = report.launches;
  if (!report.out.empty()) document["out"] = report.out;
  document["heads"] = ordered_json::array();
  for (std::size_t head = 0; head < calibration.dense.size(); ++head)
    document["heads"].push_back(head_json(report, head));
  for (const KeptTable& row : report.search.tables)
    document["kept"].push_back({{"kept", row.kept},
                                {"predicted_density", row.predicted},
                                {"density", row.measured},
                                {"rel_l1", row.rel_l1}});
  std::string text = calibration.spec + " on " + report.device + ", relative L1 at most " +
                     number(calibration.target_rel_l1) + ", " + std::to_string(report.launches) +
                     " launches\n" + print_table(head_table(report), session.color_stdout());
  if (!report.search.tables.empty())
    text += print_table(kept_table(report.search.tables), session.color_stdout());
  if (!report.out.empty()) text += report.out + "\n";
  session.print(text);
}

}  // namespace lacuna::tools

#include "tools/calibrate/kept.hpp"

#include <algorithm>

#include "tools/calibrate/param/kept_tiles.hpp"
#include "tools/calibrate/state.hpp"

namespace lacuna::tools {
namespace {

using calibrate::KeptTiles;

/// Thresholds [heads, rows] for one number of kept tiles.
struct ThresholdTable {
  int kept = 0;
  double predicted = 0;
  std::vector<double> values;
  std::vector<calibrate::Reached> reached{};  ///< by each group
};

/// [heads, q_tiles] of a sample as [heads, rows] of the parameter: cut or continued.
std::vector<double> to_rows(const std::vector<double>& values, std::size_t heads,
                            std::size_t rows) {
  const std::size_t have = values.size() / heads;
  std::vector<double> result;
  for (std::size_t head = 0; head < heads; ++head)
    for (std::size_t row = 0; row < rows; ++row)
      result.push_back(values[head * have + std::min(row, have - 1)]);
  return result;
}

/// The tile maxima of one sample, narrowed down by launches.
KeptTiles open_sample(SearchState& state, SoughtParam& param, std::size_t sample) {
  const auto heads = static_cast<std::size_t>(state.trial.heads());
  const auto rows = heads * static_cast<std::size_t>(state.trial.q_tiles(sample));
  const auto probe =
      [&state, &param, sample,
       heads](const std::vector<double>& thresholds) -> std::optional<std::vector<std::uint8_t>> {
    param.values = to_rows(thresholds, heads, static_cast<std::size_t>(param.rows));
    return state.probe(sample);
  };
  return {param.scale, rows, static_cast<std::size_t>(state.trial.k_tiles(sample)), probe};
}

std::optional<ThresholdTable> make_table(int kept, std::vector<KeptTiles>& samples,
                                         std::size_t heads, std::size_t rows) {
  ThresholdTable table{kept, 0, std::vector<double>(heads * rows, 0)};
  std::int64_t computed = 0, visible = 0;
  for (KeptTiles& sample : samples) {
    const auto thresholds = sample.thresholds(kept);
    if (!thresholds) return std::nullopt;
    const std::vector<double> values = to_rows(*thresholds, heads, rows);
    for (std::size_t at = 0; at < values.size(); ++at)
      table.values[at] += values[at] / static_cast<double>(samples.size());
    for (std::size_t row = 0; row < thresholds->size(); ++row) {
      computed += sample.count(row, kept).kept;
      visible += sample.count(row, kept).visible;
    }
  }
  table.predicted = visible > 0 ? static_cast<double>(computed) / static_cast<double>(visible) : 1;
  return table;
}

KeptTable measure_table(const SearchState& state, const ThresholdTable& table) {
  KeptTable row{table.kept, table.predicted, 0, 0};
  std::int64_t computed = 0, visible = 0;
  for (const auto& heads : state.measured)
    for (const HeadMeasure& head : heads) {
      computed += head.computed;
      visible += head.visible;
      row.rel_l1 = std::max(row.rel_l1, head.rel_l1);
    }
  row.measured = visible > 0 ? static_cast<double>(computed) / static_cast<double>(visible) : 1;
  return row;
}

/// Every group takes the values of its table (by its place), or stays as in `dense`.
void take_tables(const std::vector<double>& chosen, const std::vector<ThresholdTable>& tables,
                 double dense, SoughtParam& param) {
  const std::size_t each = param.values.size() / chosen.size();
  for (std::size_t at = 0; at < param.values.size(); ++at) {
    const double table = chosen[at / each];
    param.values[at] = table < 0 ? dense : tables[static_cast<std::size_t>(table)].values[at];
  }
}

}  // namespace

KeptSearch search_kept(SearchState& state, SoughtParam& param, const std::vector<int>& kept,
                       double bound) {
  KeptSearch result;
  const auto heads = static_cast<std::size_t>(state.trial.heads());
  const double dense = param.scale.at(0);
  const std::string name = param.spec->symbol.name;
  std::vector<calibrate::Setting> start;
  for (std::size_t group = 0; group < state.groups(param); ++group)
    start.push_back({.value = -1, .beside = 0, .reached = state.reached(param, group)});
  std::vector<KeptTiles> samples;
  for (std::size_t sample = 0; sample < state.fitted; ++sample)
    samples.push_back(open_sample(state, param, sample));
  std::vector<ThresholdTable> tables;
  std::vector<double> places;
  for (const int count : kept) {
    auto table = make_table(count, samples, heads, static_cast<std::size_t>(param.rows));
    if (table) param.values = table->values;
    result.complete = table && state.measure();
    if (!result.complete) break;
    for (std::size_t group = 0; group < start.size(); ++group)
      table->reached.push_back(state.reached(param, group));
    result.tables.push_back(measure_table(state, *table));
    result.params[name + ".kept_" + std::to_string(count)] =
        param_array(param, state.trial.heads());
    places.push_back(static_cast<double>(tables.size()));
    tables.push_back(std::move(*table));
  }
  // Heads do not influence one another: what each reached with a table it reaches again.
  const auto look_up = [&](const std::vector<double>& chosen) {
    std::vector<calibrate::Reached> reached;
    for (std::size_t group = 0; group < chosen.size(); ++group)
      reached.push_back(chosen[group] < 0
                            ? start[group].reached
                            : tables[static_cast<std::size_t>(chosen[group])].reached[group]);
    return std::optional(reached);
  };
  const calibrate::Found found = calibrate::first_within(places, start, bound, look_up);
  std::vector<double> chosen;
  for (const calibrate::Setting& setting : found.groups) chosen.push_back(setting.value);
  take_tables(chosen, tables, dense, param);
  return result;
}

}  // namespace lacuna::tools

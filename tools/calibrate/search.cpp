#include "tools/calibrate/search.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "tools/calibrate/param/bisection.hpp"
#include "tools/calibrate/state.hpp"

namespace lacuna::tools {
namespace {

using calibrate::Evaluate;
using calibrate::Found;
using calibrate::Reached;
using calibrate::Setting;

/// Values of the grid, from its sparse end; the dense end itself is not one of them.
constexpr int kGridValues = 8;
/// SALE gives up where tau has been halved from 0.008 to about 0.0001.
constexpr int kHalvings = 7;
/// Of the error left to what follows; SpargeAttn's code has 0.07 and 0.08.
constexpr double kEarlierShare = 7.0 / 8.0;

/// Parameters whose errors add up: a grid belongs to the one before it.
bool adds_error(const ParamSpec& param) {
  return param.calibrate != Calibrate::kNone && param.calibrate != Calibrate::kGrid;
}

/// The size of a usual value: the default, else what is in the middle of a finite range.
double anchor_of(const ParamSpec& param) {
  if (param.has_default && std::isfinite(param.default_value) && param.default_value != 0)
    return param.default_value;
  return 1;
}

SoughtParam* next_grid(SearchState& state, std::size_t index) {
  const auto& specs = state.document.spec.params;
  const ParamSpec* spec = state.params[index].spec;
  const auto at = static_cast<std::size_t>(spec - specs.data());
  if (at + 1 >= specs.size() || specs[at + 1].calibrate != Calibrate::kGrid) return nullptr;
  return &state.params[index + 1];
}

/// Which end of the range computes more: found by launches on the first sample.
bool find_ends(SearchState& state, std::size_t index) {
  SoughtParam& param = state.params[index];
  const double ends[] = {param.spec->minimum, param.spec->maximum};
  std::int64_t computed[2];
  double error[2];
  const std::vector<double> before = param.values;
  for (std::size_t end = 0; end < 2; ++end) {
    const calibrate::Scale at{ends[end], ends[end], 1, param.scale.whole};
    std::fill(param.values.begin(), param.values.end(), at.at(0));
    const auto heads = state.launch(0);
    if (!heads) return false;
    computed[end] = 0;
    error[end] = 0;
    for (const HeadMeasure& head : heads.value()) {
      computed[end] += head.computed;
      error[end] = std::max(error[end], head.rel_l1);
    }
  }
  const bool most_is_dense =
      computed[1] > computed[0] || (computed[1] == computed[0] && error[1] <= error[0]);
  param.values = before;
  param.scale.dense = ends[most_is_dense ? 1 : 0];
  param.scale.sparse = ends[most_is_dense ? 0 : 1];
  return true;
}

std::vector<Setting> start_of(const SearchState& state, const SoughtParam& param,
                              const SoughtParam* beside) {
  std::vector<Setting> start;
  for (std::size_t group = 0; group < state.groups(param); ++group)
    start.push_back({.value = param.scale.at(0),
                     .beside = beside == nullptr ? 0 : beside->scale.at(0),
                     .reached = state.reached(param, group)});
  return start;
}

void keep(SearchState& state, SoughtParam& param, SoughtParam* beside, const Found& found) {
  std::vector<double> values, others;
  for (const Setting& setting : found.groups) {
    values.push_back(setting.value);
    others.push_back(setting.beside);
  }
  state.set(param, values);
  if (beside != nullptr) state.set(*beside, others);
}

Found search_param(SearchState& state, std::size_t index, double bound) {
  SoughtParam& param = state.params[index];
  SoughtParam* beside = next_grid(state, index);
  const std::vector<Setting> start = start_of(state, param, beside);
  const Evaluate evaluate = [&](const std::vector<double>& values) {
    state.set(param, values);
    return state.evaluate(param);
  };
  if (param.spec->calibrate == Calibrate::kHalve) {
    std::vector<double> values;
    for (int n = 0; n < kHalvings; ++n) values.push_back(std::ldexp(param.spec->default_value, -n));
    return first_within(values, start, bound, evaluate);
  }
  if (beside == nullptr) return bisect(param.scale, start, bound, evaluate);
  std::vector<double> grid;
  for (int n = 0; n < kGridValues; ++n)
    grid.push_back(beside->scale.at(1 - static_cast<double>(n) / kGridValues));
  return search_grid(param.scale, grid, start, bound,
                     [&](double other, const std::vector<double>& values) {
                       state.set(*beside, std::vector<double>(values.size(), other));
                       return evaluate(values);
                     });
}

bool search_one(SearchState& state, std::size_t index, const SearchOptions& options, double bound,
                SearchResult& result) {
  SoughtParam& param = state.params[index];
  state.progress.begin(param.spec->symbol.name);
  if (param.spec->calibrate == Calibrate::kKeptTiles) {
    KeptSearch found = search_kept(state, param, options.kept, bound);
    std::ranges::move(found.tables, std::back_inserter(result.tables));
    result.kept_params.merge(found.params);
    return found.complete;
  }
  const Found found = search_param(state, index, bound);
  keep(state, param, next_grid(state, index), found);
  return found.complete;
}

double least_error(const SearchState& state) {
  double least = std::numeric_limits<double>::infinity();
  for (const SoughtParam& param : state.params)
    for (std::size_t group = 0; group < state.groups(param); ++group)
      least = std::min(least, state.reached(param, group).error);
  return least;
}

std::vector<bool> dense_heads(const std::vector<SoughtParam>& params, std::size_t heads) {
  std::vector<bool> dense(heads, true);
  for (const SoughtParam& param : params)
    for (std::size_t at = 0; at < heads * static_cast<std::size_t>(param.rows); ++at) {
      const double value = param.values[std::min(at, param.values.size() - 1)];
      if (value != param.scale.at(0)) dense[at / static_cast<std::size_t>(param.rows)] = false;
    }
  return dense;
}

SearchState open_state(Trial& trial, std::size_t fitted, const SpecDocument& document,
                       const SearchOptions& options, CalibrateProgress& progress) {
  SearchState state{trial, fitted, document, options.one_for_all, progress, {}, {}};
  for (const ParamSpec& param : document.spec.params) {
    if (param.calibrate == Calibrate::kNone) continue;
    SoughtParam& sought = state.params.emplace_back();
    sought.spec = &param;
    sought.scale = {param.minimum, param.maximum, anchor_of(param),
                    param.symbol.type == ExprType::kI32};
    std::int64_t rows = 1;
    for (std::size_t sample = 0; sample < fitted && sought.by_tile(); ++sample)
      rows = std::max(rows, trial.q_tiles(sample));
    sought.rows = rows;
    const auto count = static_cast<std::size_t>(trial.heads() * rows);
    const double usual = param.has_default ? param.default_value : sought.scale.at(0.5);
    sought.values.assign(param.symbol.shape.empty() ? 1 : count, usual);
  }
  return state;
}

}  // namespace

std::size_t count_launches(const SpecDocument& document, std::size_t fitted, std::size_t tables) {
  constexpr std::size_t kProbes = 30;  // of a table: two maxima, 14 launches each and two to spare
  std::size_t launches = fitted;
  bool bisected_before = false;
  for (const ParamSpec& param : document.spec.params) {
    constexpr std::size_t kSteps = calibrate::kBisections + 1;
    if (param.calibrate != Calibrate::kNone) launches += 2;
    if (param.calibrate == Calibrate::kBisect) launches += kSteps * fitted;
    if (param.calibrate == Calibrate::kGrid && bisected_before)
      launches += kSteps * fitted * (kGridValues - 1);
    if (param.calibrate == Calibrate::kHalve) launches += std::size_t{kHalvings} * fitted;
    if (param.calibrate == Calibrate::kKeptTiles) launches += (kProbes + 2) * tables * fitted;
    if (adds_error(param)) launches += fitted;
    bisected_before = param.calibrate == Calibrate::kBisect;
  }
  return launches;
}

std::optional<SearchResult> search_params(Trial& trial, std::size_t fitted,
                                          const SpecDocument& document,
                                          const SearchOptions& options,
                                          CalibrateProgress& progress) {
  SearchState state = open_state(trial, fitted, document, options, progress);
  progress.begin("ends of ranges");
  for (std::size_t index = 0; index < state.params.size(); ++index)
    if (!find_ends(state, index)) return std::nullopt;
  for (SoughtParam& param : state.params)
    std::fill(param.values.begin(), param.values.end(), param.scale.at(0));
  if (!state.measure()) return std::nullopt;
  SearchResult result;
  result.least_error = least_error(state);
  if (!(result.least_error <= options.target)) return result;
  auto left = static_cast<int>(
      std::count_if(state.params.begin(), state.params.end(),
                    [](const SoughtParam& param) { return adds_error(*param.spec); }));
  for (std::size_t index = 0; index < state.params.size() && result.complete; ++index) {
    if (!adds_error(*state.params[index].spec)) continue;
    const double bound = options.target * std::pow(kEarlierShare, --left);
    result.complete = search_one(state, index, options, bound, result);
    // What comes after starts from what this one reached.
    if (result.complete && left > 0) result.complete = state.measure();
  }
  result.params = std::move(state.params);
  result.dense = dense_heads(result.params, static_cast<std::size_t>(trial.heads()));
  return result;
}

std::vector<int> usual_kept(std::int64_t k_tiles) {
  std::vector<int> kept;
  for (int k = 1; k < k_tiles; k *= 2) {
    kept.push_back(k);
    if (k >= 8 && k + k / 2 < k_tiles) kept.push_back(k + k / 2);
  }
  return kept;
}

}  // namespace lacuna::tools

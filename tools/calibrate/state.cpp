#include "tools/calibrate/state.hpp"

#include <algorithm>
#include <cmath>

namespace lacuna::tools {

using calibrate::Reached;

/// Margin below the limit. Without one, every second sample of other tokens of the same layer would
/// exceed the limit that these tokens just reach.
constexpr double kStandardErrors = 1;

std::size_t SearchState::groups(const SoughtParam& param) const {
  const bool own = !one_for_all && !param.spec->symbol.shape.empty();
  return own ? static_cast<std::size_t>(trial.heads()) : 1;
}

void SearchState::set(SoughtParam& param, const std::vector<double>& values) const {
  const std::size_t each = param.values.size() / values.size();
  for (std::size_t at = 0; at < param.values.size(); ++at) param.values[at] = values[at / each];
}

std::optional<std::vector<HeadMeasure>> SearchState::launch(std::size_t sample) {
  if (progress.stopped()) return std::nullopt;
  auto heads = trial.launch(sample, launch_params(params, trial.heads(), trial.q_tiles(sample)));
  progress.step();
  return heads;
}

std::optional<std::vector<std::uint8_t>> SearchState::probe(std::size_t sample) {
  if (progress.stopped()) return std::nullopt;
  auto mask = trial.probe(sample, launch_params(params, trial.heads(), trial.q_tiles(sample)));
  progress.step();
  return mask;
}

bool SearchState::measure() {
  std::vector<std::vector<HeadMeasure>> all;
  for (std::size_t sample = 0; sample < fitted; ++sample) {
    auto heads = launch(sample);
    if (!heads) return false;
    all.push_back(std::move(*heads));
  }
  measured = std::move(all);
  return true;
}

Reached SearchState::reached_between(std::size_t first, std::size_t end) const {
  Reached reached;
  std::int64_t visible = 0, computed = 0;
  for (const auto& heads : measured)
    for (std::size_t head = first; head < end; ++head) {
      // NaN stays, once met.
      const double error = heads[head].rel_l1 + kStandardErrors * heads[head].standard_error;
      if (std::isnan(error) || error > reached.error) reached.error = error;
      visible += heads[head].visible;
      computed += heads[head].computed;
    }
  reached.density = visible > 0 ? static_cast<double>(computed) / static_cast<double>(visible) : 1;
  return reached;
}

Reached SearchState::reached(const SoughtParam& param, std::size_t group) const {
  const bool all = groups(param) == 1;
  return all ? reached_between(0, static_cast<std::size_t>(trial.heads()))
             : reached_between(group, group + 1);
}

std::optional<std::vector<Reached>> SearchState::evaluate(const SoughtParam& param) {
  if (!measure()) return std::nullopt;
  std::vector<Reached> all;
  for (std::size_t group = 0; group < groups(param); ++group) all.push_back(reached(param, group));
  return all;
}

}  // namespace lacuna::tools

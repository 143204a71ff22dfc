// A search under way: what the parameters are now, and what that reaches. Part of search_params.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/calibrate/param/bisection.hpp"
#include "tools/calibrate/param/sought_param.hpp"
#include "tools/calibrate/progress.hpp"
#include "tools/calibrate/trial.hpp"

namespace lacuna::tools {

struct SearchState {
  Trial& trial;
  std::size_t fitted;
  const SpecDocument& document;
  bool one_for_all;
  CalibrateProgress& progress;
  std::vector<SoughtParam> params;
  std::vector<std::vector<HeadMeasure>> measured;  ///< [sample][head], by measure()

  /// Groups of heads with a number of their own.
  std::size_t groups(const SoughtParam& param) const;

  /// Gives every group its number.
  void set(SoughtParam& param, const std::vector<double>& values) const;

  /// nullopt: the reader wants to stop.
  std::optional<std::vector<HeadMeasure>> launch(std::size_t sample);
  std::optional<std::vector<std::uint8_t>> probe(std::size_t sample);

  /// One launch on each sample, into `measured`; false: stopped.
  bool measure();

  /// What `measured` says: of the worst sample, and of all samples together.
  calibrate::Reached reached(const SoughtParam& param, std::size_t group) const;

  /// measure(), then what the groups of this parameter reached.
  std::optional<std::vector<calibrate::Reached>> evaluate(const SoughtParam& param);

 private:
  calibrate::Reached reached_between(std::size_t first, std::size_t end) const;
};

}  // namespace lacuna::tools

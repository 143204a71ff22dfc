// Thresholds that keep the k tiles with the largest maxima of each work tile (BSFA). The maxima
// are never read: a launch with a threshold for each row says of every tile on which side of it its
// maximum lies, and all rows are narrowed down at once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tools/calibrate/param/scale.hpp"

namespace lacuna::calibrate {

/// The tile mask of a launch with one threshold for each row, [rows, tiles]: 0 not visited, 1
/// visited, 2 gated; nullopt: stop now.
using Probe =
    std::function<std::optional<std::vector<std::uint8_t>>(const std::vector<double>& thresholds)>;

class KeptTiles {
 public:
  /// `scale` leads from a threshold that gates nothing to one that gates all it may.
  KeptTiles(const Scale& scale, std::size_t rows, std::size_t tiles, Probe probe);

  /// For each row the mean of the k-th and the (k + 1)-th largest maximum; the dense end where at
  /// most k tiles can be gated. Each maximum is found to 2^-14 of the way. nullopt: stopped.
  std::optional<std::vector<double>> thresholds(int k);

  /// Tiles that `thresholds(k)` lets a launch compute, and those it could visit at all.
  struct Count {
    std::int64_t kept = 0, visible = 0;
  };
  Count count(std::size_t row, int k) const;

 private:
  bool begin();
  bool narrow(const std::vector<double>& shares);
  double undecided(std::size_t row, std::size_t k) const;
  double largest(std::size_t row, std::size_t k, bool upper) const;

  Scale scale_;
  std::size_t rows_, tiles_;
  Probe probe_;
  bool begun_ = false;
  /// Of each tile that can be gated: its maximum lies between these shares of the way.
  struct Bounds {
    double lower = 0, upper = 1;
    std::size_t tile = 0;
  };
  std::vector<std::vector<Bounds>> bounds_;  ///< for each row
  std::vector<std::int64_t> exempt_;         ///< visited, never gated; for each row
};

}  // namespace lacuna::calibrate

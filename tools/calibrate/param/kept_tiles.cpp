#include "tools/calibrate/param/kept_tiles.hpp"

#include <algorithm>
#include <functional>

#include "runtime/base/threads/parallel_for.hpp"

namespace lacuna::calibrate {
namespace {

constexpr double kResolution = 1.0 / (1 << 14);
constexpr double kDecided = -1;
constexpr std::uint8_t kVisited = 1, kGated = 2;

}  // namespace

KeptTiles::KeptTiles(const Scale& scale, std::size_t rows, std::size_t tiles, Probe probe)
    : scale_(scale),
      rows_(rows),
      tiles_(tiles),
      probe_(std::move(probe)),
      bounds_(rows),
      exempt_(rows, 0) {}

/// Which tiles can be gated at all: those that are at the sparse end.
bool KeptTiles::begin() {
  if (begun_) return true;
  const auto codes = probe_(std::vector<double>(rows_, scale_.at(1)));
  if (!codes) return false;
  for (std::size_t row = 0; row < rows_; ++row)
    for (std::size_t tile = 0; tile < tiles_; ++tile) {
      const std::uint8_t code = (*codes)[row * tiles_ + tile];
      if (code == kGated) bounds_[row].push_back({.tile = tile});
      if (code == kVisited) ++exempt_[row];
    }
  begun_ = true;
  return true;
}

/// One launch: a share for each row, kDecided for those that need none.
bool KeptTiles::narrow(const std::vector<double>& shares) {
  std::vector<double> thresholds;
  thresholds.reserve(shares.size());
  for (const double share : shares) thresholds.push_back(scale_.at(std::max(share, 0.0)));
  const auto codes = probe_(thresholds);
  if (!codes) return false;
  for (std::size_t row = 0; row < rows_; ++row) {
    if (shares[row] == kDecided) continue;
    for (Bounds& bounds : bounds_[row]) {
      const bool gated = (*codes)[row * tiles_ + bounds.tile] == kGated;
      double& side = gated ? bounds.upper : bounds.lower;
      side = gated ? std::min(side, shares[row]) : std::max(side, shares[row]);
    }
  }
  return true;
}

/// The k-th largest of one side of all bounds of a row, k from 1.
double KeptTiles::largest(std::size_t row, std::size_t k, bool upper) const {
  std::vector<double> sides;
  for (const Bounds& bounds : bounds_[row]) sides.push_back(upper ? bounds.upper : bounds.lower);
  const auto nth = sides.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(sides.begin(), nth, sides.end(), std::greater<>());
  return *nth;
}

/// The share that halves what is not known of the k-th or (k + 1)-th maximum.
double KeptTiles::undecided(std::size_t row, std::size_t k) const {
  if (bounds_[row].size() <= k) return kDecided;
  for (const std::size_t rank : {k, k + 1}) {
    const double low = largest(row, rank, false), high = largest(row, rank, true);
    if (high - low > kResolution) return (low + high) / 2;
  }
  return kDecided;
}

std::optional<std::vector<double>> KeptTiles::thresholds(int k) {
  const auto rank = static_cast<std::size_t>(k);
  if (!begin()) return std::nullopt;
  for (;;) {
    std::vector<double> shares(rows_);
    const auto items = static_cast<std::int64_t>(rows_);
    parallel_for(worker_count(0, items), items, [&](std::int64_t item, std::size_t) {
      const auto row = static_cast<std::size_t>(item);
      shares[row] = undecided(row, rank);
    });
    const bool done =
        std::all_of(shares.begin(), shares.end(), [](double share) { return share == kDecided; });
    if (done) break;
    if (!narrow(shares)) return std::nullopt;
  }
  std::vector<double> thresholds;
  for (std::size_t row = 0; row < rows_; ++row) {
    const auto maximum = [&](std::size_t r) {
      return scale_.at((largest(row, r, false) + largest(row, r, true)) / 2);
    };
    thresholds.push_back(bounds_[row].size() <= rank ? scale_.at(0)
                                                     : (maximum(rank) + maximum(rank + 1)) / 2);
  }
  return thresholds;
}

KeptTiles::Count KeptTiles::count(std::size_t row, int k) const {
  const auto gateable = static_cast<std::int64_t>(bounds_[row].size());
  return {exempt_[row] + std::min<std::int64_t>(gateable, k), exempt_[row] + gateable};
}

}  // namespace lacuna::calibrate

#include "runtime/tune/best_of.hpp"

namespace lacuna::tune {
namespace {

constexpr double kTie = 1.02;

}  // namespace

std::optional<Result> best_of(std::span<const Result> results) {
  const Result* fastest = nullptr;
  for (const Result& result : results) {
    if (result.status != TuningStatus::kOk) continue;
    if (fastest == nullptr || result.median_us < fastest->median_us) fastest = &result;
  }
  if (fastest == nullptr) return std::nullopt;
  const Result* best = fastest;
  for (const Result& result : results) {
    const bool is_tie =
        result.status == TuningStatus::kOk && result.median_us <= fastest->median_us * kTie;
    if (is_tie && result.id < best->id) best = &result;
  }
  return *best;
}

}  // namespace lacuna::tune

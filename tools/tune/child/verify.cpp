#include "tools/tune/child/verify.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lacuna::tune {
namespace {

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

bool is_same_kind(float a, float b) {
  if (std::isfinite(a) || std::isfinite(b)) return std::isfinite(a) && std::isfinite(b);
  return std::isnan(a) ? std::isnan(b) : a == b;
}

}  // namespace

Tolerance tolerance_of(const VariantSpec& spec, DType dtype) {
  if (spec.quantise.v_bits == 8) return {6e-2, 8e-2};
  if (spec.quantise.qk_bits == 8) return {2e-2, 3e-2};
  switch (dtype) {
    case DType::kF32:
      return {1e-5, 1e-4};
    case DType::kF16:
      return {5e-4, 1e-3};
    case DType::kBF16:
      break;
  }
  return {4e-3, 8e-3};
}

Tolerance between_two(const Tolerance& allowed) {
  return {2 * allowed.rel_l1, 2 * allowed.rel_max};
}

std::string compare_outputs(std::span<const float> expected, std::span<const float> got,
                            const Tolerance& allowed) {
  if (expected.size() != got.size())
    return "expected " + std::to_string(expected.size()) + " elements, got " +
           std::to_string(got.size());
  double sum = 0, sum_error = 0, largest = 0, largest_error = 0;
  for (std::size_t n = 0; n < expected.size(); ++n) {
    if (!is_same_kind(expected[n], got[n]))
      return "element " + std::to_string(n) + ": expected " + std::to_string(expected[n]) +
             ", got " + std::to_string(got[n]);
    if (!std::isfinite(expected[n])) continue;
    const double a = expected[n], difference = std::abs(a - static_cast<double>(got[n]));
    sum += std::abs(a), sum_error += difference;
    largest = std::max(largest, std::abs(a));
    largest_error = std::max(largest_error, difference);
  }
  const double rel_l1 = sum > 0 ? sum_error / sum : sum_error;
  const double rel_max = largest > 0 ? largest_error / largest : largest_error;
  if (rel_l1 > allowed.rel_l1)
    return "relative L1 error " + scientific(rel_l1) + ", allowed " + scientific(allowed.rel_l1);
  if (rel_max > allowed.rel_max)
    return "largest relative error " + scientific(rel_max) + ", allowed " +
           scientific(allowed.rel_max);
  return "";
}

}  // namespace lacuna::tune

#include "runtime/tune/bucket.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "cache/key.hpp"
#include "compiler/passes/check_request.hpp"

namespace lacuna::tune {
namespace {

int nearest_log2(double value) {
  return static_cast<int>(std::lround(std::log2(std::max(1.0, value))));
}

constexpr int kMostLog2 = 30;
constexpr int kSparsest = 7;

}  // namespace

Bucket bucket_of(const LaunchShape& shape) {
  return {nearest_log2(static_cast<double>(shape.n_b) * shape.n_h),
          shape.n_h / std::max(1, shape.n_h_kv), nearest_log2(shape.n_q), nearest_log2(shape.n_k)};
}

std::string print_bucket(const Bucket& bucket) {
  const auto power = [](int exponent) { return std::to_string(std::int64_t{1} << exponent); };
  return "rows=" + power(bucket.rows) + " group=" + std::to_string(bucket.group) +
         " n_q=" + power(bucket.n_q) + " n_k=" + power(bucket.n_k);
}

std::optional<Bucket> parse_bucket(const std::string& text) {
  long long rows = 0, group = 0, n_q = 0, n_k = 0;
  if (std::sscanf(text.c_str(), "rows=%lld group=%lld n_q=%lld n_k=%lld", &rows, &group, &n_q,
                  &n_k) != 4)
    return std::nullopt;
  const auto legal = [](long long value) { return value >= 1 && value <= 1LL << kMostLog2; };
  if (!legal(rows) || !legal(group) || !legal(n_q) || !legal(n_k)) return std::nullopt;
  const auto log2_of = [](long long value) { return nearest_log2(static_cast<double>(value)); };
  const Bucket bucket{log2_of(rows), static_cast<int>(group), log2_of(n_q), log2_of(n_k)};
  if (print_bucket(bucket) != text) return std::nullopt;
  return bucket;
}

double distance(const Bucket& a, const Bucket& b) {
  constexpr double kOfRows = 0.25, kOfGroup = 0.25;
  const double groups =
      std::abs(std::log2(static_cast<double>(a.group)) - std::log2(static_cast<double>(b.group)));
  return std::abs(a.n_q - b.n_q) + std::abs(a.n_k - b.n_k) + kOfRows * std::abs(a.rows - b.rows) +
         kOfGroup * groups;
}

int work_of(const Bucket& bucket) { return bucket.rows + bucket.n_q + bucket.n_k; }

std::string density_bucket(double density) {
  const int halvings =
      density <= 0 ? kSparsest
                   : std::clamp(static_cast<int>(std::lround(-std::log2(density))), 0, kSparsest);
  return halvings == 0 ? "1" : "1/" + std::to_string(1 << halvings);
}

double density_of(const std::string& bucket) {
  for (int halvings = 0; halvings <= kSparsest; ++halvings) {
    const double density = 1.0 / static_cast<double>(1 << halvings);
    if (density_bucket(density) == bucket) return density;
  }
  return 0;
}

std::string variant_of(const VariantSpec& spec, const BuildOptions& options) {
  VariantSpec bare = without_let(spec);
  bare.name = "variant";
  bare.doc.clear();
  bare.source.clear();
  for (ParamSpec& param : bare.params) {
    param.doc.clear();
    param.unit.clear();
    param.calibrate = Calibrate::kNone;
  }
  bare.tile = {};
  bare.attention.head_dim = {};
  bare.attention.dtype = {};
  const int width = head_dim_v(spec, options);
  return cache::sha256_hex(
             print_spec(bare) + "\nhead_dim " + std::to_string(options.head_dim) +
             (width != options.head_dim ? "\nhead_dim_v " + std::to_string(width) : "") +
             (spec.branch.means > 1 ? "\nmeans " + std::to_string(spec.branch.means) : "") +
             (spec.branch.query_means > 1
                  ? "\nquery_means " + std::to_string(spec.branch.query_means)
                  : "") +
             (spec.branch.dims.empty() ? "" : "\ndims " + spec.branch.dims) +
             (options.family ? "\nfamily " + std::string(name_of(*options.family)) : "") +
             "\ndtype " + std::string(name_of(options.dtype)))
      .substr(0, 32);
}

std::string hardware_name(const std::string& device_name, int processors) {
  constexpr std::size_t kMostLetters = 64;
  std::string name;
  for (const char c : device_name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_upper || is_kept) {
      name += static_cast<char>(is_upper ? c - 'A' + 'a' : c);
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
    if (name.size() >= kMostLetters) break;
  }
  if (name.empty() || name.back() != '-') name += '-';
  return name + std::to_string(processors);
}

}  // namespace lacuna::tune

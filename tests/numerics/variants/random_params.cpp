#include "tests/numerics/variants/random_params.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/compile/random_spec.hpp"

namespace lacuna::numerics {
namespace {

constexpr int kDefaultPercent = 8;  ///< of parameters that are not passed

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// The elements of one parameter.
class Elements {
 public:
  Elements(const ParamSymbol& symbol, std::uint32_t seed)
      : symbol_(symbol), range_(test::range_of(symbol.name)), key_(mixed(seed)) {
    for (const char letter : symbol.name) key_ = mixed(key_ ^ static_cast<unsigned char>(letter));
    step_ = 8 + static_cast<int>(mixed(key_ ^ 1) % 80);
    is_sorted_ = symbol.monotone || mixed(key_ ^ 2) % 3 != 0;
  }

  bool stays_default() const { return mixed(key_ ^ 3) % 100 < kDefaultPercent; }

  /// At an index for each dimension.
  double at(const std::vector<int>& index) const {
    const bool has_tokens = !symbol_.shape.empty() && is_of_tokens(symbol_.shape.back());
    if (!has_tokens || symbol_.shape.size() > 3) return between(hash(index));
    std::vector<int> row = index;
    const int token = row.back();
    row.back() = 0;
    const int shift = static_cast<int>(mixed(hash(row)) % 16);
    if (symbol_.type == ExprType::kF32 && !symbol_.monotone) return between(hash(index));
    if (symbol_.type == ExprType::kF32) return along(token + shift, 300.0);
    if (symbol_.name == "start") return start_of(token, shift);
    const int run = (token + shift) / step_;  // a document, a group
    const int count = static_cast<int>(range_.high - range_.low) + 1;
    if (is_sorted_) return range_.low + std::min(run, count - 1);
    return range_.low + static_cast<int>(mixed(hash(row) ^ static_cast<unsigned>(run)) %
                                         static_cast<unsigned>(count));
  }

 private:
  static bool is_of_tokens(const ParamDim& dim) {
    return dim.axis == ParamAxis::kNQ || dim.axis == ParamAxis::kNK;
  }

  std::uint64_t hash(const std::vector<int>& index) const {
    std::uint64_t x = key_;
    for (const int place : index) x = mixed(x ^ static_cast<unsigned>(place));
    return x;
  }

  double between(std::uint64_t drawn) const {
    const double unit = static_cast<double>(drawn >> 40) * 0x1p-24;
    if (symbol_.type == ExprType::kF32) return range_.low + unit * (range_.high - range_.low);
    return range_.low + std::floor(unit * (range_.high - range_.low + 1));
  }

  double along(int token, double tokens) const {
    return range_.low + (range_.high - range_.low) * std::min(token / tokens, 1.0);
  }

  /// The first key of a row: in steps, of which some are those of the diagonal.
  double start_of(int token, int shift) const {
    const int place = (token + shift) / step_ * step_;
    return std::clamp(static_cast<double>(place), range_.low, range_.high);
  }

  const ParamSymbol& symbol_;
  const test::ParamRange& range_;
  std::uint64_t key_;
  int step_ = 1;
  bool is_sorted_ = false;
};

}  // namespace

int ParamExtents::of(const ParamDim& dim) const {
  switch (dim.axis) {
    case ParamAxis::kBatch:
      return entries;
    case ParamAxis::kHeads:
      return heads;
    case ParamAxis::kQTiles:
      return q_tiles;
    case ParamAxis::kKTiles:
      return k_tiles;
    case ParamAxis::kNQ:
      return n_q;
    case ParamAxis::kNK:
      return n_k;
    case ParamAxis::kFixed:
      break;
  }
  return dim.extent;
}

void draw_params(const VariantSpec& spec, const ParamExtents& extents, std::uint32_t seed,
                 RandomParams& params) {
  for (const ParamSpec& param : spec.params) {
    const ParamSymbol& symbol = param.symbol;
    const Elements elements(symbol, seed);
    const bool stays_default = param.has_default && elements.stays_default();
    ParamValue value{symbol.name, symbol.type == ExprType::kI32, {}, {}};
    ParamView view;
    std::int64_t count = 1;
    for (std::size_t n = symbol.shape.size(); n-- > 0;) {
      view.extent[n] = extents.of(symbol.shape[n]);
      view.stride[n] = count;
      count *= view.extent[n];
    }
    for (std::size_t n = 0; n < symbol.shape.size(); ++n) value.shape.push_back(view.extent[n]);
    std::vector<float>& reals = params.f32.emplace_back();
    std::vector<std::int32_t>& integers = params.i32.emplace_back();
    std::vector<int> index(symbol.shape.size());
    for (std::int64_t at = 0; at < count; ++at) {
      for (std::size_t n = 0; n < index.size(); ++n)
        index[n] = static_cast<int>(at / view.stride[n] % view.extent[n]);
      const double x = stays_default ? param.default_value : elements.at(index);
      reals.push_back(static_cast<float>(x));
      integers.push_back(static_cast<std::int32_t>(x));
      value.values.push_back(value.is_i32 ? x : static_cast<double>(reals.back()));
    }
    view.data = value.is_i32 ? static_cast<const void*>(integers.data())
                             : static_cast<const void*>(reals.data());
    if (symbol.shape.empty()) {
      if (value.is_i32) view.value.i32 = integers[0];
      if (!value.is_i32) view.value.f32 = reals[0];
      view.data = nullptr;
    }
    params.views.push_back(view);
    if (!stays_default) params.passed.push_back(value);
  }
}

}  // namespace lacuna::numerics

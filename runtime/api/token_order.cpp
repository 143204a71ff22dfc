#include "runtime/api/token_order.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <vector>

namespace lacuna {
namespace {

using Point = std::array<std::uint32_t, 3>;

/// Index of a point along the Hilbert curve of a cube of 2^bits, after Skilling (Programming the
/// Hilbert curve, 2004). From the highest bit down, each coordinate either inverts or exchanges the
/// lower bits of the first one, which undoes the turns of the curve's smaller copies; what remains
/// is a Gray code over the interleaved bits.
std::uint64_t hilbert_index(Point point, int bits) {
  for (int bit = bits - 1; bit > 0; --bit) {
    const std::uint32_t lower = (1U << bit) - 1;
    for (std::uint32_t& coordinate : point) {
      if ((coordinate >> bit & 1U) != 0) {
        point[0] ^= lower;
      } else {
        const std::uint32_t exchanged = (point[0] ^ coordinate) & lower;
        point[0] ^= exchanged;
        coordinate ^= exchanged;
      }
    }
  }
  std::uint64_t gray = 0;
  for (int bit = bits - 1; bit >= 0; --bit) {
    for (const std::uint32_t coordinate : point) gray = gray << 1 | (coordinate >> bit & 1U);
  }
  // The parity of the bits above and at each place.
  for (int shift = 1; shift < 64; shift *= 2) gray ^= gray >> shift;
  return gray;
}

/// Sides of a field of tokens or cubes.
struct Field {
  int t, h, w;
};

/// The points of a field in Hilbert order; a point is named by its place in memory, [t][h][w].
std::vector<std::int32_t> hilbert_order(const Field& field) {
  const int longest = std::max({field.t, field.h, field.w, 1});
  const auto bits = static_cast<int>(std::bit_width(static_cast<unsigned>(longest - 1)));
  std::vector<std::uint64_t> index;
  for (std::uint32_t t = 0; t < static_cast<std::uint32_t>(field.t); ++t)
    for (std::uint32_t h = 0; h < static_cast<std::uint32_t>(field.h); ++h)
      for (std::uint32_t w = 0; w < static_cast<std::uint32_t>(field.w); ++w)
        index.push_back(hilbert_index({t, h, w}, bits));
  std::vector<std::int32_t> order(index.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::int32_t n) { return index[static_cast<std::size_t>(n)]; });
  return order;
}

/// A dimension of the field: its extent, and how far apart its points lie in memory.
struct Axis {
  int extent, stride;
};

std::vector<std::int32_t> nested_order(Axis outer, Axis middle, Axis inner) {
  std::vector<std::int32_t> order;
  for (int a = 0; a < outer.extent; ++a)
    for (int b = 0; b < middle.extent; ++b)
      for (int c = 0; c < inner.extent; ++c)
        order.push_back(a * outer.stride + b * middle.stride + c * inner.stride);
  return order;
}

std::vector<std::int32_t> order_of(TokenOrder kind, const Field& field) {
  const Axis t{field.t, field.h * field.w}, h{field.h, field.w}, w{field.w, 1};
  switch (kind) {
    case TokenOrder::kHilbert:
      return hilbert_order(field);
    case TokenOrder::kColumnMajor:
      return nested_order(t, w, h);
    case TokenOrder::kTimeMajor:
      return nested_order(h, w, t);
    default:
      return nested_order(t, h, w);
  }
}

int cubes_of(int tokens, int cube) { return (tokens + cube - 1) / cube; }

}  // namespace

bool generates_order(const PermuteSpec& permute) {
  return permute.order != TokenOrder::kNone && permute.order != TokenOrder::kExternal;
}

std::size_t token_count(const PermuteSpec& permute) {
  return static_cast<std::size_t>(permute.t) * static_cast<std::size_t>(permute.h) *
         static_cast<std::size_t>(permute.w);
}

void fill_token_order(const PermuteSpec& permute, std::span<std::int32_t> order) {
  const Field cubes{cubes_of(permute.t, permute.cube_t), cubes_of(permute.h, permute.cube_h),
                    cubes_of(permute.w, permute.cube_w)};
  auto next = order.begin();
  for (const std::int32_t cube : order_of(permute.order, cubes)) {
    const int t = cube / (cubes.h * cubes.w) * permute.cube_t;
    const int h = cube / cubes.w % cubes.h * permute.cube_h;
    const int w = cube % cubes.w * permute.cube_w;
    const Field inside{std::min(permute.cube_t, permute.t - t),
                       std::min(permute.cube_h, permute.h - h),
                       std::min(permute.cube_w, permute.w - w)};
    for (const std::int32_t n : order_of(permute.order, inside)) {
      const int at_t = t + n / (inside.h * inside.w), at_h = h + n / inside.w % inside.h;
      *next++ = (at_t * permute.h + at_h) * permute.w + w + n % inside.w;
    }
  }
}

}  // namespace lacuna

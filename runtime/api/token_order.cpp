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

void fill_hilbert(const PermuteSpec& permute, std::span<std::int32_t> order) {
  const int longest = std::max({permute.t, permute.h, permute.w, 1});
  const int bits = std::bit_width(static_cast<unsigned>(longest - 1));
  std::vector<std::uint64_t> index;
  index.reserve(order.size());
  for (std::uint32_t t = 0; t < static_cast<std::uint32_t>(permute.t); ++t) {
    for (std::uint32_t h = 0; h < static_cast<std::uint32_t>(permute.h); ++h) {
      for (std::uint32_t w = 0; w < static_cast<std::uint32_t>(permute.w); ++w) {
        index.push_back(hilbert_index({t, h, w}, bits));
      }
    }
  }
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::int32_t n) { return index[static_cast<std::size_t>(n)]; });
}

/// A dimension of the field: its extent, and how far apart its tokens lie in memory.
struct Axis {
  int extent, stride;
};

void fill_nested(Axis outer, Axis middle, Axis inner, std::span<std::int32_t> order) {
  auto next = order.begin();
  for (int a = 0; a < outer.extent; ++a) {
    for (int b = 0; b < middle.extent; ++b) {
      for (int c = 0; c < inner.extent; ++c) {
        *next++ = a * outer.stride + b * middle.stride + c * inner.stride;
      }
    }
  }
}

}  // namespace

bool generates_order(const PermuteSpec& permute) {
  return permute.order != TokenOrder::kNone && permute.order != TokenOrder::kExternal;
}

std::size_t token_count(const PermuteSpec& permute) {
  return static_cast<std::size_t>(permute.t) * static_cast<std::size_t>(permute.h) *
         static_cast<std::size_t>(permute.w);
}

void fill_token_order(const PermuteSpec& permute, std::span<std::int32_t> order) {
  const Axis t{permute.t, permute.h * permute.w}, h{permute.h, permute.w}, w{permute.w, 1};
  switch (permute.order) {
    case TokenOrder::kHilbert:
      return fill_hilbert(permute, order);
    case TokenOrder::kColumnMajor:
      return fill_nested(t, w, h, order);
    case TokenOrder::kTimeMajor:
      return fill_nested(h, w, t, order);
    default:
      return fill_nested(t, h, w, order);
  }
}

}  // namespace lacuna

// Where the rows of a sequence go in tensors of a batch, as numbers or as codes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tests/numerics/harness/codes/codes.hpp"

namespace lacuna::numerics {

inline std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

/// [entries, heads, rows, d], all NaN.
struct Rows {
  int heads, rows, d;
  std::vector<double> values;

  Rows(int entries, int n_heads, int n_rows, int n_d)
      : heads(n_heads),
        rows(n_rows),
        d(n_d),
        values(size_of(std::int64_t{entries} * n_heads * n_rows * n_d),
               std::numeric_limits<double>::quiet_NaN()) {}
  double* at(int entry, int head, int row) {
    return values.data() + ((std::int64_t{entry} * heads + head) * rows + row) * d;
  }
};

/// Where row n of a head of a sequence goes.
template <class At>
void scatter(const std::vector<double>& from, int heads, int count, int d, Rows& to, const At& at) {
  for (int h = 0; h < heads; ++h) {
    for (int n = 0; n < count; ++n) {
      const auto [entry, row] = at(n);
      std::copy_n(from.data() + (std::int64_t{h} * count + n) * d, d, to.at(entry, h, row));
    }
  }
}

/// The numbers of a sequence's rows become those of codes, which are written where its rows go.
template <class At>
void encode_rows(std::vector<double>& numbers, DType dtype, int heads, int count, Codes& to,
                 Rows& rows, const At& at) {
  for (int h = 0; h < heads; ++h) {
    for (int n = 0; n < count; ++n) {
      const auto [entry, row] = at(n);
      const std::span own(numbers.data() + (std::int64_t{h} * count + n) * rows.d, size_of(rows.d));
      to.encode(own, dtype, size_of(rows.at(entry, h, row) - rows.values.data()),
                size_of(entry * heads + h));
    }
  }
}

}  // namespace lacuna::numerics

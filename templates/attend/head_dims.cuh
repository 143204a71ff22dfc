// Widths of rows: of queries and keys, and of values and O, which a Config may say apart.
#pragma once

namespace lacuna {

/// Config::kHeadDimV, elements of a row of V and O; those of Q and K where a Config does not say.
template <class Config>
constexpr decltype(Config::kHeadDimV) head_dim_v(int) {
  return Config::kHeadDimV;
}
template <class Config>
constexpr int head_dim_v(...) {
  return Config::kHeadDim;
}

}  // namespace lacuna

// How many tiles so many tokens take, and how many tokens those tiles have room for.
#pragma once

#include <type_traits>

namespace lacuna {

template <class Integer>
constexpr Integer ceil_div(Integer count, std::type_identity_t<Integer> size) {
  return (count + size - 1) / size;
}
constexpr int round_up(int count, int size) { return ceil_div(count, size) * size; }

}  // namespace lacuna

// How many tiles hold so many tokens, and how many tokens they have room for.
#pragma once

namespace lacuna {

constexpr int ceil_div(int count, int size) { return (count + size - 1) / size; }
constexpr int round_up(int count, int size) { return ceil_div(count, size) * size; }

}  // namespace lacuna

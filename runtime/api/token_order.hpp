// Token orders of a T x H x W field whose tokens lie [t][h][w] in memory: which token of the caller
// is the n-th of the computation. Orders that keep neighbours in space together make the tiles of
// attention more alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compiler/spec/spec.hpp"

namespace lacuna {

/// Is the order one that the library generates (and not none, or the caller's own)?
bool generates_order(const PermuteSpec& permute);

std::size_t token_count(const PermuteSpec& permute);

/// Fills `order`, token_count(permute) long:
///   hilbert       along the Hilbert curve of the enclosing cube of 2^m
///   row_major     [t][h][w]: as they lie
///   column_major  [t][w][h]: along columns of each frame
///   time_major    [h][w][t]: one place through all frames, then the next
void fill_token_order(const PermuteSpec& permute, std::span<std::int32_t> order);

}  // namespace lacuna

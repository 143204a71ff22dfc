// The exchange in chunks, so that it runs under attention: a rank's KV heads come a few at a time,
// and the pieces of those that are there are launched.
//
//   exchange    | 1 | 2      | 5                   |        KV heads of a chunk
//   attention       | 1        | 2                | 5 ...
#pragma once

#include <vector>

#include "runtime/group/deal.hpp"

namespace lacuna::group {

/// The heads of each chunk, of `heads` in all. The first chunk, under which nothing runs, is one
/// head; each further one is at most twice what came before it, and so under way no longer than
/// that is computed, as long as a head takes at least half as long to come as to compute. Where
/// results travel (`ends_small`), the last chunk is one head too: nothing runs under its results.
std::vector<std::int32_t> chunk_heads(std::int32_t heads, bool ends_small);

/// Cuts the pieces of each rank by chunks of its KV heads, or of its query heads where it has one
/// KV head, and puts them in the order of the chunks; within one they stay as they are. Early ones
/// come first and last. Returns the most chunks of a rank.
int cut_into_chunks(std::vector<std::vector<Piece>>& ranks, const LaunchShape& shape,
                    const CutRules& rules, bool ends_small);

}  // namespace lacuna::group

// Who computes what: three schemes, each a list of pieces for every rank. A piece has all keys of
// its heads, so no two ranks share a row and nothing is merged.
#pragma once

#include <string>
#include <vector>

#include "runtime/group/layout.hpp"
#include "runtime/group/work.hpp"

namespace lacuna::group {

enum class Scheme : std::uint8_t {
  kGather,  ///< each rank computes the queries it holds: only K and V travel
  kRows,    ///< all heads, queries cut where the work is equal: K, V, and the queries that move
  kHeads,   ///< heads one after the other, cut where the work is equal: Q, K, V and O of the heads
};
inline constexpr Scheme kSchemes[] = {Scheme::kGather, Scheme::kRows, Scheme::kHeads};
std::string_view name_of(Scheme scheme);

/// One launch: these query heads of these queries. Heads are of one KV head, or all of several.
struct Piece {
  Range heads, q;
  int chunk = 0;       ///< of the exchange, with its KV heads: chunks.hpp
  bool early = false;  ///< its rank holds all that it needs
};

struct Deal {
  Scheme scheme = Scheme::kGather;
  std::vector<std::vector<Piece>> ranks;
  std::string refusal;  ///< why the scheme cannot be used; "" if it can
};

Deal deal_work(Scheme scheme, const std::vector<Share>& shares, const LaunchShape& shape,
               const CutRules& rules, const Work& work);

/// Marks pieces as early whose queries, and all keys that these see, are held by the rank that
/// computes them. A piece of which only the first queries are such is cut behind these.
void mark_early(std::vector<Piece>& pieces, const Share& share, const LaunchShape& shape,
                const CutRules& rules, const Work& work);

/// Query tiles' beginnings and ends in pairs, see Work::pairs_of_unit.
double overhead_of(const std::vector<Piece>& pieces, const Work& work, std::int32_t unit);

/// Pairs of tokens that a rank computes.
double pairs_of(const std::vector<Piece>& pieces, const Work& work, std::int32_t unit);

}  // namespace lacuna::group

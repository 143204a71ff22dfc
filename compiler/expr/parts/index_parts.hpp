// Elements of tables whose indices are sums of what a row makes of them and of what a key makes:
// bias[q // 64 - k // 64 + 63, q % 64 - k % 64 + 63], as images have it, or bias[q, k // 64]. The
// place of an element is then one place of its row plus one of its key, so a kernel works these out
// once for a row and once for a key.
#pragma once

#include <optional>
#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// An index: of_row + of_key, modulo 2^32.
struct IndexParts {
  Expr of_row;  ///< does not read k
  Expr of_key;  ///< does not read q
};

/// Of each index of a formula that is one element. nullopt: anything else, or an index that is no
/// such sum.
std::optional<std::vector<IndexParts>> index_parts(const Expr& element);

}  // namespace lacuna

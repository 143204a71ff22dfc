// Elements of tables each of whose indices is a sum of two terms, one that depends on the query and
// one that depends on the key: bias[q // 64 - k // 64 + 63, q % 64 - k % 64 + 63], a relative
// position in an image, or bias[q, k // 64]. The address of such an element is a sum of two offsets
// as well, so a kernel computes one offset for each query and one for each key, and adds them for
// each score.
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

// Elements of tables in the rest of a score formula (shared_parts.hpp) for which a kernel does not
// compute every index again for each score: elements along a line of keys (table_line.hpp), and
// elements whose indices are a term of the query plus a term of the key (index_parts.hpp).
//
//   bias[q, k]                            on a line
//   rows[q, k // w] + bias[k % w - q]     both by parts of their indices
#pragma once

#include <optional>
#include <vector>

#include "compiler/expr/parts/index_parts.hpp"
#include "compiler/expr/parts/table_line.hpp"

namespace lacuna {

struct ElementPart {
  /// Stands for the element in the rest: one of the variables that attention.score cannot name.
  Variable variable;
  Expr element;  ///< f32
  std::optional<TableLine> line;
  std::vector<IndexParts> indices;  ///< where it lies on no line
};

struct ElementParts {
  std::vector<ElementPart> parts;  ///< of several elements no more than kernels hold at a time
  Expr rest;
};

ElementParts element_parts(Expr rest);

}  // namespace lacuna

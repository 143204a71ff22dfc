// Elements of tables in the rest of a score formula (shared_parts.hpp) whose addresses a kernel
// need not compute from all indices for each score: elements along a line of keys (table_line.hpp),
// and elements whose indices are a term of the query plus a term of the key (index_parts.hpp).
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
  Variable variable;  ///< which no rest reads, and which stands for the element
  Expr element;       ///< f32
  std::optional<TableLine> line;
  std::vector<IndexParts> indices;  ///< where it lies on no line
};

struct ElementParts {
  std::vector<ElementPart> parts;  ///< of several elements no more than kernels hold at a time
  Expr rest;
};

ElementParts element_parts(Expr rest);

}  // namespace lacuna

#pragma once

#include <cstddef>
#include <span>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// The names that `let` defines, of which a formula may read the first `known`: for a definition
/// those before it.
struct Lets {
  std::span<const LetSymbol> all;
  std::size_t known = all.size();
};

}  // namespace lacuna

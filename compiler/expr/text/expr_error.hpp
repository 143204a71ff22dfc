#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna {

/// An error inside an expression; [begin, end) are bytes of its text. The reader moves it to its
/// place in the JSON file.
struct ExprError {
  Code code;
  std::uint32_t begin = 0, end = 0;
  std::string message;
  std::vector<std::string> notes, helps;
  bool loses_place = false;          ///< what stands behind it is not read as it was meant
  std::optional<std::size_t> let{};  ///< the name of `let` whose definition it is about
};

}  // namespace lacuna

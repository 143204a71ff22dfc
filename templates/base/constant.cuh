// A number as a type, for values that are known at run time but have to be constants in the code
// behind a branch.
#pragma once

namespace lacuna {

template <int kNumber>
struct Constant {
  static constexpr int kValue = kNumber;
};

}  // namespace lacuna

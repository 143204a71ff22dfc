// A number as a type: what is chosen at run time and has to be a constant behind the branch.
#pragma once

namespace lacuna {

template <int kNumber>
struct Constant {
  static constexpr int kValue = kNumber;
};

}  // namespace lacuna

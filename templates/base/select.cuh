// One of two types by a compile-time condition; neither has to be complete.
#pragma once

namespace lacuna {

template <bool kCondition, class IfTrue, class IfFalse>
struct Select {
  using Type = IfTrue;
};
template <class IfTrue, class IfFalse>
struct Select<false, IfTrue, IfFalse> {
  using Type = IfFalse;
};

}  // namespace lacuna

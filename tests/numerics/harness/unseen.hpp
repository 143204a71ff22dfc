// Keys that hold NaN and infinity: a row that does not see them gives the same bits as if they were
// zero.
#pragma once

#include <string>
#include <vector>

#include "tests/numerics/harness/harness.hpp"

namespace lacuna::numerics {

/// Tokens of K or of V, in every head.
struct Poison {
  bool in_v = false;
  std::vector<int> tokens;
};

/// The variant with zeros in these tokens of K and V.
Variant cleared(Variant variant, const std::vector<int>& tokens);
/// With NaN in the first of the tokens, infinity in one channel of the second, and minus infinity
/// in the others.
Variant poisoned(Variant variant, const Poison& poison);

/// To whom it is promised that nothing changes: to rows that see none of the tokens.
struct Promise {
  /// Rows that share a reference or a decision, counted from a multiple of it: none of them sees
  /// any.
  int rows_together = 1;
  bool unvisited = false;  ///< nor do the tiles that these rows visit hold any
};

struct UnseenComparison {
  int rows = 0;            ///< to which the promise applies
  std::string difference;  ///< "", or what differs first
};
UnseenComparison compare_unseen(const Variant& variant, const Poison& poison,
                                const Promise& promise, const Reported& clean,
                                const Reported& poisoned);

/// Gives K and V longer memory, which goes on with NaN and infinity behind the last key.
void poison_behind_the_last_key(Binding& binding, const Case& c, const Variant& variant);

}  // namespace lacuna::numerics

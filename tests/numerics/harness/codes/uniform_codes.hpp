// Keys and values of e4m3 in a batch of one length.
#pragma once

#include "tests/numerics/harness/codes/codes.hpp"
#include "tests/numerics/harness/harness.hpp"

namespace lacuna::numerics {

enum class Scales { kNone, kOfTensor, kOfHeads, kOfEntriesAndHeads };

class UniformCodes {
 public:
  /// Keys and values of the problem become the numbers of the codes.
  UniformCodes(const Case& c, Scales kind, oracle::Problem& problem);

  /// Codes in place of the binding's keys and values, and their scales.
  void bind(Binding& binding, const Case& c) const;

 private:
  Scales kind_;
  std::mt19937 random_{17};
  Codes keys_, values_;
};

}  // namespace lacuna::numerics

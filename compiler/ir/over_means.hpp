// Formulas of a branch over means. They are written of key tokens; in the branch's program k is the
// number of a mean:
//
//   k    min(k * tokens + tokens - 1, n_tokens - 1)     the mean's last token
//   n_k  n_tokens                                       a parameter that the runtime passes
#pragma once

#include <vector>

#include "compiler/spec/spec.hpp"

namespace lacuna {

/// The parameter kTokensParam: how many tokens the caller has. It comes after the parameters of the
/// spec.
ParamSpec tokens_param();

/// A mask or score over means of `tokens` keys. `params`: of the program, the last one is
/// tokens_param().
Expr over_means(const Expr& expr, int tokens, const std::vector<ParamSpec>& params);

}  // namespace lacuna

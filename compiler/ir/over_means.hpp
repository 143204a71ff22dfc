// Formulas of a branch over means. They are written of tokens; in the branch's program k is the
// number of a mean of keys, and q that of a mean of queries:
//
//   k    min(k * keys + keys - 1, n_tokens - 1)     the last token of mean k
//   n_k  n_tokens                                   a parameter that the runtime passes
//   q    q * queries                                the first token of mean q
//   n_q  n_queries                                  a parameter, too
#pragma once

#include <vector>

#include "compiler/ir/program.hpp"

namespace lacuna {

/// Tokens of a mean; 1: tokens as they are.
struct MeansOf {
  int keys = 1, queries = 1;
};

/// The parameters kTokensParam and kQueriesParam: how many tokens the caller has. They come after
/// the parameters of the spec, in this order, each where there are such means.
std::vector<ParamSpec> token_params(MeansOf means);

/// Turns mask and score of attend, which are written of tokens, into ones of means. In a weight,
/// which is of tokens, q stays what it is. `program` has the parameters of token_params().
void take_means(MeansOf means, Program& program);

}  // namespace lacuna

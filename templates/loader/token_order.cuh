// Where the caller has the tokens of a computation that runs in another order (`permute`).
#pragma once

#include "args/expr.cuh"
#include "args/predict_args.cuh"
#include "pipeline/batch_layout.cuh"

namespace lacuna {

/// Which of the caller's `tokens` is the n-th of the computation.
template <class Config, class Args>
__device__ __forceinline__ int callers_token(const Args& args, int n, int tokens) {
  if constexpr (permutes<Config>()) {
    return clamp_index(args.predict.order[n], tokens);
  } else {
    return n;
  }
}

}  // namespace lacuna

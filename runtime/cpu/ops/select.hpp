// Select, with the estimate it reads: work tiles -> bits of the tiles to compute.
#pragma once

#include <span>

#include "runtime/cpu/ops/estimate.hpp"

namespace lacuna::predict {

/// A selection and the arrays it reads; null: not given.
struct SelectJob {
  const Select& op;
  const HostArgs& args;
  std::span<const ParamView> params;
  const EstimateJob* estimate = nullptr;
  const Array *similar_q = nullptr, *similar_k = nullptr;
  const Array *within = nullptr, *joins = nullptr;  ///< bits of the step before
  const Array* visible = nullptr;                   ///< with Select::pairs: visible_tiles

  int q_tiles() const { return ceil_div(args.n_q, op.tile_q); }
  int k_tiles() const { return ceil_div(args.n_k, op.tile_k); }
  int words() const { return ceil_div(k_tiles(), 32); }
};

/// Writes all of `bits`: u32 [batch, heads, q_tiles, words], contiguous.
void select_tiles(const SelectJob& job, const Array& bits);

}  // namespace lacuna::predict

// Launch arguments as plain values: what a kernel accepts, and what one launch passes, once it has
// been checked (launch/bind_launch.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "compiler/expr/evaluate.hpp"
#include "compiler/spec/spec.hpp"
#include "compiler/target/plan.hpp"
#include "lacuna/dlpack.h"

namespace lacuna {

inline constexpr int kMaxRank = 4;

/// What a kernel accepts; made once when it is compiled.
struct LaunchContract {
  std::string kernel;  ///< the spec's name, for messages
  DLDevice device{kDLCPU, 0};
  DType dtype = DType::kBF16;
  BatchLayout batch = BatchLayout::kUniform;
  KvFormat kv = KvFormat::kSame;
  bool packs_heads = false;          ///< heads of a KV head share work tiles: there are no reports
  bool copies_from_pages = false;    ///< single rows, whose places are numbers of 32 bits
  int head_dim = 0, head_dim_v = 0;  ///< of q and k; of v and o
  int tile_q = 0, tile_k = 0;  ///< of reports: where attend gathers, tile_k is a column's width
  bool v_of_k = false;         ///< v is the first elements of k, in the same memory
  bool takes_lists = false;
  bool takes_previous_lse = false;
  bool takes_order = false;      ///< and n_q = n_k
  std::size_t order_params = 0;  ///< that formulas read it as, behind `params`
  bool keeps_selection = false;  ///< has a predictor, whose decision a selection can hold
  int summary_tile = 0;          ///< keys of a summary that may stay with the caller; 0: none may
  int summary_elements = 0;      ///< of one
  bool has_lse = true;
  bool has_branches = false;   ///< several attends: there are no reports
  bool has_positions = false;  ///< a part of a problem: `n_q` of parameters is that of the whole
  std::vector<ParamSpec> params;
};

LaunchContract make_contract(const Plan& plan, DLDevice device);

struct BoundTensor {
  void* data = nullptr;  ///< with byte_offset applied; null: not passed
  std::int64_t extent[kMaxRank] = {0, 0, 0, 0};
  std::int64_t stride[kMaxRank] = {0, 0, 0, 0};  ///< in elements
};

struct BoundLaunch {
  LaunchShape shape;
  std::array<BoundTensor, kTensorRoleCount> tensors;
  std::array<ParamView, kMaxParams> params;  ///< in the order of LaunchContract::params
  float softmax_scale = 0;                   ///< 0: that of the plan

  const BoundTensor& operator[](TensorRole role) const {
    return tensors[static_cast<std::size_t>(role)];
  }
  /// Nothing to compute: no query.
  bool empty() const { return shape.n_b == 0 || shape.n_h == 0 || shape.n_q == 0; }
};

}  // namespace lacuna

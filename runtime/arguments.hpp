// Launch arguments: DLPack tensors and named parameters, checked against what a kernel accepts.
//
// bind_launch runs on every launch: without an error it allocates nothing, takes no lock and calls
// no driver. All mismatches are reported at once, each as
// `kernel bsfa, argument k: dtype expected bf16, got f16`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/emit/launch_program.hpp"
#include "compiler/expr/evaluate.hpp"
#include "compiler/spec/spec.hpp"
#include "compiler/target/plan.hpp"
#include "lacuna/lacuna.h"

namespace lacuna {

inline constexpr int kMaxRank = 4;

/// What a kernel accepts; made once when it is compiled.
struct LaunchContract {
  std::string kernel;  ///< the spec's name, for messages
  DLDevice device{kDLCPU, 0};
  DType dtype = DType::kBF16;
  int head_dim = 0;
  int tile_q = 0, tile_k = 0;  ///< of reports: where attend gathers, tile_k is a column's width
  bool takes_lists = false;
  bool takes_previous_lse = false;
  bool takes_order = false;  ///< and n_q = n_k
  bool keeps_mask = false;   ///< has a predictor, whose decision a mask object can hold
  bool has_lse = true;
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

  const BoundTensor& operator[](TensorRole role) const {
    return tensors[static_cast<std::size_t>(role)];
  }
  /// Nothing to compute: no query.
  bool empty() const { return shape.n_b == 0 || shape.n_h == 0 || shape.n_q == 0; }
};

/// False with diagnostics if an argument does not fit.
bool bind_launch(const LaunchContract& contract, const lacuna_launch_args& args, BoundLaunch& bound,
                 Diagnostics& diagnostics);

/// Names of the tensors without which a launch is refused, in the order of lacuna_launch_args.
std::vector<std::string> required_tensors(const LaunchContract& contract);

/// False with diagnostics unless all extents are non-negative, heads is a multiple of heads_kv, the
/// grid fits 31 bits and permuted tokens are as many queries as keys.
bool check_shape(const LaunchContract& contract, const LaunchShape& shape,
                 Diagnostics& diagnostics);

}  // namespace lacuna

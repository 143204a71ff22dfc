// The arguments of one piece's launch: views of the caller's tensors and of the workspace, and the
// parameters cut to the piece.
#pragma once

#include <array>

#include "runtime/group/group.hpp"
#include "runtime/launch/bind_launch.hpp"

namespace lacuna::group {

/// The role of each TensorId.
inline constexpr TensorRole kRoles[kTensorCount] = {TensorRole::kQ, TensorRole::kK, TensorRole::kV,
                                                    TensorRole::kO, TensorRole::kLse};

/// A tensor of a launch with the memory that its shape lies in.
struct TensorView {
  DLTensor tensor{};
  std::array<std::int64_t, kMaxRank> shape{}, strides{};

  TensorView() = default;
  TensorView(const TensorView&) = delete;
  TensorView& operator=(const TensorView&) = delete;

  const DLTensor* finish(int rank) {
    tensor.ndim = rank;
    tensor.shape = shape.data();
    tensor.strides = strides.data();
    return &tensor;
  }
};

/// The parameters of one launch.
struct ParamViews {
  std::array<TensorView, kMaxParams> tensors;
  std::array<lacuna_param, kMaxParams> params{};
  std::size_t count = 0;
};

/// What launches of a plan with these arguments share.
struct LaunchPlaces {
  const GroupPlan& plan;
  const lacuna_launch_args& args;
  const BoundLaunch& bound;

  unsigned char* address_of(TensorId tensor, const Place& place) const;
  /// Bytes from a row to the next, and from a head to the next.
  std::size_t pitch_of(TensorId tensor, const Place& place) const;
  std::size_t head_step_of(TensorId tensor) const;  ///< of the caller's tensor
};

/// The parameter of a plan's kernel; null if it has none of this name.
const ParamSpec* find_param(const GroupPlan& plan, const char* name);

/// A launch beside which messages travel leaves multiprocessors to them: its blocks are
/// persistent, and those that hold all of them would keep NCCL's waiting until the launch drains.
/// What is left stays idle for as long only as nothing is exchanged and the next launch has not
/// come, whose blocks take it.
struct PieceArguments {
  TensorView q, k, v, o, lse, counts;
  ParamViews params;
  lacuna_launch_args args{};

  /// Of launch `n`. `lane`: whose part of the workspace the kernel takes. The places outlive this.
  PieceArguments(const LaunchPlaces& places, std::size_t n, void* stream, std::size_t lane);
};

}  // namespace lacuna::group

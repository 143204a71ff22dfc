#include "runtime/launch/branches.hpp"

#include "runtime/base/whole_tiles.hpp"

namespace lacuna {

LaunchShape shape_of_branch(const VariantSpec& branch, LaunchShape shape) {
  shape.n_k = ceil_div(shape.n_k, branch.branch.means);
  return shape;
}

BoundLaunch bind_branch(const VariantSpec& branch, const BoundLaunch& bound) {
  BoundLaunch own = bound;
  if (branch.branch.means < 2) return own;
  own.shape = shape_of_branch(branch, bound.shape);
  for (const TensorRole role : {TensorRole::kK, TensorRole::kV})
    own.tensors[static_cast<std::size_t>(role)].extent[2] = own.shape.n_k;
  // Behind those of the spec (compiler/ir/over_means.hpp).
  ParamView& tokens = own.params[branch.params.size()];
  tokens = ParamView{};
  tokens.value.i32 = bound.shape.n_k;
  return own;
}

}  // namespace lacuna

#include "runtime/launch/branches.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "compiler/ir/shift_positions.hpp"
#include "compiler/spec/table/bands.hpp"
#include "runtime/base/whole_tiles.hpp"
#include "runtime/launch/argument_block.hpp"
#include "runtime/launch/tensors/tensor_check.hpp"
#include "runtime/launch/tensors/tensor_rules.hpp"

namespace lacuna {
namespace {

void take_band(const Band& band, int element_bytes, BoundTensor& tensor) {
  tensor.extent[3] = band.width();
  if (tensor.data == nullptr) return;  // without a token there is no row
  tensor.data = static_cast<std::byte*>(tensor.data) + std::ptrdiff_t{band.first} * element_bytes;
}

/// k and v, or q and attend's o, have means in the place of tokens; parameters say how many tokens
/// there are, or of sequences how many the longest may have.
void take_means(const VariantSpec& branch, BoundLaunch& own) {
  const std::int32_t keys = own.shape.n_k, queries = own.shape.n_q;
  own.shape = shape_of_branch(branch, own.shape);
  // Behind those of the spec (compiler/ir/over_means.hpp).
  std::size_t place = branch.params.size();
  const auto pass = [&](std::int32_t count) {
    ParamView& param = own.params[place++];
    param = ParamView{};
    param.value.i32 = count;
  };
  if (branch.branch.means > 1) pass(keys);
  if (branch.branch.query_means > 1) pass(queries);
  if (own[TensorRole::kLengths].data != nullptr) return;  // extents are of all sequences
  const auto rows = [&](TensorRole role) -> std::int64_t& {
    return own.tensors[static_cast<std::size_t>(role)].extent[2];
  };
  rows(TensorRole::kK) = rows(TensorRole::kV) = own.shape.n_k;
  rows(TensorRole::kQ) = rows(TensorRole::kO) = own.shape.n_q;  // o: of attend
}

/// Where a launch computes a part of a problem (LaunchContract::has_positions), the caller passes
/// all positions of the part behind the parameters of the spec. Adds to `own` those that the
/// branch's `program` declares; a position counted in query tiles is converted to the branch's tile
/// size.
void take_positions(const Program& program, std::size_t spec_params, const BoundLaunch& bound,
                    BoundLaunch& own) {
  const auto position = [&](PositionParam param) {
    return bound.params[spec_params + static_cast<std::size_t>(param)].value.i32;
  };
  const Select* select = find_op<Select>(program);
  const std::int32_t keep_q = select != nullptr ? select->tile_q : 1;
  const std::int32_t gate_q = attend_of(program).tile_q;
  for (std::size_t p = spec_params; p < program.params.size(); ++p) {
    const auto name = std::ranges::find(kPositionParamNames, program.params[p].symbol.name);
    if (name == kPositionParamNames.end()) continue;  // tokens that means stand for
    using enum PositionParam;
    const auto param = static_cast<PositionParam>(name - kPositionParamNames.begin());
    ParamView& view = own.params[p];
    view = ParamView{};
    view.value.i32 = param == kFirstKeepTile   ? position(kFirstQ) / keep_q
                     : param == kKeepTiles     ? ceil_div(position(kNQ), keep_q)
                     : param == kFirstGateTile ? position(kFirstQ) / gate_q
                     : param == kGateTiles     ? ceil_div(position(kNQ), gate_q)
                                               : position(param);
  }
}

}  // namespace

LaunchShape shape_of_branch(const VariantSpec& branch, LaunchShape shape) {
  shape.n_k = ceil_div(shape.n_k, branch.branch.means);
  shape.n_q = ceil_div(shape.n_q, branch.branch.query_means);
  return shape;
}

void take_order(const Program& program, BoundLaunch& own) {
  const BoundTensor& order = own[TensorRole::kOrder];
  for (std::size_t p = 0; p < program.params.size(); ++p) {
    if (std::ranges::count(kOrderParamNames, program.params[p].symbol.name) == 0) continue;
    ParamView& view = own.params[p];
    view = ParamView{};
    view.data = order.data;
    view.extent[0] = static_cast<std::int32_t>(order.extent[0]);
    view.stride[0] = 1;
  }
}

WorkspaceBytes workspace_parts(const LaunchProgram& program, const LaunchShape& shape,
                               const std::int32_t* values) {
  const auto pieces = static_cast<std::size_t>(workspace_pieces(program, shape));
  const auto bytes_of = [&](int value) {
    return value < 0 ? 0 : static_cast<std::size_t>(values[value]) * kWorkspaceUnitBytes * pieces;
  };
  return {bytes_of(program.shared_value),
          batch_bytes(program, values) + bytes_of(program.workspace_value)};
}

const lacuna_branch_args* args_of_branch(const lacuna_launch_args& args, std::string_view name) {
  for (std::size_t n = 0; n < args.branches_count; ++n)
    if (args.branches[n]->name == name) return args.branches[n];
  return nullptr;
}

bool bind_reports(const LaunchContract& contract, const lacuna_branch_args& given, BoundLaunch& own,
                  Diagnostics& diagnostics) {
  Extents extents;
  extents.batch = own.shape.n_b;
  extents.heads = own.shape.n_h;
  extents.q_tiles = ceil_div(own.shape.n_q, contract.tile_q);
  extents.k_tiles = ceil_div(own.shape.n_k, contract.tile_k);
  Mismatches mismatches(contract, diagnostics);
  const std::pair<TensorRole, const DLTensor*> reports[] = {
      {TensorRole::kCounts, given.counts}, {TensorRole::kTileMask, given.tile_mask}};
  for (const auto& [role, tensor] : reports) {
    if (tensor == nullptr) continue;
    check_tensor(rule_of(role, contract, extents), *tensor, Code::kTensorArgument, mismatches,
                 own.tensors[static_cast<std::size_t>(role)]);
  }
  return !mismatches.any();
}

BoundLaunch bind_branch(const VariantSpec& branch, const LaunchContract& contract,
                        const Program& program, KvFormat kv, const BoundLaunch& bound) {
  const DType dtype = contract.dtype;
  BoundLaunch own = bound;
  if (!branch.branch.dims.empty()) {
    const Band band = only_band(branch.branch.dims, 0).value_or(Band{});
    take_band(band, size_bytes(dtype), own.tensors[static_cast<std::size_t>(TensorRole::kQ)]);
    take_band(band, kv == KvFormat::kE4M3 ? 1 : size_bytes(dtype),
              own.tensors[static_cast<std::size_t>(TensorRole::kK)]);
  }
  if (branch.branch.means > 1 || branch.branch.query_means > 1) take_means(branch, own);
  if (contract.has_positions) take_positions(program, branch.params.size(), bound, own);
  take_order(program, own);
  return own;
}

}  // namespace lacuna

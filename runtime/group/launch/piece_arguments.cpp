#include "runtime/group/launch/piece_arguments.hpp"

#include "compiler/ir/shift_positions.hpp"
#include "runtime/base/whole_tiles.hpp"

namespace lacuna::group {
namespace {

class Builder {
 public:
  explicit Builder(const LaunchPlaces& places)
      : places_(places),
        plan_(places.plan),
        problem_(plan_.traffic.problem),
        args_(places.args),
        bound_(places.bound) {}

  void make_view(TensorId tensor, const View& view, std::int32_t heads, TensorView& out) const {
    const auto index = static_cast<std::size_t>(tensor);
    const bool is_lse = tensor == TensorId::kLse;
    const std::int64_t d = is_lse ? 1 : problem_.head_dim;
    out.tensor.data = places_.address_of(tensor, view.place);
    out.tensor.device = plan_.tensors.device;
    out.tensor.dtype = is_lse ? DLDataType{kDLFloat, 32, 1} : args_.q->dtype;
    out.shape = {problem_.shape.n_b, heads, view.rows, d};
    if (view.place.in_workspace) {
      out.strides = {std::int64_t{view.heads} * view.rows * d, std::int64_t{view.rows} * d, d, 1};
    } else {
      const BoundTensor& bound = bound_[kRoles[index]];
      out.strides = {bound.stride[0], bound.stride[1], bound.stride[2], 1};
    }
    out.finish(is_lse ? 3 : 4);
  }

  void make_counts(const Piece& piece, std::size_t n, TensorView& out) const {
    out.tensor.data = static_cast<unsigned char*>(args_.workspace) + plan_.counts_offset[n];
    out.tensor.device = plan_.tensors.device;
    out.tensor.dtype = DLDataType{kDLInt, 32, 1};
    const std::int64_t heads = piece.heads.count();
    const std::int64_t tiles = ceil_div(piece.q.count(), plan_.tensors.tile_q);
    out.shape = {problem_.shape.n_b, heads, tiles, 3};
    out.strides = {heads * tiles * 3, tiles * 3, 3, 1};
    out.finish(4);
  }

  std::int32_t position(PositionParam param, const Piece& piece) const {
    const Program& program = plan_.kernel->kernel->lowered().plan.program;
    const Select* select = find_op<Select>(program);
    const std::int32_t keep_q = select != nullptr ? select->tile_q : 1;
    const std::int32_t gate_q = attend_of(program).tile_q;
    switch (param) {
      case PositionParam::kFirstQ:
        return piece.q.begin;
      case PositionParam::kNQ:
        return problem_.shape.n_q;
      case PositionParam::kFirstH:
        return piece.heads.begin;
      case PositionParam::kNH:
        return problem_.shape.n_h;
      case PositionParam::kFirstKeepTile:
        return piece.q.begin / keep_q;
      case PositionParam::kKeepTiles:
        return ceil_div(problem_.shape.n_q, keep_q);
      case PositionParam::kFirstGateTile:
        return piece.q.begin / gate_q;
      case PositionParam::kGateTiles:
        return ceil_div(problem_.shape.n_q, gate_q);
    }
    return 0;
  }

  /// The part of a parameter that belongs to a piece: heads and query tiles are counted from its
  /// first ones, tokens in the whole.
  const DLTensor* slice(const DLTensor& whole, const ParamSpec& param, const Piece& piece,
                        TensorView& part) const {
    part.tensor = whole;
    std::int64_t compact = 1, offset = 0;
    for (std::size_t d = param.symbol.shape.size(); d-- > 0;) {
      part.shape[d] = whole.shape[d];
      part.strides[d] = whole.strides != nullptr ? whole.strides[d] : compact;
      compact *= whole.shape[d];
      Range kept = {0, static_cast<std::int32_t>(whole.shape[d])};
      const std::int32_t tile_q = plan_.tensors.tile_q;
      if (param.symbol.shape[d] == ParamAxis::kHeads) kept = piece.heads;
      if (param.symbol.shape[d] == ParamAxis::kQTiles && problem_.sequences.count == 0)
        kept = {piece.q.begin / tile_q, ceil_div(piece.q.end, tile_q)};
      part.shape[d] = kept.count();
      offset += kept.begin * part.strides[d];
    }
    part.tensor.byte_offset += static_cast<std::uint64_t>(offset) * (whole.dtype.bits / 8U);
    return part.finish(whole.ndim);
  }

  void make_params(const Piece& piece, ParamViews& views) const {
    for (std::size_t p = 0; p < args_.params_count; ++p) {
      lacuna_param& param = views.params[views.count];
      param = args_.params[p];
      const ParamSpec* spec = find_param(plan_, param.name);
      if (param.tensor != nullptr && spec != nullptr)
        param.tensor = slice(*param.tensor, *spec, piece, views.tensors[views.count]);
      ++views.count;
    }
    for (std::size_t p = 0; p < kPositionParamNames.size(); ++p) {
      const char* name = kPositionParamNames[p].data();
      if (find_param(plan_, name) == nullptr) continue;
      const auto which = static_cast<PositionParam>(p);
      views.params[views.count++] = {name, nullptr, static_cast<double>(position(which, piece))};
    }
  }

 private:
  const LaunchPlaces& places_;
  const GroupPlan& plan_;
  const Problem& problem_;
  const lacuna_launch_args& args_;
  const BoundLaunch& bound_;
};

}  // namespace

unsigned char* LaunchPlaces::address_of(TensorId tensor, const Place& place) const {
  if (place.in_workspace) {
    const int rank = plan.kernel->group->communicator.rank;
    auto* buffers = plan.traffic.by_copies ? plan.shared.of_rank[static_cast<std::size_t>(rank)]
                                           : static_cast<unsigned char*>(args.workspace);
    return buffers + place.offset;
  }
  const BoundTensor& held = bound[kRoles[static_cast<std::size_t>(tensor)]];
  const std::int64_t element =
      tensor == TensorId::kLse ? std::int64_t{4} : std::int64_t{plan.traffic.problem.element_bytes};
  return static_cast<unsigned char*>(held.data) +
         (place.b * held.stride[0] + place.head * held.stride[1] + place.row * held.stride[2]) *
             element;
}

std::size_t LaunchPlaces::pitch_of(TensorId tensor, const Place& place) const {
  const Problem& problem = plan.traffic.problem;
  if (place.in_workspace || tensor == TensorId::kLse) return problem.row_bytes(tensor);
  return static_cast<std::size_t>(bound[kRoles[static_cast<std::size_t>(tensor)]].stride[2]) *
         static_cast<std::size_t>(problem.element_bytes);
}

std::size_t LaunchPlaces::head_step_of(TensorId tensor) const {
  const std::size_t element =
      tensor == TensorId::kLse ? 4 : static_cast<std::size_t>(plan.traffic.problem.element_bytes);
  return static_cast<std::size_t>(bound[kRoles[static_cast<std::size_t>(tensor)]].stride[1]) *
         element;
}

const ParamSpec* find_param(const GroupPlan& plan, const char* name) {
  for (const ParamSpec& param : plan.kernel->kernel->lowered().contract.params) {
    if (name != nullptr && param.symbol.name == name) return &param;
  }
  return nullptr;
}

PieceArguments::PieceArguments(const LaunchPlaces& places, std::size_t n, void* stream,
                               std::size_t lane) {
  const PieceLaunch& launch = places.plan.schedule.launches[n];
  const Problem& problem = places.plan.traffic.problem;
  const std::int32_t heads = launch.piece.heads.count();
  const std::int32_t heads_kv = kv_heads_of(launch.piece.heads, problem.shape).count();
  const Builder builder(places);
  builder.make_view(TensorId::kQ, launch.q, heads, q);
  builder.make_view(TensorId::kK, launch.k, heads_kv, k);
  builder.make_view(TensorId::kV, launch.v, heads_kv, v);
  builder.make_view(TensorId::kO, launch.o, heads, o);
  if (problem.lse) builder.make_view(TensorId::kLse, launch.lse, heads, lse);
  if (places.args.counts != nullptr) builder.make_counts(launch.piece, n, counts);
  builder.make_params(launch.piece, params);
  args.struct_size = sizeof args;
  args.q = &q.tensor, args.k = &k.tensor, args.v = &v.tensor, args.o = &o.tensor;
  if (problem.lse) args.lse = &lse.tensor;
  if (places.args.counts != nullptr) args.counts = &counts.tensor;
  args.params = params.params.data();
  args.params_count = params.count;
  args.stream = stream;
  args.softmax_scale = places.args.softmax_scale;
  args.sequences = places.args.sequences;
  if (!places.plan.traffic.by_copies && places.plan.schedule.has_exchange_beside(n))
    args.sm_margin = places.plan.kernel->group->sm_margin;
  args.workspace_bytes = places.plan.lane_bytes[lane];
  if (args.workspace_bytes > 0)
    args.workspace =
        static_cast<unsigned char*>(places.args.workspace) + places.plan.lane_offset[lane];
}

}  // namespace lacuna::group

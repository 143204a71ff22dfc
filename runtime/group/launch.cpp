// launch_group: inputs come together, a launch for each piece, results go where they belong. On a
// GPU all of it is enqueued; nothing is allocated.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "compiler/ir/shift_positions.hpp"
#include "runtime/base/whole_tiles.hpp"
#include "runtime/group/group.hpp"
#include "runtime/launch/bind_launch.hpp"

namespace lacuna::group {
namespace {

constexpr TensorRole kRoles[kTensorCount] = {TensorRole::kQ, TensorRole::kK, TensorRole::kV,
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

class GroupLaunch {
 public:
  GroupLaunch(GroupPlan& plan, const lacuna_launch_args& args, Diagnostics& diagnostics)
      : plan_(plan),
        problem_(plan.traffic.problem),
        ranks_(plan.kernel->group->communicator),
        args_(args),
        diagnostics_(diagnostics),
        driver_(plan.kernel->group->engine->gpu) {}

  bool run() {
    std::optional<ContextScope> scope;
    if (driver_ != nullptr) scope.emplace(*driver_);
    if (!check()) return false;
    if (!run_phase(plan_.schedule.inputs)) return false;
    for (const PieceLaunch& launch : plan_.schedule.launches) {
      if (!run_piece(launch)) return false;
    }
    return run_phase(plan_.schedule.outputs);
  }

 private:
  bool refuse(Code code, const std::string& text) {
    Diagnostic d;
    d.code = code;
    d.message = "kernel " + plan_.tensors.kernel + ", " + text;
    diagnostics_.add(std::move(d));
    return false;
  }

  bool check() {
    lacuna_launch_args tensors = args_;
    tensors.params_count = 0;
    if (!bind_launch(plan_.tensors, tensors, bound_, diagnostics_)) return false;
    const std::pair<const char*, bool> unused[] = {{"counts", args_.counts != nullptr},
                                                   {"tile_mask", args_.tile_mask != nullptr},
                                                   {"selection", args_.selection != nullptr},
                                                   {"stage_events", args_.stage_events != nullptr}};
    for (const auto& [name, is_passed] : unused) {
      if (is_passed) refuse(Code::kTensorArgument, std::string(name) + ": a group has none");
    }
    if ((args_.lse != nullptr) != problem_.lse)
      refuse(Code::kTensorArgument, std::string("lse: the plan is for launches ") +
                                        (problem_.lse ? "with one" : "without"));
    return !diagnostics_.has_errors() && check_share() && check_rows() && check_workspace() &&
           check_params();
  }

  bool check_share() {
    const LaunchShape& share = plan_.share;
    const auto check_one = [&](const char* tensor, const char* name, std::int64_t expected,
                               std::int64_t got) {
      if (expected != got)
        refuse(Code::kTensorArgument, std::string("argument ") + tensor + ": " + name +
                                          " expected " + std::to_string(expected) + " (rank " +
                                          std::to_string(ranks_.rank) + "), got " +
                                          std::to_string(got));
    };
    check_one("q", "batch", share.n_b, bound_.shape.n_b);
    check_one("q", "heads", share.n_h, bound_.shape.n_h);
    check_one("k", "heads_kv", share.n_h_kv, bound_.shape.n_h_kv);
    check_one("q", "n_q", share.n_q, bound_.shape.n_q);
    check_one("k", "n_k", share.n_k, bound_.shape.n_k);
    return !diagnostics_.has_errors();
  }

  /// Messages are of whole pieces of memory.
  bool check_rows() {
    constexpr const char* kNames[] = {"q", "k", "v", "o"};
    for (std::size_t t = 0; t < 4 && !problem_.strided; ++t) {
      const BoundTensor& tensor = bound_[kRoles[t]];
      if (tensor.extent[2] > 1 && tensor.stride[2] != problem_.head_dim)
        refuse(Code::kTensorArgument,
               std::string("argument ") + kNames[t] + ": stride over tokens expected " +
                   std::to_string(problem_.head_dim) + ", got " + std::to_string(tensor.stride[2]) +
                   ": the plan was not made for strided rows");
    }
    return !diagnostics_.has_errors();
  }

  bool check_workspace() {
    if (plan_.workspace_bytes == 0) return true;
    const bool is_aligned =
        reinterpret_cast<std::uintptr_t>(args_.workspace) % kBufferAlignment == 0;
    if (args_.workspace != nullptr && is_aligned && args_.workspace_bytes >= plan_.workspace_bytes)
      return true;
    return refuse(Code::kWorkspaceArgument,
                  "workspace: expected " + std::to_string(plan_.workspace_bytes) +
                      " bytes at a multiple of " + std::to_string(kBufferAlignment) + ", got " +
                      (args_.workspace == nullptr ? "null"
                       : is_aligned               ? std::to_string(args_.workspace_bytes)
                                                  : "an address in between"));
  }

  std::int64_t extent_of(const ParamDim& dim) const {
    const LaunchShape& shape = problem_.shape;
    switch (dim.axis) {
      case ParamAxis::kBatch:
        return shape.n_b;
      case ParamAxis::kHeads:
        return shape.n_h;
      case ParamAxis::kQTiles:
        return ceil_div(shape.n_q, plan_.tensors.tile_q);
      case ParamAxis::kKTiles:
        return ceil_div(shape.n_k, plan_.tensors.tile_k);
      case ParamAxis::kNQ:
        return shape.n_q;
      case ParamAxis::kNK:
        return shape.n_k;
      case ParamAxis::kFixed:
        return dim.extent;
    }
    return 0;
  }

  const ParamSpec* find_param(const char* name) const {
    for (const ParamSpec& param : plan_.kernel->kernel->lowered().contract.params) {
      if (name != nullptr && param.symbol.name == name) return &param;
    }
    return nullptr;
  }

  /// Parameters are those of the whole problem. The launches check the rest.
  bool check_params() {
    const std::size_t most = kMaxParams - kPositionParamNames.size();
    if (args_.params_count > kMaxParams)
      return refuse(Code::kParamArgument, "params: expected at most " + std::to_string(most) +
                                              ", got " + std::to_string(args_.params_count));
    for (std::size_t p = 0; p < args_.params_count; ++p) {
      const lacuna_param& given = args_.params[p];
      const ParamSpec* param = find_param(given.name);
      if (param == nullptr || given.tensor == nullptr) continue;
      const std::vector<ParamDim>& dims = param->symbol.shape;
      bool fits = given.tensor->shape != nullptr &&
                  given.tensor->ndim == static_cast<std::int32_t>(dims.size());
      std::string expected;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        fits = fits && given.tensor->shape[d] == extent_of(dims[d]);
        expected += (d == 0 ? "" : ", ") + std::to_string(extent_of(dims[d]));
      }
      if (!fits)
        refuse(Code::kParamArgument, "parameter " + param->symbol.name + ": expected [" + expected +
                                         "], that of the whole problem");
    }
    return !diagnostics_.has_errors();
  }

  unsigned char* address_of(TensorId tensor, const Place& place) const {
    if (place.in_workspace) return static_cast<unsigned char*>(args_.workspace) + place.offset;
    const BoundTensor& bound = bound_[kRoles[static_cast<std::size_t>(tensor)]];
    const std::int64_t element =
        tensor == TensorId::kLse ? std::int64_t{4} : std::int64_t{problem_.element_bytes};
    return static_cast<unsigned char*>(bound.data) +
           (place.b * bound.stride[0] + place.head * bound.stride[1] +
            place.row * bound.stride[2]) *
               element;
  }

  std::size_t pitch_of(TensorId tensor, const Place& place) const {
    if (place.in_workspace || tensor == TensorId::kLse) return problem_.row_bytes(tensor);
    return static_cast<std::size_t>(bound_[kRoles[static_cast<std::size_t>(tensor)]].stride[2]) *
           static_cast<std::size_t>(problem_.element_bytes);
  }

  bool copy(const Copy& copy) {
    unsigned char* to = address_of(copy.tensor, copy.to);
    const unsigned char* from = address_of(copy.tensor, copy.from);
    const std::size_t to_pitch = pitch_of(copy.tensor, copy.to);
    const std::size_t from_pitch = pitch_of(copy.tensor, copy.from);
    const std::size_t width = problem_.row_bytes(copy.tensor);
    const auto rows = static_cast<std::size_t>(copy.rows);
    if (driver_ != nullptr) return copy_on_gpu(to, to_pitch, from, from_pitch, width, rows);
    if (to_pitch == width && from_pitch == width) {
      std::memcpy(to, from, width * rows);
    } else {
      for (std::size_t row = 0; row < rows; ++row)
        std::memcpy(to + row * to_pitch, from + row * from_pitch, width);
    }
    return true;
  }

  bool copy_on_gpu(unsigned char* to, std::size_t to_pitch, const unsigned char* from,
                   std::size_t from_pitch, std::size_t width, std::size_t rows) {
    const Driver& driver = *driver_->driver;
    const auto stream = static_cast<CUstream>(args_.stream);
    const auto target = reinterpret_cast<CUdeviceptr>(to);
    const auto source = reinterpret_cast<CUdeviceptr>(from);
    if (to_pitch == width && from_pitch == width) {
      return check_driver(driver, driver.cuMemcpyDtoDAsync(target, source, width * rows, stream),
                          "cuMemcpyDtoDAsync", diagnostics_);
    }
    CUmemcpy2D copy;
    copy.source = source, copy.source_pitch = from_pitch;
    copy.target = target, copy.target_pitch = to_pitch;
    copy.width_bytes = width, copy.height = rows;
    return check_driver(driver, driver.cuMemcpy2DAsync(&copy, stream), "cuMemcpy2DAsync",
                        diagnostics_);
  }

  bool run_phase(const Phase& phase) {
    const auto copy_all = [&](const std::vector<Copy>& copies) {
      return std::ranges::all_of(copies, [&](const Copy& one) { return copy(one); });
    };
    if (!copy_all(phase.before)) return false;
    // A rank without messages meets the others, too: one that is lost is seen in every launch.
    plan_.messages.clear();
    for (const Post& post : phase.posts) {
      plan_.messages.push_back(
          {address_of(post.tensor, post.place),
           static_cast<std::size_t>(post.rows) * problem_.row_bytes(post.tensor), post.peer,
           post.is_send});
    }
    return ranks_.exchange(ranks_.state.get(), plan_.messages, args_.stream, diagnostics_) &&
           copy_all(phase.after);
  }

  void make_view(TensorId tensor, const View& view, std::int32_t heads, TensorView& out) const {
    const auto index = static_cast<std::size_t>(tensor);
    const bool is_lse = tensor == TensorId::kLse;
    const std::int64_t d = is_lse ? 1 : problem_.head_dim;
    out.tensor.data = address_of(tensor, view.place);
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
      if (param.symbol.shape[d] == ParamAxis::kQTiles)
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
      const ParamSpec* spec = find_param(param.name);
      if (param.tensor != nullptr && spec != nullptr)
        param.tensor = slice(*param.tensor, *spec, piece, views.tensors[views.count]);
      ++views.count;
    }
    for (std::size_t p = 0; p < kPositionParamNames.size(); ++p) {
      const char* name = kPositionParamNames[p].data();
      if (find_param(name) == nullptr || views.count == views.params.size()) continue;
      const auto which = static_cast<PositionParam>(p);
      views.params[views.count++] = {name, nullptr, static_cast<double>(position(which, piece))};
    }
  }

  bool run_piece(const PieceLaunch& launch) {
    const std::int32_t heads = launch.piece.heads.count();
    const std::int32_t heads_kv = kv_heads_of(launch.piece.heads, problem_.shape).count();
    TensorView q, k, v, o, lse;
    make_view(TensorId::kQ, launch.q, heads, q);
    make_view(TensorId::kK, launch.k, heads_kv, k);
    make_view(TensorId::kV, launch.v, heads_kv, v);
    make_view(TensorId::kO, launch.o, heads, o);
    if (problem_.lse) make_view(TensorId::kLse, launch.lse, heads, lse);
    ParamViews params;
    make_params(launch.piece, params);
    lacuna_launch_args args{};
    args.struct_size = sizeof args;
    args.q = &q.tensor, args.k = &k.tensor, args.v = &v.tensor, args.o = &o.tensor;
    if (problem_.lse) args.lse = &lse.tensor;
    args.params = params.params.data();
    args.params_count = params.count;
    args.stream = args_.stream;
    args.softmax_scale = args_.softmax_scale;
    if (plan_.workspace_bytes > plan_.schedule.buffer_bytes) {
      args.workspace = static_cast<unsigned char*>(args_.workspace) + plan_.schedule.buffer_bytes;
      args.workspace_bytes = args_.workspace_bytes - plan_.schedule.buffer_bytes;
    }
    return launch_kernel(*plan_.kernel->kernel, args, diagnostics_);
  }

  GroupPlan& plan_;
  const Problem& problem_;
  const Communicator& ranks_;
  const lacuna_launch_args& args_;
  Diagnostics& diagnostics_;
  std::shared_ptr<const Device> driver_;
  BoundLaunch bound_;
};

}  // namespace

bool launch_group(GroupPlan& plan, const lacuna_launch_args& args, Diagnostics& diagnostics) {
  const Communicator& ranks = plan.kernel->group->communicator;
  if (ranks.is_capturing(ranks.state.get(), args.stream)) {
    Diagnostic d;
    d.code = Code::kCallArgument;
    d.message = "kernel " + plan.tensors.kernel +
                ", stream: is being captured; a group watches its exchange from the host, so it "
                "cannot be part of a graph";
    diagnostics.add(std::move(d));
    return false;
  }
  if (GroupLaunch(plan, args, diagnostics).run()) return true;
  ranks.abandon(ranks.state.get(), diagnostics.items.front().message);
  return false;
}

}  // namespace lacuna::group

#include "runtime/launch/bind_launch.hpp"

#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "runtime/launch/tensor_check.hpp"

namespace lacuna {
namespace {

constexpr DLDataType kF32{kDLFloat, 32, 1};
constexpr DLDataType kI32{kDLInt, 32, 1};
constexpr DLDataType kU8{kDLUInt, 8, 1};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

const DLTensor* tensor_of(const lacuna_launch_args& args, TensorRole role) {
  switch (role) {
    case TensorRole::kQ:
      return args.q;
    case TensorRole::kK:
      return args.k;
    case TensorRole::kV:
      return args.v;
    case TensorRole::kO:
      return args.o;
    case TensorRole::kLse:
      return args.lse;
    case TensorRole::kCounts:
      return args.counts;
    case TensorRole::kTileMask:
      return args.tile_mask;
    case TensorRole::kListIndices:
      return args.list_indices;
    case TensorRole::kListCounts:
      return args.list_counts;
    case TensorRole::kPreviousLse:
      return args.previous_lse;
    case TensorRole::kOrder:
      return args.order;
  }
  return nullptr;
}

/// Extents of a launch: q says batch, heads and n_q; k says heads_kv and n_k. kAnyExtent where a
/// missing or misshapen tensor leaves it open.
struct Extents {
  std::int64_t batch = kAnyExtent, heads = kAnyExtent, n_q = kAnyExtent;
  std::int64_t heads_kv = kAnyExtent, n_k = kAnyExtent;
  std::int64_t q_tiles = kAnyExtent, k_tiles = kAnyExtent;
};

/// Leaves open what check_tensor will refuse, so that one extent draws one error.
std::int64_t extent_or_any(std::int64_t extent) {
  return extent >= 0 && extent <= std::numeric_limits<std::int32_t>::max() ? extent : kAnyExtent;
}

std::int64_t tiles_or_any(std::int64_t extent, std::int64_t tile) {
  return extent == kAnyExtent ? kAnyExtent : ceil_div(extent, tile);
}

Extents read_extents(const LaunchContract& contract, const lacuna_launch_args& args) {
  Extents e;
  if (args.q != nullptr && args.q->ndim == 4 && args.q->shape != nullptr) {
    e.batch = extent_or_any(args.q->shape[0]);
    e.heads = extent_or_any(args.q->shape[1]);
    e.n_q = extent_or_any(args.q->shape[2]);
    e.q_tiles = tiles_or_any(e.n_q, contract.tile_q);
  }
  if (args.k != nullptr && args.k->ndim == 4 && args.k->shape != nullptr) {
    e.heads_kv = extent_or_any(args.k->shape[1]);
    e.n_k = extent_or_any(args.k->shape[2]);
    e.k_tiles = tiles_or_any(e.n_k, contract.tile_k);
  }
  return e;
}

/// The table of tensors, with the extents of this launch filled in.
TensorRule rule_of(TensorRole role, const LaunchContract& c, const Extents& e) {
  const DLDataType dtype = dl_dtype(c.dtype);
  const std::int64_t d = c.head_dim;
  const auto rows = Layout::kRows;
  const auto compact = Layout::kCompact;
  switch (role) {
    case TensorRole::kQ:
      return {"q",  dtype, 4, {"batch", "heads", "n_q", "d"}, {e.batch, e.heads, e.n_q, d},
              rows, false};
    case TensorRole::kK:
      return {"k",  dtype, 4, {"batch", "heads_kv", "n_k", "d"}, {e.batch, e.heads_kv, e.n_k, d},
              rows, false};
    case TensorRole::kV:
      return {"v",  dtype, 4, {"batch", "heads_kv", "n_k", "d"}, {e.batch, e.heads_kv, e.n_k, d},
              rows, false};
    case TensorRole::kO:
      return {"o",  dtype, 4, {"batch", "heads", "n_q", "d"}, {e.batch, e.heads, e.n_q, d},
              rows, true};
    case TensorRole::kLse:
      return {"lse", kF32, 3, {"batch", "heads", "n_q"}, {e.batch, e.heads, e.n_q}, compact, true};
    case TensorRole::kCounts:
      return {
          "counts", kI32, 4, {"batch", "heads", "q_tiles", "3"}, {e.batch, e.heads, e.q_tiles, 3},
          compact,  true};
    case TensorRole::kTileMask:
      return {"tile_mask",
              kU8,
              4,
              {"batch", "heads", "q_tiles", "k_tiles"},
              {e.batch, e.heads, e.q_tiles, e.k_tiles},
              compact,
              true};
    case TensorRole::kListIndices:
      return {"list_indices",
              kI32,
              4,
              {"batch", "heads", "q_tiles", "capacity"},
              {e.batch, e.heads, e.q_tiles, kAnyExtent},
              compact,
              false};
    case TensorRole::kListCounts:
      return {"list_counts", kI32, 3, {"batch", "heads", "q_tiles"}, {e.batch, e.heads, e.q_tiles},
              compact,       false};
    case TensorRole::kPreviousLse:
      return {"previous_lse", kF32, 3, {"batch", "heads", "n_q"}, {e.batch, e.heads, e.n_q},
              compact,        false};
    case TensorRole::kOrder:
      return {"order", kI32, 1, {"n_q"}, {e.n_q}, compact, false};
  }
  return {};
}

bool is_required(TensorRole role, const LaunchContract& contract) {
  switch (role) {
    case TensorRole::kListIndices:
    case TensorRole::kListCounts:
      return contract.takes_lists;
    case TensorRole::kPreviousLse:
      return contract.takes_previous_lse;
    case TensorRole::kOrder:
      return contract.takes_order;
    default:
      return role <= TensorRole::kO;
  }
}

/// Why a kernel has no use for a tensor; null if it has.
const char* refusal(TensorRole role, const LaunchContract& contract) {
  switch (role) {
    case TensorRole::kLse:
      return contract.has_lse ? nullptr : "the spec says \"lse\": false";
    case TensorRole::kListIndices:
    case TensorRole::kListCounts:
      return contract.takes_lists ? nullptr : "the spec does not say \"mask\": \"external\"";
    case TensorRole::kPreviousLse:
      return contract.takes_previous_lse ? nullptr
                                         : "the spec does not say \"normalise\": \"previous_lse\"";
    case TensorRole::kOrder:
      return contract.takes_order ? nullptr : "the spec has no \"permute\"";
    default:
      return nullptr;
  }
}

void bind_tensors(const lacuna_launch_args& args, const Extents& extents, Mismatches& mismatches,
                  BoundLaunch& bound) {
  const LaunchContract& contract = mismatches.contract();
  for (int i = 0; i < kTensorRoleCount; ++i) {
    const auto role = static_cast<TensorRole>(i);
    const TensorRule rule = rule_of(role, contract, extents);
    const DLTensor* tensor = tensor_of(args, role);
    if (tensor == nullptr) {
      if (is_required(role, contract)) {
        mismatches.argument(rule.name, "expected a tensor, got null");
      }
      continue;
    }
    if (const char* reason = refusal(role, contract)) {
      mismatches.argument(rule.name, "expected null, got a tensor: " + std::string(reason));
      continue;
    }
    check_tensor(rule, *tensor, Code::kTensorArgument, mismatches,
                 bound.tensors[static_cast<std::size_t>(i)]);
  }
}

std::int64_t param_extent(ParamDim dim, const Extents& e) {
  switch (dim) {
    case ParamDim::kBatch:
      return e.batch;
    case ParamDim::kHeads:
      return e.heads;
    case ParamDim::kQTiles:
      return e.q_tiles;
    case ParamDim::kKTiles:
      return e.k_tiles;
    case ParamDim::kNQ:
      return e.n_q;
    case ParamDim::kNK:
      return e.n_k;
  }
  return kAnyExtent;
}

/// "f32 [heads, q_tiles]", "i32 scalar"
std::string type_text(const ParamSymbol& symbol) {
  std::string text = symbol.type == ExprType::kI32 ? "i32 " : "f32 ";
  if (symbol.shape.empty()) return text + "scalar";
  for (std::size_t d = 0; d < symbol.shape.size(); ++d) {
    text += (d == 0 ? "[" : ", ") + std::string(name_of(symbol.shape[d]));
  }
  return text + "]";
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

bool is_i32(double value) {
  return value == std::trunc(value) && std::abs(value) <= std::numeric_limits<std::int32_t>::max();
}

void set_value(const ParamSpec& param, double value, ParamView& view) {
  if (param.symbol.type == ExprType::kI32) {
    view.value.i32 = static_cast<std::int32_t>(value);
  } else {
    view.value.f32 = static_cast<float>(value);
  }
}

void bind_value(const ParamSpec& param, double value, Mismatches& mismatches, ParamView& view) {
  const char* name = param.symbol.name.c_str();
  if (!(value >= param.minimum && value <= param.maximum)) {
    mismatches.parameter(name, "expected a value in [" + number_text(param.minimum) + ", " +
                                   number_text(param.maximum) + "], got " + number_text(value));
    return;
  }
  if (param.symbol.type == ExprType::kI32 && !is_i32(value)) {
    mismatches.parameter(name, "expected an i32, got " + number_text(value));
    return;
  }
  set_value(param, value, view);
}

void bind_tensor(const ParamSpec& param, const DLTensor& tensor, const Extents& extents,
                 Mismatches& mismatches, ParamView& view) {
  TensorRule rule;
  rule.name = param.symbol.name.c_str();
  rule.dtype = param.symbol.type == ExprType::kI32 ? kI32 : kF32;
  rule.rank = static_cast<int>(param.symbol.shape.size());
  rule.layout = Layout::kStrided;
  for (std::size_t d = 0; d < param.symbol.shape.size(); ++d) {
    rule.dims[d] = name_of(param.symbol.shape[d]).data();
    rule.extents[d] = param_extent(param.symbol.shape[d], extents);
  }
  BoundTensor bound;
  check_tensor(rule, tensor, Code::kParamArgument, mismatches, bound);
  view.data = bound.data;
  for (int d = 0; d < rule.rank; ++d) {
    view.extent[d] = static_cast<std::int32_t>(bound.extent[d]);
    view.stride[d] = bound.stride[d];
  }
}

void report_unknown(const char* name, Mismatches& mismatches) {
  std::vector<std::string> known;
  for (const ParamSpec& param : mismatches.contract().params) known.push_back(param.symbol.name);
  std::string list;
  for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
  Diagnostic& d = mismatches.parameter(
      name, "is not a parameter of this kernel; it has " + (list.empty() ? "none" : list));
  const std::string nearest = nearest_word(name, known);
  if (!nearest.empty()) d.helps.push_back("did you mean \"" + nearest + "\"?");
}

void bind_params(const lacuna_launch_args& args, const Extents& extents, Mismatches& mismatches,
                 BoundLaunch& bound) {
  const std::vector<ParamSpec>& params = mismatches.contract().params;
  std::uint32_t passed = 0;  // one bit for each parameter
  for (std::size_t i = 0; i < args.params_count; ++i) {
    const lacuna_param& given = args.params[i];
    const char* name = given.name != nullptr ? given.name : "";
    std::size_t p = 0;
    while (p < params.size() && params[p].symbol.name != name) ++p;
    if (p == params.size()) {
      report_unknown(name, mismatches);
      continue;
    }
    if ((passed >> p & 1U) != 0) mismatches.parameter(name, "is passed twice");
    passed |= 1U << p;
    bound.params[p] = ParamView{};
    if (given.tensor != nullptr) {
      bind_tensor(params[p], *given.tensor, extents, mismatches, bound.params[p]);
    } else {
      bind_value(params[p], given.value, mismatches, bound.params[p]);
    }
  }
  for (std::size_t p = 0; p < params.size(); ++p) {
    if ((passed >> p & 1U) != 0) continue;
    if (!params[p].has_default) {
      mismatches.parameter(
          params[p].symbol.name.c_str(),
          "is missing: expected " + type_text(params[p].symbol) + "; it has no default");
    }
    bound.params[p] = ParamView{};
    set_value(params[p], params[p].default_value, bound.params[p]);
  }
}

}  // namespace

bool check_shape(const LaunchContract& contract, const LaunchShape& shape,
                 Diagnostics& diagnostics) {
  Mismatches mismatches(contract, diagnostics);
  const auto refuse = [&](const std::string& text) {
    mismatches.add(Code::kTensorArgument, "shape: " + text);
  };
  const std::pair<const char*, std::int32_t> extents[] = {{"batch", shape.n_b},
                                                          {"heads", shape.n_h},
                                                          {"heads_kv", shape.n_h_kv},
                                                          {"n_q", shape.n_q},
                                                          {"n_k", shape.n_k}};
  for (const auto& [name, extent] : extents) {
    if (extent < 0)
      refuse(name + std::string(" expected 0 or more, got ") + std::to_string(extent));
  }
  const bool divides =
      shape.n_h_kv > 0 ? shape.n_h % shape.n_h_kv == 0 : shape.n_h_kv == 0 && shape.n_h == 0;
  if (!divides) {
    refuse("heads expected a multiple of heads_kv (" + std::to_string(shape.n_h_kv) + "), got " +
           std::to_string(shape.n_h));
  }
  if (contract.takes_order && shape.n_q != shape.n_k) {
    refuse("n_k expected " + std::to_string(shape.n_q) +
           " (n_q: queries and keys are permuted alike), got " + std::to_string(shape.n_k));
  }
  const std::int64_t tiles = ceil_div(shape.n_q, contract.tile_q);
  const std::int64_t rows = std::int64_t{shape.n_b} * shape.n_h;
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  if (tiles > 0 && rows > kLimit / tiles) {
    refuse("batch * heads * q_tiles expected at most 2147483647, got more");
  }
  return !mismatches.any();
}

bool bind_launch(const LaunchContract& contract, const lacuna_launch_args& args, BoundLaunch& bound,
                 Diagnostics& diagnostics) {
  Mismatches mismatches(contract, diagnostics);
  const Extents extents = read_extents(contract, args);
  bind_tensors(args, extents, mismatches, bound);
  bind_params(args, extents, mismatches, bound);
  if (mismatches.any()) return false;
  bound.shape = {static_cast<std::int32_t>(extents.batch), static_cast<std::int32_t>(extents.heads),
                 static_cast<std::int32_t>(extents.heads_kv),
                 static_cast<std::int32_t>(extents.n_q), static_cast<std::int32_t>(extents.n_k)};
  return check_shape(contract, bound.shape, diagnostics);
}

}  // namespace lacuna

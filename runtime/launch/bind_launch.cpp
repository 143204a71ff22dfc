#include "runtime/launch/bind_launch.hpp"

#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "compiler/ir/names.hpp"
#include "runtime/base/whole_tiles.hpp"
#include "runtime/launch/param_promises.hpp"
#include "runtime/launch/tensors/optional_tensors.hpp"
#include "runtime/launch/tensors/tensor_check.hpp"
#include "runtime/launch/tensors/tensor_rules.hpp"

namespace lacuna {
namespace {

void bind_tensors(const lacuna_launch_args& args, const Extents& extents, Mismatches& mismatches,
                  BoundLaunch& bound) {
  const LaunchContract& contract = mismatches.contract();
  for (int i = 0; i < kTensorRoleCount; ++i) {
    const auto role = static_cast<TensorRole>(i);
    const DLTensor* tensor = tensor_of(args, role);
    if (tensor == nullptr && !is_required(role, contract)) continue;
    const TensorRule rule = rule_of(role, contract, extents);
    if (tensor == nullptr) {
      Diagnostic& d = mismatches.argument(rule.name, "expected a tensor, got null");
      if (role == TensorRole::kOrder)
        d.helps.emplace_back(
            "lacuna_token_order makes the order of a grid, in Python kernel.tokens_in_order(n)");
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

/// Where v is the first elements of k, and passed nevertheless, it has to lie there.
void check_v_of_k(const BoundTensor& k, const BoundTensor& v, Mismatches& mismatches) {
  bool same = v.data == k.data;
  for (int d = 0; d < 3; ++d) same = same && (k.extent[d] <= 1 || v.stride[d] == k.stride[d]);
  if (same) return;
  mismatches
      .argument("v", "expected null, or the first elements of each row of k, got other memory")
      .notes.emplace_back("the spec says \"v\": \"k\": keys are read once for both");
}

/// v, and the scales of e4m3, from those of k.
void bind_v_of_k(Mismatches& mismatches, BoundLaunch& bound) {
  const LaunchContract& contract = mismatches.contract();
  if (!contract.v_of_k || mismatches.any()) return;
  const auto tensor = [&](TensorRole role) -> BoundTensor& {
    return bound.tensors[static_cast<std::size_t>(role)];
  };
  BoundTensor& v = tensor(TensorRole::kV);
  if (v.data != nullptr) return check_v_of_k(tensor(TensorRole::kK), v, mismatches);
  v = tensor(TensorRole::kK);
  v.extent[3] = contract.head_dim_v;
  if (tensor(TensorRole::kVScale).data == nullptr)
    tensor(TensorRole::kVScale) = tensor(TensorRole::kKScale);
}

std::int64_t param_extent(const ParamDim& dim, const Extents& e) {
  switch (dim.axis) {
    case ParamAxis::kBatch:
      return e.batch;
    case ParamAxis::kHeads:
      return e.heads;
    case ParamAxis::kQTiles:
      return e.q_tiles;
    case ParamAxis::kKTiles:
      return e.k_tiles;
    case ParamAxis::kNQ:
      return e.n_q;
    case ParamAxis::kNK:
      return e.n_k;
    case ParamAxis::kFixed:
      return dim.extent;
  }
  return kAnyExtent;
}

/// "f32 [heads, q_tiles]", "i32 scalar"
std::string type_text(const ParamSymbol& symbol) {
  std::string text = symbol.type == ExprType::kI32 ? "i32 " : "f32 ";
  if (symbol.shape.empty()) return text + "scalar";
  for (std::size_t d = 0; d < symbol.shape.size(); ++d) {
    text += (d == 0 ? "[" : ", ") + name_of(symbol.shape[d]);
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
  std::array<std::string, kMaxParamRank> names;
  for (std::size_t d = 0; d < param.symbol.shape.size(); ++d) {
    const ParamDim& dim = param.symbol.shape[d];
    const bool is_of_whole = dim.axis == ParamAxis::kNQ && mismatches.contract().has_positions;
    names[d] = name_of(dim);
    rule.dims[d] = names[d].c_str();
    rule.extents[d] = is_of_whole ? kAnyExtent : param_extent(dim, extents);
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

/// Formulas read the order of tokens as parameters.
void bind_order_params(const LaunchContract& contract, BoundLaunch& bound) {
  const BoundTensor& order = bound[TensorRole::kOrder];
  for (std::size_t n = 0; n < contract.order_params; ++n) {
    ParamView& view = bound.params[contract.params.size() + n];
    view = ParamView{};
    view.data = order.data;
    view.extent[0] = static_cast<std::int32_t>(order.extent[0]);
    view.stride[0] = 1;
  }
}

void bind_scale(double scale, Mismatches& mismatches, BoundLaunch& bound) {
  bound.softmax_scale = static_cast<float>(scale);
  const bool is_usable = std::isnormal(bound.softmax_scale) && bound.softmax_scale > 0;
  if (scale == 0 || is_usable) return;
  mismatches.argument("softmax_scale",
                      "expected a positive f32, or 0 for the spec's, got " + number_text(scale));
}

/// On the CPU, whose memory can be read here; of sequences each is looked at by itself
/// (host_sequences.cpp). On a GPU a promise that is not kept goes unseen: `lacuna run` looks at
/// what it passes.
void check_promises(Mismatches& mismatches, const BoundLaunch& bound) {
  const LaunchContract& contract = mismatches.contract();
  if (contract.device.device_type != kDLCPU || mismatches.any()) return;
  if (contract.batch != BatchLayout::kUniform) return;
  for (std::size_t p = 0; p < contract.params.size(); ++p) {
    const ParamSpec& param = contract.params[p];
    if (const auto broken = broken_promise(param, bound.params[p]))
      mismatches.parameter(param.symbol.name.c_str(), *broken);
  }
}

bool check_sequences(const lacuna_sequences* sequences, Mismatches& mismatches) {
  const LaunchContract& contract = mismatches.contract();
  const bool is_uniform = contract.batch == BatchLayout::kUniform;
  const auto batch = [&] {
    return "it was compiled for a batch of " + std::string(name_of(contract.batch));
  };
  if (is_uniform && sequences != nullptr)
    mismatches.argument("sequences", "expected null, got lacuna_sequences: " + batch());
  if (!is_uniform && sequences == nullptr)
    mismatches.argument("sequences", "expected lacuna_sequences, got null: " + batch());
  if (is_uniform || sequences == nullptr) return !mismatches.any();
  const std::pair<const char*, std::int32_t> counts[] = {{"sequences.count", sequences->count},
                                                         {"sequences.max_n_q", sequences->max_n_q},
                                                         {"sequences.max_n_k", sequences->max_n_k}};
  for (const auto& [name, count] : counts) {
    if (count < 0) mismatches.argument(name, "expected 0 or more, got " + std::to_string(count));
  }
  // Grids have a row of blocks for each sequence.
  constexpr std::int32_t kMostRows = 65535;
  if (!contract.packs_heads && sequences->count > kMostRows)
    mismatches.argument("sequences.count", "expected at most " + std::to_string(kMostRows) +
                                               ", got " + std::to_string(sequences->count));
  return !mismatches.any();
}

/// What the extents of a page table and of its pages have to be.
void check_pages(const Extents& extents, const lacuna_sequences* sequences,
                 Mismatches& mismatches) {
  constexpr std::int64_t kFewestTokens = 16, kMostTokens = 128;
  if (mismatches.contract().batch != BatchLayout::kPages || extents.k_rows == kAnyExtent) return;
  const std::int64_t tokens = extents.k_rows;
  if (tokens < kFewestTokens || tokens > kMostTokens || (tokens & (tokens - 1)) != 0) {
    mismatches.argument("k",
                        "page_tokens expected 16, 32, 64 or 128, got " + std::to_string(tokens));
    return;
  }
  const DLTensor* pages = sequences->pages;
  if (pages == nullptr || pages->ndim != 2 || pages->shape == nullptr) return;
  const std::int64_t needed = ceil_div(extents.n_k, tokens);
  if (extents.n_k > 0 && pages->shape[1] < needed) {
    mismatches.argument("pages", "max_pages expected at least " + std::to_string(needed) + " (" +
                                     std::to_string(extents.n_k) + " keys in pages of " +
                                     std::to_string(tokens) + "), got " +
                                     std::to_string(pages->shape[1]));
  }
}

/// Where single rows are copied from pages, a kernel finds a row by a number of 32 bits, which
/// counts units of 16 bytes from the tensor's first; the largest such number means that there is no
/// row (templates/loader/gather_pages.cuh).
void check_places_in_pages(Mismatches& mismatches, const BoundLaunch& bound) {
  constexpr std::int64_t kUnitElements = 8, kMostPlace = std::numeric_limits<std::uint32_t>::max();
  if (!mismatches.contract().copies_from_pages || mismatches.any()) return;
  const std::pair<const char*, TensorRole> stores[] = {{"k", TensorRole::kK},
                                                       {"v", TensorRole::kV}};
  for (const auto& [name, role] : stores) {
    const BoundTensor& x = bound[role];
    std::int64_t last = 0;  // element, of the last token of the last page
    for (const int d : {0, 2}) {
      if (x.extent[d] > 1) last += (x.extent[d] - 1) * x.stride[d];
    }
    if (last / kUnitElements >= kMostPlace)
      mismatches.argument(name,
                          "pages expected within 68719476720 bytes, because single rows are "
                          "copied from them, got " +
                              std::to_string(last * 2) + " to the last row");
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
  constexpr int kMostGroupHeads = 64;  // rows of a warpgroup
  if (contract.packs_heads && divides && shape.n_h_kv > 0 &&
      shape.n_h / shape.n_h_kv > kMostGroupHeads) {
    refuse("heads of a KV head expected at most " + std::to_string(kMostGroupHeads) + ", got " +
           std::to_string(shape.n_h / shape.n_h_kv));
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
  if (!check_sequences(args.sequences, mismatches)) return false;
  const Extents extents = read_extents(contract, args);
  check_pages(extents, args.sequences, mismatches);
  bind_tensors(args, extents, mismatches, bound);
  check_places_in_pages(mismatches, bound);
  check_scales(extents, mismatches, bound);
  check_summaries(extents, mismatches, bound);
  bind_v_of_k(mismatches, bound);
  bind_params(args, extents, mismatches, bound);
  bind_order_params(contract, bound);
  bind_scale(args.softmax_scale, mismatches, bound);
  check_promises(mismatches, bound);
  if (mismatches.any()) return false;
  bound.shape = {static_cast<std::int32_t>(extents.batch), static_cast<std::int32_t>(extents.heads),
                 static_cast<std::int32_t>(extents.heads_kv),
                 static_cast<std::int32_t>(extents.n_q), static_cast<std::int32_t>(extents.n_k)};
  return check_shape(contract, bound.shape, diagnostics);
}

}  // namespace lacuna

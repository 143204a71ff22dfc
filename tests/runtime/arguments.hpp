// A contract, and arguments of a launch that fit it, for tests that change one of them.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/lacuna.hpp"
#include "runtime/launch/bind_launch.hpp"

namespace lacuna {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline ParamSpec param(const char* name, ExprType type, std::vector<ParamDim> shape) {
  ParamSpec spec{};
  spec.symbol.name = name;
  spec.symbol.type = type;
  spec.symbol.shape = std::move(shape);
  spec.minimum = -kInfinity;
  spec.maximum = kInfinity;
  return spec;
}

inline LaunchContract contract(DLDevice device = {kDLCPU, 0}) {
  LaunchContract c;
  c.kernel = "bsfa";
  c.device = device;
  c.dtype = DType::kBF16;
  c.head_dim = c.head_dim_v = 64;
  c.tile_q = 128;
  c.tile_k = 64;
  ParamSpec threshold = param("threshold", ExprType::kF32, {ParamAxis::kHeads, ParamAxis::kQTiles});
  ParamSpec sink = param("sink", ExprType::kI32, {});
  sink.minimum = 0;
  sink.has_default = true;
  sink.default_value = 4;
  c.params = {threshold, sink};
  return c;
}

struct Arguments {
  explicit Arguments(DLDevice device = {kDLCPU, 0}) : device(device) {}

  void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }
  DLDevice device;
  Tensor q{at(0x10000), bf16, {2, 8, 300, 64}, device};
  Tensor k{at(0x20000), bf16, {2, 2, 200, 64}, device};
  Tensor v{at(0x30000), bf16, {2, 2, 200, 64}, device};
  Tensor o{at(0x40000), bf16, {2, 8, 300, 64}, device};
  Tensor lse, counts, tile_mask, list_indices, list_counts, previous_lse, order, k_scale, v_scale;
  Tensor threshold{at(0x50000), f32, {8, 3}, device};
  std::vector<Param> params{{"threshold", threshold}};
  double softmax_scale = 0;
  const lacuna_sequences* sequences = nullptr;

  /// All messages of the launch; "" if it is accepted.
  std::string check(const LaunchContract& c, BoundLaunch* result = nullptr) {
    lacuna_launch_args args{};
    args.struct_size = sizeof(args);
    const std::pair<const Tensor*, const DLTensor**> all[] = {{&q, &args.q},
                                                              {&k, &args.k},
                                                              {&v, &args.v},
                                                              {&o, &args.o},
                                                              {&lse, &args.lse},
                                                              {&counts, &args.counts},
                                                              {&tile_mask, &args.tile_mask},
                                                              {&list_indices, &args.list_indices},
                                                              {&list_counts, &args.list_counts},
                                                              {&previous_lse, &args.previous_lse},
                                                              {&order, &args.order},
                                                              {&k_scale, &args.k_scale},
                                                              {&v_scale, &args.v_scale}};
    DLTensor views[std::size(all)];
    for (std::size_t i = 0; i < std::size(all); ++i) {
      views[i] = all[i].first->view();
      if (all[i].first->passed()) *all[i].second = &views[i];
    }
    std::vector<DLTensor> param_views;
    for (const Param& given : params) param_views.push_back(given.tensor.view());
    std::vector<lacuna_param> raw;
    for (std::size_t i = 0; i < params.size(); ++i) {
      raw.push_back({params[i].name.c_str(), params[i].tensor.passed() ? &param_views[i] : nullptr,
                     params[i].value});
    }
    args.params = raw.data();
    args.params_count = raw.size();
    args.softmax_scale = softmax_scale;
    args.sequences = sequences;
    BoundLaunch bound;
    Diagnostics diagnostics;
    bind_launch(c, args, result != nullptr ? *result : bound, diagnostics);
    std::string text;
    for (const Diagnostic& d : diagnostics.items) {
      text += d.message + "\n";
      for (const std::string& help : d.helps) text += "help: " + help + "\n";
    }
    return text;
  }
};

}  // namespace lacuna

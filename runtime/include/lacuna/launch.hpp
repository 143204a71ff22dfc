// What a launch is given. Part of lacuna.hpp, which includes it.
#ifndef LACUNA_LAUNCH_HPP_
#define LACUNA_LAUNCH_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/lacuna.h"
#include "lacuna/tensor.hpp"

namespace lacuna {
inline namespace LACUNA_ABI_NAMESPACE {

/// A run-time parameter: one number for all elements, or a tensor of the declared shape.
struct Param {
  Param(std::string name, double value) : name(std::move(name)), value(value) {}
  Param(std::string name, const Tensor& tensor) : name(std::move(name)), tensor(tensor) {}
  std::string name;
  Tensor tensor = {};
  double value = 0;
};

/// The caller's memory for one decision of a predictor, and how often it has served.
struct Selection : lacuna_selection {
  Selection(void* data, std::size_t bytes)
      : lacuna_selection{sizeof(lacuna_selection), data, bytes, 0} {}
  /// The next launch decides anew.
  void forget() { calls = 0; }
};

/// The members are those of lacuna_sequences. A count of 0 and no tensors: no sequences.
struct Sequences {
  std::int32_t count = 0, max_n_q = 0, max_n_k = 0;
  Tensor q_begin = {}, n_k = {}, k_begin = {}, pages = {};
};

/// The members are those of lacuna_branch_args.
struct BranchArgs {
  std::string name;
  Tensor counts = {}, tile_mask = {};
  lacuna_selection* selection = nullptr;  ///< of a Selection
};

/// The members are those of lacuna_launch_args.
struct LaunchArgs {
  Tensor q = {}, k = {}, v = {}, o = {};
  Tensor lse = {}, counts = {}, tile_mask = {};
  Tensor list_indices = {}, list_counts = {};
  std::vector<Param> params = {};
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  void* stream = nullptr;
  Tensor previous_lse = {}, order = {};
  lacuna_selection* selection = nullptr;  ///< of a Selection
  std::vector<void*> stage_events = {};
  Sequences sequences = {};
  double softmax_scale = 0;  ///< 0: the spec's
  Tensor k_scale = {}, v_scale = {};
  std::int64_t sm_margin = 0;
  std::vector<BranchArgs> branches = {};  ///< of specs with branches
  Tensor k_summaries = {}, summary_slots = {}, summarised = {};
};

struct Shape {
  std::int32_t batch = 1, heads = 1, heads_kv = 1, n_q = 0, n_k = 0;
};

namespace detail {
/// Of branches, as the C ABI takes them.
class RawBranches {
 public:
  explicit RawBranches(const std::vector<BranchArgs>& branches)
      : views_(2 * branches.size()), raw_(branches.size()), pointers_(branches.size()) {
    for (std::size_t i = 0; i < branches.size(); ++i) {
      const BranchArgs& branch = branches[i];
      raw_[i] = {sizeof(lacuna_branch_args), branch.name.c_str(), view(branch.counts, 2 * i),
                 view(branch.tile_mask, 2 * i + 1), branch.selection};
      pointers_[i] = &raw_[i];
    }
  }
  const lacuna_branch_args* const* data() const {
    return pointers_.empty() ? nullptr : pointers_.data();
  }
  std::size_t size() const { return pointers_.size(); }

 private:
  const DLTensor* view(const Tensor& tensor, std::size_t at) {
    views_[at] = tensor.view();
    return tensor.passed() ? &views_[at] : nullptr;
  }
  std::vector<DLTensor> views_;
  std::vector<lacuna_branch_args> raw_;
  std::vector<const lacuna_branch_args*> pointers_;
};

/// call(raw): the arguments as the C ABI takes them, for as long as the call lasts.
template <class Call>
void with_raw_args(const LaunchArgs& args, const Call& call) {
  const Tensor* tensors[] = {&args.q,
                             &args.k,
                             &args.v,
                             &args.o,
                             &args.lse,
                             &args.counts,
                             &args.tile_mask,
                             &args.list_indices,
                             &args.list_counts,
                             &args.previous_lse,
                             &args.order,
                             &args.sequences.q_begin,
                             &args.sequences.n_k,
                             &args.sequences.k_begin,
                             &args.sequences.pages,
                             &args.k_scale,
                             &args.v_scale,
                             &args.k_summaries,
                             &args.summary_slots,
                             &args.summarised};
  constexpr std::size_t kTensors = sizeof(tensors) / sizeof(tensors[0]);
  DLTensor views[kTensors];
  const DLTensor* passed[kTensors];
  for (std::size_t i = 0; i < kTensors; ++i) {
    views[i] = tensors[i]->view();
    passed[i] = tensors[i]->passed() ? &views[i] : nullptr;
  }
  std::vector<DLTensor> param_views(args.params.size());
  std::vector<lacuna_param> params(args.params.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Param& param = args.params[i];
    param_views[i] = param.tensor.view();
    params[i] = {param.name.c_str(), param.tensor.passed() ? &param_views[i] : nullptr,
                 param.value};
  }
  const RawBranches branches(args.branches);
  const Sequences& batch = args.sequences;
  const lacuna_sequences sequences = {sizeof(lacuna_sequences),
                                      batch.count,
                                      batch.max_n_q,
                                      batch.max_n_k,
                                      passed[11],
                                      passed[12],
                                      passed[13],
                                      passed[14]};
  const lacuna_launch_args raw = {sizeof(lacuna_launch_args),
                                  passed[0],
                                  passed[1],
                                  passed[2],
                                  passed[3],
                                  passed[4],
                                  passed[5],
                                  passed[6],
                                  passed[7],
                                  passed[8],
                                  params.data(),
                                  params.size(),
                                  args.workspace,
                                  args.workspace_bytes,
                                  args.stream,
                                  passed[9],
                                  passed[10],
                                  args.selection,
                                  args.stage_events.empty() ? nullptr : args.stage_events.data(),
                                  args.stage_events.size(),
                                  batch.q_begin.passed() ? &sequences : nullptr,
                                  args.softmax_scale,
                                  passed[15],
                                  passed[16],
                                  args.sm_margin,
                                  branches.data(),
                                  branches.size(),
                                  passed[17],
                                  passed[18],
                                  passed[19]};
  call(raw);
}

inline lacuna_shape to_raw(const Shape& shape) {
  return {sizeof(lacuna_shape), shape.batch, shape.heads, shape.heads_kv, shape.n_q, shape.n_k};
}
}  // namespace detail

}  // namespace LACUNA_ABI_NAMESPACE
}  // namespace lacuna
#endif

#include "compiler/lower/lower.hpp"

#include <algorithm>

#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/token_ops.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {
namespace {

/// In launch order.
constexpr Kernels (*kLowerings[])(const Plan&) = {
    lower_permute,        lower_means,     lower_statistics,  lower_prepare, lower_bounds,
    lower_prepare_values, lower_pairs,     lower_steps,       lower_compact, lower_attend,
    lower_combine,        lower_unpermute, lower_merge_branch};

/// A slot that several kernels name, and the sizes that they give it.
struct SharedSlot {
  Slot slot;
  std::vector<std::string> sizes;
};

void add_slot(const Slot& slot, std::vector<SharedSlot>& slots) {
  const auto found = std::ranges::find_if(
      slots, [&](const SharedSlot& other) { return other.slot.name == slot.name; });
  if (found == slots.end()) {
    slots.push_back({slot, {slot.units}});
  } else if (std::ranges::count(found->sizes, slot.units) == 0) {
    found->sizes.push_back(slot.units);
  }
}

/// "max(a, b)" of different sizes.
std::vector<Slot> workspace_of(const Kernels& kernels) {
  std::vector<SharedSlot> shared;
  for (const Kernel& kernel : kernels) {
    for (const Slot& slot : kernel.slots) add_slot(slot, shared);
  }
  std::vector<Slot> slots;
  for (const SharedSlot& one : shared) {
    slots.push_back(one.slot);
    for (std::size_t n = 1; n < one.sizes.size(); ++n)
      slots.back().units = "max(" + slots.back().units + ", " + one.sizes[n] + ")";
  }
  std::ranges::stable_sort(slots, {}, &Slot::region);
  return slots;
}

/// What the kernels around attend find in their arguments, whichever they are.
std::vector<NamedSize> predict_sizes(const Program& program) {
  std::vector<NamedSize> sizes = {{"q_padded", padded_length(Tensor::kQ)},
                                  {"k_padded", padded_length(Tensor::kK)}};
  const Select* select = last_step(program).select;
  if (select == nullptr) return sizes;
  sizes.push_back({"keep_q_tiles", keep_q_tiles(*select)});
  sizes.push_back({"keep_k_tiles", keep_k_tiles(*select)});
  sizes.push_back({"keep_words", keep_words(*select)});
  if (program.batch == BatchLayout::kUniform) return sizes;
  sizes.push_back({"keep_q", std::to_string(select->tile_q)});
  sizes.push_back({"keep_k", std::to_string(select->tile_k)});
  return sizes;
}

/// What the compiler may give a thread, so that the resident blocks find their registers.
Chosen<int> registers_of(const Kernel& kernel, const Target& target) {
  const Chosen<int>& blocks = kernel.resident_blocks;
  const int most = most_registers(kernel.threads.value * blocks.value, target);
  return {most, blocks.origin,
          "at most, of a thread, for " + std::to_string(blocks.value) +
              (blocks.value == 1 ? " block" : " blocks") +
              " on a multiprocessor: " + blocks.reason};
}

/// Of a batch of sequences: has the workspace a piece for each? Attend of the wgmma family needs
/// none, but what kernels before it leave in the workspace has the lengths of each sequence.
bool has_pieces(const LoweredPlan& lowered, const Plan& plan) {
  if (!lowered.parts.sequences) return false;
  return !has_sequence_tiles(plan) || std::ranges::any_of(lowered.slots, [](const Slot& slot) {
    return slot.region == SlotRegion::kOwn;
  });
}

bool has_other_ops(const Program& program) {
  return std::ranges::any_of(program.nodes, [](const Node& node) {
    return !std::holds_alternative<Input>(node.op) && !std::holds_alternative<Attend>(node.op);
  });
}

}  // namespace

LoweredPlan lower_plan(const Plan& plan) {
  LoweredPlan lowered;
  for (const auto lowering : kLowerings) append_kernels(lowered.kernels, lowering(plan));
  for (Kernel& kernel : lowered.kernels) kernel.registers = registers_of(kernel, plan.target);
  lowered.parts = {.wgmma = plan.attend.family.value == AttendFamily::kWgmma,
                   .split = plan.attend.split_kv.value > 1 && !has_sequence_tiles(plan),
                   .sequences = plan.program.batch != BatchLayout::kUniform,
                   .predict = has_other_ops(plan.program),
                   .kv_scales = plan.program.kv == KvFormat::kE4M3,
                   .branch = find_op<MergeBranch>(plan.program) != nullptr,
                   .pairs = attend_of(plan.program).pairs,
                   .summaries = kept_summaries(plan.program) != nullptr};
  lowered.slots = workspace_of(lowered.kernels);
  lowered.each_sequence = has_pieces(lowered, plan);
  lowered.sizes = attend_sizes(plan);
  if (lowered.parts.predict) {
    for (NamedSize& size : predict_sizes(plan.program)) lowered.sizes.push_back(std::move(size));
  }
  for (const Kernel& kernel : lowered.kernels) {
    if (kernel.name == "attend") continue;  // whose sizes come first
    lowered.sizes.insert(lowered.sizes.end(), kernel.sizes.begin(), kernel.sizes.end());
  }
  // No item of a split work tile could clear its row's reports before all others; and reports have
  // rows and tiles for the longest sequence.
  if (lowered.parts.split || (lowered.parts.sequences && !packs_heads(plan)))
    lowered.cleared = {TensorRole::kCounts, TensorRole::kTileMask};
  return lowered;
}

bool runs_each_sequence(const LoweredPlan& lowered, const Kernel& kernel) {
  return lowered.parts.sequences && (!lowered.parts.wgmma || !kernel.attends);
}

}  // namespace lacuna

#include "compiler/emit/bind_args.hpp"

#include <algorithm>

#include "compiler/emit/block_layout.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

template <class Named>
int find_named(const std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

/// A member that in some programs comes from elsewhere than its table says.
struct Redirection {
  std::string_view member;
  FieldSource source;
  std::string_view name;  ///< of the slot or value
};
using Source = FieldSource;

/// Lists that a predictor makes; a row of them has room for all tiles.
constexpr Redirection kMadeLists[] = {
    {"list_indices", Source::kWorkspace, "list_indices"},
    {"list_counts", Source::kWorkspace, "list_counts"},
    {"list_capacity", Source::kValue, "k_tiles"},
};

/// Ordered copies, contiguous. Strides are tokens (times the width of a row).
constexpr Redirection kOrderedCopies[] = {
    {"q.data", Source::kWorkspace, "ordered_q"},
    {"q.stride_b", Source::kScaledValue, "q_tokens_of_heads"},
    {"q.stride_h", Source::kScaledValue, "q_tokens"},
    {"q.stride_n", Source::kConstant, ""},
    {"k.data", Source::kWorkspace, "ordered_k"},
    {"k.stride_b", Source::kScaledValue, "k_tokens_of_heads"},
    {"k.stride_h", Source::kScaledValue, "k_tokens"},
    {"k.stride_n", Source::kConstant, ""},
    {"v.data", Source::kWorkspace, "ordered_v"},
    {"v.stride_b", Source::kScaledValue, "k_tokens_of_heads"},
    {"v.stride_h", Source::kScaledValue, "k_tokens"},
    {"v.stride_n", Source::kConstant, ""},
    {"o.data", Source::kWorkspace, "ordered_o"},
    {"o.stride_b", Source::kScaledValue, "q_tokens_of_heads"},
    {"o.stride_h", Source::kScaledValue, "q_tokens"},
    {"o.stride_n", Source::kConstant, ""},
    {"lse.data", Source::kWorkspace, "ordered_lse"},
    {"lse.stride_b", Source::kScaledValue, "q_tokens_of_heads"},
    {"lse.stride_h", Source::kScaledValue, "q_tokens"},
};

/// Integers that the estimate shares with attend.
constexpr Redirection kSharedQ[] = {
    {"estimate_q_values", Source::kWorkspace, "q_values"},
    {"estimate_q_scale", Source::kWorkspace, "q_scale"},
    {"estimate_q_groups", Source::kValue, "q_groups"},
};
constexpr Redirection kSharedK[] = {
    {"estimate_k_values", Source::kWorkspace, "k_values"},
    {"estimate_k_scale", Source::kWorkspace, "k_scale"},
    {"estimate_k_groups", Source::kValue, "k_groups"},
};

std::vector<Redirection> redirections(const StageFacts& facts) {
  std::vector<Redirection> all;
  const auto add = [&](bool applies, std::span<const Redirection> some) {
    for (const Redirection& one : some)
      if (applies) all.push_back(one);
  };
  const bool quantised = facts.estimate != nullptr && facts.estimate->q_scale >= 0;
  add(facts.compact != nullptr, kMadeLists);
  add(facts.permutes, kOrderedCopies);
  add(quantised && facts.q.estimate_quantise == nullptr, kSharedQ);
  add(quantised && facts.k.estimate_quantise == nullptr, kSharedK);
  return all;
}

/// Constants of the block: the softmax scale, and widths of rows.
double constant_of(const StageFacts& facts, std::string_view member) {
  if (member == "scale") return static_cast<double>(facts.attend.scale);
  return member.starts_with("lse") ? 1 : facts.head_dim();
}

/// Tensors of PredictArgs that only some programs read.
bool reads(const StageFacts& facts, std::string_view member) {
  if (member.starts_with("previous_lse")) {
    return facts.estimate != nullptr && facts.estimate->previous_lse >= 0;
  }
  return facts.permutes || (!member.starts_with("caller_") && member != "order");
}

/// Completes a field of the tables; false: this program leaves it 0.
bool bind(const StageFacts& facts, const LaunchProgram& program,
          const std::vector<Redirection>& redirected, ArgField& field) {
  std::string_view name = field.name;
  if (const auto found = std::ranges::find(redirected, name, &Redirection::member);
      found != redirected.end()) {
    field.source = found->source;
    field.index = 0;
    name = found->name;
  }
  if (field.source == Source::kWorkspace) field.index = find_slot(program, name);
  if (field.source == Source::kValue || field.source == Source::kScaledValue) {
    field.index = find_value(program, name);
  }
  if (field.source == Source::kConstant || field.source == Source::kScaledValue) {
    field.constant = constant_of(facts, field.name);
  }
  return field.index >= 0 && reads(facts, field.name);
}

/// Tokens of a box of a tensor: those that one TMA instruction moves.
int box_rows(const StageFacts& facts, TensorRole role) {
  if (role == TensorRole::kQ) return kWarpgroupRows;
  if (role == TensorRole::kO) return kWarpRows;
  if (facts.gathers()) return facts.attend.keep_k;
  return facts.attend.tile_k;
}

/// The map of a tensor of the caller, or its ordered copy.
TensorMapFields map_of_tensor(const StageFacts& facts, const LaunchProgram& program,
                              const BlockMap& map) {
  const auto field = [&](const char* member) {
    return find_named(program.fields, std::string(map.name) + member);
  };
  return {.name = map.name,
          .role = map.role,
          .dtype = facts.plan.program.dtype,
          .panel_elements = kPanelElements,
          .panels = facts.head_dim() / kPanelElements,
          .box_rows = box_rows(facts, map.role),
          .data = field(".data"),
          .stride_b = field(".stride_b"),
          .stride_h = field(".stride_h"),
          .stride_n = field(".stride_n")};
}

/// The map of integers, or of e4m3 values, in the workspace; both are padded to whole tiles.
TensorMapFields map_of_bytes(const StageFacts& facts, const LaunchProgram& program,
                             const BlockMap& map) {
  const bool columns = map.role == TensorRole::kV;
  const int head_dim = facts.head_dim();
  const char* tokens = map.role == TensorRole::kQ ? "q_padded" : "k_padded";
  return {.name = map.name,
          .role = map.role,
          .dtype = facts.plan.program.dtype,
          .format = columns ? MapFormat::kByteColumns : MapFormat::kByteRows,
          .panel_elements = columns ? kColumnPanelTokens : head_dim,
          .panels = columns ? 0 : 1,
          .box_rows = columns ? head_dim : box_rows(facts, map.role),
          .data = find_named(program.fields, std::string(map.name) + "_values"),
          .tokens = find_named(program.fields, tokens)};
}

bool has_bytes(const StageFacts& facts, TensorRole role) {
  if (role == TensorRole::kO) return false;
  return role == TensorRole::kV ? facts.attend.v_scale >= 0 : facts.attend.q_scale >= 0;
}

}  // namespace

int find_value(const LaunchProgram& program, std::string_view name) {
  return find_named(program.values, name);
}

int find_slot(const LaunchProgram& program, std::string_view name) {
  return find_named(program.slots, name);
}

std::vector<ArgField> bind_args(const StageFacts& facts, const LaunchProgram& program) {
  const std::vector<Redirection> redirected = redirections(facts);
  std::vector<ArgField> fields;
  const auto add = [&](std::vector<ArgField> members) {
    for (ArgField& field : members) {
      if (bind(facts, program, redirected, field)) fields.push_back(std::move(field));
    }
  };
  const BlockParts parts = facts.parts();
  if (parts.wgmma) add(lay_out(schedule_members(), schedule_offset()));
  add(lay_out(attend_members(), attend_offset(parts)));
  if (parts.split) add(lay_out(split_members(), split_offset(parts)));
  if (parts.predict) add(lay_out(predict_members(), predict_offset(parts)));
  std::uint32_t end = params_offset(parts);
  const std::vector<ParamSpec>& params = facts.plan.program.params;
  for (std::size_t p = 0; p < params.size(); ++p, end += kParamBytes) {
    fields.push_back({"param_" + params[p].symbol.name, end, FieldKind::kParam, Source::kParam,
                      static_cast<int>(p), 0});
  }
  return fields;
}

std::vector<TensorMapFields> bind_maps(const StageFacts& facts, const LaunchProgram& program) {
  std::vector<TensorMapFields> maps;
  if (!facts.is_wgmma()) return maps;
  for (const BlockMap& map : attend_maps()) {
    maps.push_back(has_bytes(facts, map.role) ? map_of_bytes(facts, program, map)
                                              : map_of_tensor(facts, program, map));
    maps.back().offset = kTensorMapBytes * static_cast<std::uint32_t>(maps.size() - 1);
  }
  return maps;
}

}  // namespace lacuna

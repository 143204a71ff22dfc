#include "compiler/emit/bind_arguments.hpp"

#include <algorithm>

#include "compiler/emit/block_layout.hpp"
#include "compiler/ir/coded_rows.hpp"
#include "compiler/lower/attend/schedule.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

using Source = FieldSource;

template <class Named>
int find_named(const std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

/// What the kernels say about a member; null: it comes from where its table says.
const Argument* argument_of(const LoweredPlan& lowered, std::string_view member) {
  for (const Kernel& kernel : lowered.kernels) {
    const auto found = std::ranges::find(kernel.arguments, member, &Argument::member);
    if (found != kernel.arguments.end()) return &*found;
  }
  return nullptr;
}

/// Constants of the block: the softmax scale, and widths of rows.
double constant_of(const Program& program, std::string_view member) {
  if (member == "scale") return static_cast<double>(attend_of(program).scale);
  if (member == "workspace_bytes") return kWorkspaceUnitBytes;
  if (member.starts_with("lse")) return 1;
  const bool is_value = member.starts_with("v.") || member.starts_with("o.");
  return is_value ? value_dim(program) : program.head_dim;
}

/// Does a kernel read or write the caller's tensor of this member?
bool is_operand(const LoweredPlan& lowered, std::string_view member) {
  const std::string_view tensor = member.substr(0, member.find('.'));
  return std::ranges::any_of(lowered.kernels, [&](const Kernel& kernel) {
    return std::ranges::count(kernel.operands, tensor) > 0;
  });
}

bool is_of_tensor(Source source) {
  return source == Source::kTensorData || source == Source::kTensorStride ||
         source == Source::kTensorExtent;
}

/// Completes a field of the tables; false: this program leaves it 0.
bool bind(const Program& program, const LoweredPlan& lowered, const LaunchProgram& launch,
          ArgField& field) {
  std::string_view name = field.name;
  if (const Argument* argument = argument_of(lowered, name)) {
    field.source = argument->source;
    field.index = 0;
    name = argument->name;
  }
  if (field.source == Source::kKeptStride)
    field.index = launch.each_sequence ? launch.kept_slot : -1;
  if (field.source == Source::kWorkspace) field.index = find_slot(launch, name);
  if (field.source == Source::kValue || field.source == Source::kScaledValue)
    field.index = find_value(launch, name);
  if (field.name == "workspace_bytes")
    field.index = launch.each_sequence ? launch.workspace_value : -1;
  if (field.source == Source::kConstant || field.source == Source::kScaledValue ||
      field.source == Source::kSoftmaxScale)
    field.constant = constant_of(program, field.name);
  return field.index >= 0;
}

/// Tokens of a box of a tensor: those that one TMA instruction moves.
int box_rows(const Attend& attend, TensorRole role) {
  if (role == TensorRole::kQ) return kWarpgroupRows;
  if (role == TensorRole::kO) return kWarpRows;
  return attend.columns >= 0 ? attend.keep_k : attend.tile_k;
}

bool has_codes(const Program& program, TensorRole role) {
  return attends_to_codes(program) && (role == TensorRole::kK || role == TensorRole::kV);
}

/// The map of a tensor of the caller, or its ordered copy.
TensorMapFields map_of_tensor(const Program& program, const LaunchProgram& launch,
                              const BlockMap& map) {
  const auto field = [&](const char* member) {
    return find_named(launch.fields, std::string(map.name) + member);
  };
  const bool is_value = map.role == TensorRole::kV || map.role == TensorRole::kO;
  const int width = is_value ? value_dim(program) : program.head_dim;
  const bool is_whole = width % kPanelElements == 0;
  const bool is_coded = has_codes(program, map.role);
  const int panel = is_coded ? code_panel(width) : kPanelElements;
  return {.name = map.name,
          .role = map.role,
          .dtype = program.dtype,
          .format = is_coded ? MapFormat::kCodeRows : MapFormat::kRows,
          .panel_elements = panel,
          .panels = is_whole ? width / panel : 1,
          .row_elements = is_whole ? 0 : width,
          .box_rows = box_rows(attend_of(program), map.role),
          .data = field(".data"),
          .stride_b = field(".stride_b"),
          .stride_h = field(".stride_h"),
          .stride_n = field(".stride_n")};
}

/// The same of a batch of sequences, whose boxes depend on the launch.
TensorMapFields map_of_sequences(const Plan& plan, const LaunchProgram& launch,
                                 const BlockMap& map) {
  const Program& program = plan.program;
  TensorMapFields fields = map_of_tensor(program, launch, map);
  const bool is_of_queries = map.role == TensorRole::kQ || map.role == TensorRole::kO;
  if (is_of_queries) {
    fields.box_rows_field = find_named(launch.fields, "group_queries");
    if (packs_heads(plan)) fields.box_heads_field = find_named(launch.fields, "heads_per_kv");
  }
  fields.has_pages = !is_of_queries && program.batch == BatchLayout::kPages && !makes_keys(program);
  return fields;
}

/// The map of integers, or of e4m3 values, in the workspace; both are padded to whole tiles. Of
/// sequences one map is for the pieces of all.
TensorMapFields map_of_bytes(const Program& program, const LaunchProgram& launch,
                             const BlockMap& map) {
  const bool has_pieces = program.batch != BatchLayout::kUniform;
  const bool columns = map.role == TensorRole::kV;
  const int head_dim = program.head_dim;
  const char* tokens = map.role == TensorRole::kQ ? "q_padded" : "k_padded";
  return {.name = map.name,
          .role = map.role,
          .dtype = program.dtype,
          .format = columns ? MapFormat::kByteColumns : MapFormat::kByteRows,
          .panel_elements = columns ? kColumnPanelTokens : head_dim,
          .panels = columns ? 0 : 1,
          .box_rows = columns ? head_dim : box_rows(attend_of(program), map.role),
          .data = find_named(launch.fields, std::string(map.name) + "_values"),
          .tokens = find_named(launch.fields, tokens),
          .entries = has_pieces ? find_named(launch.fields, "n_b") : -1,
          .entry_bytes = has_pieces ? find_named(launch.fields, "workspace_bytes") : -1};
}

bool has_bytes(const Attend& attend, TensorRole role) {
  if (role == TensorRole::kO) return false;
  return role == TensorRole::kV ? attend.v_scale >= 0 : attend.q_scale >= 0;
}

}  // namespace

int find_value(const LaunchProgram& launch, std::string_view name) {
  return find_named(launch.values, name);
}

int find_slot(const LaunchProgram& launch, std::string_view name) {
  return find_named(launch.slots, name);
}

std::vector<ArgField> bind_arguments(const Plan& plan, const LoweredPlan& lowered,
                                     const LaunchProgram& launch) {
  std::vector<ArgField> fields;
  const auto add = [&](std::vector<ArgField> members, bool only_operands = false) {
    for (ArgField& field : members) {
      const bool is_read =
          !only_operands || !is_of_tensor(field.source) || is_operand(lowered, field.name);
      if (is_read && bind(plan.program, lowered, launch, field)) fields.push_back(std::move(field));
    }
  };
  const BlockParts parts = lowered.parts;
  if (parts.wgmma) add(lay_out(schedule_members(), schedule_offset()));
  add(lay_out(attend_members(), attend_offset(parts)));
  if (parts.split) add(lay_out(split_members(), split_offset(parts)));
  if (parts.sequences) add(lay_out(sequence_members(), sequence_offset(parts)));
  if (parts.sequences && parts.wgmma)
    add(lay_out(batch_schedule_members(), batch_schedule_offset(parts)));
  if (parts.predict) add(lay_out(predict_members(), predict_offset(parts)), true);
  if (parts.kv_scales) add(lay_out(kv_scale_members(), kv_scale_offset(parts)));
  if (parts.branch) add(lay_out(branch_members(), branch_offset(parts)));
  if (parts.pairs) add(lay_out(pair_members(), pair_offset(parts)));
  if (parts.summaries) add(lay_out(summary_members(), summary_offset(parts)));
  std::uint32_t end = params_offset(parts);
  const std::vector<ParamSpec>& params = plan.program.params;
  for (std::size_t p = 0; p < params.size(); ++p) {
    const FieldKind kind = param_kind(params[p].symbol);
    fields.push_back(
        {"param_" + params[p].symbol.name, end, kind, Source::kParam, static_cast<int>(p), 0});
    end += field_bytes(kind);
  }
  return fields;
}

BlockChange bind_packed(const Plan& packed, const LaunchProgram& launch) {
  BlockChange change;
  for (ArgField field : launch.fields) {
    const std::string name = kPackedPrefix + field.name;
    if (field.source == Source::kWorkspace) field.index = find_slot(launch, name);
    if (field.source == Source::kValue) field.index = find_value(launch, name);
    const bool is_own = field.source == Source::kWorkspace || field.source == Source::kValue;
    if (is_own && field.index >= 0) change.fields.push_back(std::move(field));
  }
  change.maps = bind_maps(packed, launch);
  return change;
}

std::vector<TensorMapFields> bind_maps(const Plan& plan, const LaunchProgram& launch) {
  std::vector<TensorMapFields> maps;
  if (plan.attend.family.value != AttendFamily::kWgmma) return maps;
  const bool has_sequences = plan.program.batch != BatchLayout::kUniform;
  std::uint32_t offset = 0;
  for (const BlockMap& map : attend_maps()) {
    maps.push_back(has_bytes(attend_of(plan.program), map.role)
                       ? map_of_bytes(plan.program, launch, map)
                   : has_sequences ? map_of_sequences(plan, launch, map)
                                   : map_of_tensor(plan.program, launch, map));
    maps.back().offset = offset;
    offset += kTensorMapBytes;
  }
  return maps;
}

}  // namespace lacuna

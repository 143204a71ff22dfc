// The text of a LaunchProgram.
#include <charconv>

#include "compiler/emit/launch_program.hpp"
#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

constexpr const char* kRoleNames[kTensorRoleCount] = {"q",
                                                      "k",
                                                      "v",
                                                      "o",
                                                      "lse",
                                                      "counts",
                                                      "tile_mask",
                                                      "list_indices",
                                                      "list_counts",
                                                      "previous_lse",
                                                      "order",
                                                      "q_begin",
                                                      "lengths",
                                                      "k_begin",
                                                      "pages",
                                                      "k_scale",
                                                      "v_scale",
                                                      "k_summaries",
                                                      "summary_slots",
                                                      "summarised"};

std::string_view name_of(FieldKind kind) {
  switch (kind) {
    case FieldKind::kPointer:
      return "pointer";
    case FieldKind::kI64:
      return "i64";
    case FieldKind::kI32:
      return "i32";
    case FieldKind::kF32:
      return "f32";
    case FieldKind::kParam:
      return "param";
    case FieldKind::kWideParam:
      return "param4";
  }
  return "";
}

std::string number_text(double number) {
  char buffer[32];
  const float constant = static_cast<float>(number);
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, constant).ptr};
}

const std::string& value_name(const LaunchProgram& program, int value) {
  return program.values[static_cast<std::size_t>(value)].name;
}

std::string source_text(const LaunchProgram& program, const ArgField& field) {
  const std::string index = std::to_string(field.index % 4);
  switch (field.source) {
    case FieldSource::kTensorData:
      return std::string(kRoleNames[field.index]) + ".data";
    case FieldSource::kTensorStride:
      return std::string(kRoleNames[field.index / 4]) + ".stride[" + index + "]";
    case FieldSource::kTensorExtent:
      return std::string(kRoleNames[field.index / 4]) + ".extent[" + index + "]";
    case FieldSource::kValue:
      return value_name(program, field.index);
    case FieldSource::kScaledValue:
      return value_name(program, field.index) + " * " + number_text(field.constant);
    case FieldSource::kConstant:
      return number_text(field.constant);
    case FieldSource::kKeptStride:
      return "bytes of a sequence's piece, or of its part of a selection";
    case FieldSource::kSoftmaxScale:
      return "softmax_scale, or " + number_text(field.constant);
    case FieldSource::kParam:
      return "parameter " + std::to_string(field.index);
    case FieldSource::kWorkspace:
      return "workspace " + program.slots[static_cast<std::size_t>(field.index)].name;
  }
  return "";
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string print_workspace(const LaunchProgram& program) {
  const char* const of_each = program.each_sequence ? " bytes for each sequence\n" : " bytes\n";
  std::string text;
  const auto add = [&](const char* what, int value, const char* unit) {
    if (value >= 0) text += what + (" 256 * " + value_name(program, value)) + unit;
  };
  add("shared", program.shared_value, of_each);
  add("batch", program.batch_value, " bytes\n");
  add("workspace", program.workspace_value, of_each);
  for (std::size_t i = 0; i < program.slots.size(); ++i) {
    const WorkspaceSlot& slot = program.slots[i];
    text += "  slot " + padded(slot.name + " ", 18) + "at " +
            padded(value_name(program, slot.offset), 24) + "size " + value_name(program, slot.size);
    if (static_cast<int>(i) == program.kept_slot) {
      text += ", or a selection";
      if (program.reuse > 1) text += ", for " + std::to_string(program.reuse) + " launches";
    }
    text += slot.cleared ? ", zeros\n" : "\n";
  }
  return text;
}

std::string print_map(const LaunchProgram& program, const TensorMapFields& map) {
  const auto field = [&](int index) {
    return source_text(program, program.fields[static_cast<std::size_t>(index)]);
  };
  const std::string panel = std::to_string(map.panel_elements);
  std::string begin = "  " + padded(std::to_string(map.offset), 4) + padded("map", 8) +
                      padded("maps." + map.name + " ", 16) + "= ";
  const std::string end = ", heads, batch] by boxes of " + panel + " x " +
                          std::to_string(map.box_rows) + ", from " + field(map.data);
  switch (map.format) {
    case MapFormat::kRows:
    case MapFormat::kCodeRows:
      return begin + (map.format == MapFormat::kRows ? std::string(name_of(map.dtype)) : "e4m3") +
             " [" + (map.row_elements > 0 ? std::to_string(map.row_elements) : panel) + ", " +
             kRoleNames[static_cast<int>(map.role)] + " tokens, " + std::to_string(map.panels) +
             end + " with strides " + field(map.stride_n) + ", " + field(map.stride_h) + ", " +
             field(map.stride_b) + "\n";
    case MapFormat::kByteRows:
      return begin + "int8 [" + panel + ", " + field(map.tokens) + " tokens, 1" + end + "\n";
    case MapFormat::kByteColumns:
      return begin + "e4m3 [" + panel + ", " + std::to_string(map.box_rows) + " channels, " +
             field(map.tokens) + " / " + panel + end + "\n";
  }
  return begin;
}

std::string print_block(const LaunchProgram& program, const std::vector<ArgField>& fields,
                        const std::vector<TensorMapFields>& maps) {
  std::string text;
  for (const TensorMapFields& map : maps) text += print_map(program, map);
  for (const ArgField& field : fields) {
    text += "  " + padded(std::to_string(field.offset), 4) +
            padded(std::string(name_of(field.kind)), 8) + padded(field.name + " ", 16) + "= " +
            source_text(program, field) + "\n";
  }
  return text;
}

}  // namespace

std::string print_launch_program(const LaunchProgram& program) {
  std::string text;
  for (const LaunchValue& value : program.values) {
    text += "value " + value.name + " = " +
            (value.expr.empty()
                 ? value_name(program, value.first) + " + " + value_name(program, value.second)
                 : print_expr(value.expr)) +
            "\n";
  }
  text += print_workspace(program);
  for (const TensorRole role : program.cleared)
    text += "zeros " + std::string(kRoleNames[static_cast<int>(role)]) + "\n";
  for (const KernelLaunch& launch : program.launches) {
    text += "launch " + launch.entry + " grid=" + value_name(program, launch.grid_x) +
            (launch.kept_grid_x != launch.grid_x
                 ? " kept_grid=" + value_name(program, launch.kept_grid_x)
                 : "") +
            (launch.each_sequence ? " for each sequence" : "") +
            " threads=" + std::to_string(launch.threads) +
            " smem_bytes=" + std::to_string(launch.smem_bytes) +
            (launch.decides ? " decides" : "") + (launch.overlaps ? " overlaps" : "") +
            (launch.is_packed ? " packed" : "") + "\n";
  }
  if (program.launches.empty()) return text;
  text += "arguments " + std::to_string(program.args_bytes) + " bytes\n";
  text += print_block(program, program.fields, program.maps);
  if (!program.packed.fields.empty())
    text +=
        "arguments of packed\n" + print_block(program, program.packed.fields, program.packed.maps);
  return text;
}

}  // namespace lacuna

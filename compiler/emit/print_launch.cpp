// The text of a LaunchProgram.
#include <charconv>

#include "compiler/emit/launch_program.hpp"
#include "compiler/expr/parse.hpp"

namespace lacuna {
namespace {

constexpr const char* kRoleNames[kTensorRoleCount] = {
    "q", "k", "v", "o", "lse", "counts", "tile_mask", "list_indices", "list_counts"};

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
  }
  return "";
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
      return program.values[static_cast<std::size_t>(field.index)].name;
    case FieldSource::kConstant: {
      char buffer[32];
      const float constant = static_cast<float>(field.constant);
      return {buffer, std::to_chars(buffer, buffer + sizeof buffer, constant).ptr};
    }
    case FieldSource::kParam:
      return "parameter " + std::to_string(field.index);
  }
  return "";
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

std::string print_launch_program(const LaunchProgram& program) {
  std::string text;
  for (const LaunchValue& value : program.values) {
    text += "value " + value.name + " = " + print_expr(value.expr) + "\n";
  }
  if (program.workspace_value >= 0) {
    text += "workspace 256 * " +
            program.values[static_cast<std::size_t>(program.workspace_value)].name + " bytes\n";
  }
  for (const KernelLaunch& launch : program.launches) {
    text += "launch " + launch.entry +
            " grid=" + program.values[static_cast<std::size_t>(launch.grid_x)].name +
            " threads=" + std::to_string(launch.threads) +
            " smem_bytes=" + std::to_string(launch.smem_bytes) +
            " args_bytes=" + std::to_string(launch.args_bytes) + "\n";
    for (const ArgField& field : launch.fields) {
      text += "  " + padded(std::to_string(field.offset), 4) +
              padded(std::string(name_of(field.kind)), 8) + padded(field.name, 16) + "= " +
              source_text(program, field) + "\n";
    }
  }
  return text;
}

}  // namespace lacuna

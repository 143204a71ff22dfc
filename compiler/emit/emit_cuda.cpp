// Plan -> kernel.cu: the only text of ours that NVRTC sees besides templates/. It writes no
// algorithm: the argument block and the printed expressions, which all kernels share, then for each
// kernel a Config of named fields and an entry.
#include <algorithm>

#include "compiler/emit/block_layout.hpp"
#include "compiler/emit/cuda/cuda_writer.hpp"
#include "compiler/emit/cuda/hooks.hpp"
#include "compiler/emit/emit.hpp"
#include "compiler/emit/kernel_names.hpp"
#include "compiler/ir/coded_rows.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/lower.hpp"

namespace lacuna {
namespace {

void write_fields(CudaWriter& out, const std::vector<ConfigField>& fields) {
  for (const ConfigField& field : fields) {
    out.line("  " + declaration(field) + ";", out.place_of(field.pointer, name_of(field.origin)));
  }
}

/// What the kernels of a spec have in common.
std::vector<ConfigField> common_fields(const Program& program) {
  const std::string element = program.dtype == DType::kF16 ? "f16" : "bf16";
  std::vector<ConfigField> fields = {
      {"using", "Element", "lacuna::" + element, "/attention/dtype", Origin::kCaller},
      {"int", "kHeadDim", std::to_string(program.head_dim), "/attention/head_dim",
       Origin::kCaller}};
  if (value_dim(program) != program.head_dim) {
    fields.push_back({"int", "kHeadDimV", std::to_string(value_dim(program)),
                      "/attention/head_dim_v", Origin::kCaller});
  }
  add_batch_fields(program, fields);
  return fields;
}

/// Attend is configured by itself; the kernels around it share a base.
void write_common_config(CudaWriter& out, const Program& program) {
  out.line("");
  out.line("struct CommonConfig {");
  std::vector<ConfigField> fields = common_fields(program);
  if (prepares_codes(program)) add_code_field(fields);
  write_fields(out, fields);
  out.generated_line("};");
}

void write_config(CudaWriter& out, const Kernel& kernel, const Program& program) {
  const bool is_attend = kernel.name == kAttendName;
  out.line("struct " + config_name(kernel) + (is_attend ? " {" : " : CommonConfig {"));
  // The types of its parts are told so.
  if (kernel.attends && !is_attend)
    out.generated_line("  using Config = " + config_name(kernel) + ";");
  if (is_attend) write_fields(out, common_fields(program));
  write_fields(out, kernel.config);
  if (!is_attend) {
    out.generated_line("  static constexpr int kThreads = " + std::to_string(kernel.threads.value) +
                       ";");
  }
  out.generated_line(
      "  static constexpr int kSmemBytes = " + std::to_string(kernel.smem_bytes.value) + ";");
  out.generated_line("};");
}

/// The asserts hold the device's layout against the host's table; __INTADDR__ is the offsetof of
/// NVRTC's front end, which has no other.
void assert_offsets(CudaWriter& out, const char* type, std::span<const BlockMember> members,
                    std::initializer_list<const char*> guarded) {
  for (const char* name : guarded) {
    out.line("static_assert(__INTADDR__(&((lacuna::" + std::string(type) + "*)0)->" + name +
             ") == " + std::to_string(offset_in(members, name)) + ");");
  }
}

void assert_map_offsets(CudaWriter& out, BlockParts parts) {
  std::uint32_t offset = 0;
  for (const BlockMap& map : attend_maps()) {
    out.line("static_assert(__INTADDR__(&((Args*)0)->maps." + std::string(map.name) +
             ") == " + std::to_string(offset) + ");");
    offset += kTensorMapBytes;
  }
  out.line("static_assert(__INTADDR__(&((Args*)0)->schedule) == " +
           std::to_string(schedule_offset()) + ");");
  out.line("static_assert(__INTADDR__(&((Args*)0)->attend) == " +
           std::to_string(attend_offset(parts)) + ");");
  assert_offsets(out, "AttendSchedule", schedule_members(), {"head_group"});
}

/// The argument block that all kernels take. In a batch of sequences they copy it, with the lengths
/// of a sequence.
void write_args(CudaWriter& out, const Program& program, BlockParts parts) {
  out.line("");
  out.line("struct Args {");
  if (parts.wgmma) {
    out.line("  lacuna::AttendMaps maps;");
    out.line("  lacuna::AttendSchedule schedule;");
  }
  out.line("  lacuna::AttendArgs attend;");
  if (parts.split) out.line("  lacuna::SplitArgs split;");
  if (parts.sequences) out.line("  lacuna::SequenceArgs sequences;");
  if (parts.sequences && parts.wgmma) out.line("  lacuna::SequenceSchedule batch_schedule;");
  if (parts.predict) out.line("  lacuna::PredictArgs predict;");
  if (parts.kv_scales) out.line("  lacuna::KvScaleArgs kv_scales;");
  if (parts.branch) out.line("  lacuna::BranchArgs branch;");
  if (parts.pairs) out.line("  lacuna::PairArgs pairs;");
  if (parts.summaries) out.line("  lacuna::SummaryArgs summaries;");
  for (const ParamSpec& param : program.params) {
    const bool is_wide = param_kind(param.symbol) == FieldKind::kWideParam;
    out.line(std::string(parts.sequences ? "  lacuna::CopiedParam<" : "  lacuna::Param<") +
             std::string(param.symbol.type == ExprType::kI32 ? "int" : "float") +
             (is_wide ? ", 4" : "") + "> param_" + param.symbol.name + ";");
  }
  out.line("};");
  out.line("static_assert(sizeof(Args) == " + std::to_string(args_bytes(program, parts)) + ");");
  if (parts.wgmma) assert_map_offsets(out, parts);
  assert_offsets(out, "AttendArgs", attend_members(),
                 {"lse.data", "counts", "row_order", "n_b", "scale"});
  if (parts.split) assert_offsets(out, "SplitArgs", split_members(), {"partial_lse"});
  if (parts.sequences)
    assert_offsets(out, "SequenceArgs", sequence_members(), {"page_tokens", "most_k_tiles"});
  if (parts.sequences && parts.wgmma)
    assert_offsets(out, "SequenceSchedule", batch_schedule_members(), {"arrivals", "sm_count"});
  if (parts.kv_scales) assert_offsets(out, "KvScaleArgs", kv_scale_members(), {"values_stride_h"});
  if (parts.branch) assert_offsets(out, "BranchArgs", branch_members(), {"sum_lse"});
  if (parts.summaries) assert_offsets(out, "SummaryArgs", summary_members(), {"summary_tiles"});
  if (!parts.predict) return;
  assert_offsets(
      out, "PredictArgs", predict_members(),
      {"order", "previous_lse.data", "partial", "q_summary", "q_values", "estimate_q_values",
       "v_values", "scores", "kept", "q_padded", "estimate_k_groups"});
}

/// A kernel's place among those of its launch: which of them it may overlap with.
struct Neighbours {
  bool before = false, after = false;
};

void write_entry(CudaWriter& out, const Kernel& kernel, const Program& program, bool each_sequence,
                 Neighbours overlaps) {
  out.line("extern \"C\" __global__ void __launch_bounds__(" +
           std::to_string(kernel.threads.value) + ", " +
           std::to_string(kernel.resident_blocks.value) + ")");
  out.line(entry_name(kernel, program) + "(const __grid_constant__ Args args) {");
  if (overlaps.before) out.line("  lacuna::await_kernel_before();");
  if (overlaps.after) out.line("  lacuna::admit_kernel_after();");
  const std::string call = "lacuna::" + std::string(kernel.function) + "<" + config_name(kernel) +
                           ", " + kernel.hooks + ">";
  if (each_sequence) {
    out.line("  const Args own = lacuna::args_of_sequence<" + config_name(kernel) + ">(args);");
    out.line(std::string("  if (own.attend.n_q > 0") +
             (kernel.needs_keys ? " && own.attend.n_k > 0" : "") + ") " + call + "(own);");
  } else {
    out.line("  " + call + "(args);");
  }
  out.line("}");
}

void write_include(CudaWriter& out, const std::string& header) {
  out.line("#include \"" + header + "\"");
}

/// What Args and Hooks are made of.
void write_shared_includes(CudaWriter& out, BlockParts parts) {
  write_include(out, "args/expr.cuh");
  // For CommonConfig: predict_args.cuh has it, too.
  if (parts.split || parts.pairs || (parts.sequences && parts.wgmma))
    write_include(out, "base/types.cuh");
  write_include(out, "args/attend_args.cuh");
  if (parts.wgmma) write_include(out, "args/attend_maps.cuh");
  if (parts.split) write_include(out, "args/split_args.cuh");
  if (parts.sequences) write_include(out, "base/kinds.cuh");
  if (parts.sequences) write_include(out, "args/sequence_args.cuh");
  if (parts.predict) write_include(out, "args/predict_args.cuh");
  if (parts.kv_scales) write_include(out, "args/kv_scale_args.cuh");
  if (parts.branch) write_include(out, "args/branch_args.cuh");
  if (parts.pairs) write_include(out, "args/pair_args.cuh");
  if (parts.summaries) write_include(out, "args/summary_args.cuh");
  if (parts.wgmma) write_include(out, "pipeline/work_tile_schedule.cuh");
}

std::string kernel_text(const Kernel& kernel, bool each_sequence, Neighbours overlaps,
                        const Plan& plan, const SpecDocument& document) {
  CudaWriter out(document);
  out.line("");
  write_include(out, kernel.header);
  if (each_sequence) write_include(out, "pipeline/sequences.cuh");
  write_config(out, kernel, plan.program);
  write_entry(out, kernel, plan.program, each_sequence, overlaps);
  return out.take();
}

std::string head_text(const LoweredPlan& lowered, const Plan& plan, const SpecDocument& document) {
  const Program& program = plan.program;
  const bool has_other_kernels = lowered.kernels.size() > 1;
  CudaWriter out(document);
  out.line("// " + program.name + ", head_dim " + std::to_string(program.head_dim) + ", " +
           std::string(name_of(program.dtype)) + ", " + plan.target.name +
           ". Generated by lacuna " LACUNA_VERSION "; edit the spec, not this file.");
  write_shared_includes(out, lowered.parts);
  if (has_other_kernels && plan.target.overlaps_kernels) write_include(out, "arch/launch.cuh");
  if (has_other_kernels) write_common_config(out, program);
  write_args(out, program, lowered.parts);
  out.knows_one_sequence = std::ranges::any_of(
      lowered.kernels, [&](const Kernel& kernel) { return runs_each_sequence(lowered, kernel); });
  write_hooks(out, plan);
  return out.take();
}

}  // namespace

CudaSource emit_cuda(const Plan& plan, const SpecDocument& document) {
  const LoweredPlan lowered = lower_plan(plan);
  CudaSource source;
  source.head = head_text(lowered, plan, document);
  const bool overlaps = plan.target.overlaps_kernels;
  for (const Kernel& kernel : lowered.kernels) {
    const Neighbours neighbours{overlaps && &kernel != &lowered.kernels.front(),
                                overlaps && &kernel != &lowered.kernels.back()};
    source.kernels.push_back(
        {kernel.name, entry_name(kernel, plan.program),
         kernel_text(kernel, runs_each_sequence(lowered, kernel), neighbours, plan, document)});
  }
  source.options = {"--gpu-architecture=" + plan.target.name, "-std=c++17", "-default-device"};
  return source;
}

std::string source_text(const CudaSource& source) {
  std::string text = source.head;
  for (const CudaKernel& kernel : source.kernels) text += kernel.text;
  return text;
}

}  // namespace lacuna

// Plan -> kernel.cu: the only text of ours that NVRTC sees besides templates/. It writes no
// algorithm: a Config of named fields, the argument block, the printed expressions, one entry.
#include "compiler/emit/attend_block.hpp"
#include "compiler/emit/emit.hpp"
#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/print_cuda.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {
namespace {

/// Where a generated line comes from: a line of the spec, or a pseudo-file that names the origin.
struct Place {
  std::string file;
  int line = 1;
};

const Place kGenerated{"<generated>", 1};

/// Collects lines; a #line directive stands wherever the place changes. Within a pseudo-file line
/// numbers mean nothing and just count up.
class CudaWriter {
 public:
  explicit CudaWriter(const SpecDocument& document) : document_(document) {}

  /// The place of a field: where the user wrote it, else <origin>.
  Place place_of(const char* pointer, std::string_view origin) const {
    const auto span = document_.spans.find(pointer);
    if (span == document_.spans.end()) return {"<" + std::string(origin) + ">", 1};
    return {document_.source.path, span->second.line};
  }

  void line(const std::string& text) { text_ += text + "\n"; }
  void line(const std::string& text, const Place& place) {
    if (place.file != file_ || place.file == document_.source.path) write_directive(place);
    line(text);
  }
  std::string take() { return std::move(text_); }

 private:
  void write_directive(const Place& place) {
    file_ = place.file;
    text_ += "#line " + std::to_string(place.line) + " \"";
    for (const char c : place.file) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += "\"\n";
  }

  const SpecDocument& document_;
  std::string text_, file_;
};

const char* text_of(bool value) { return value ? "true" : "false"; }

std::string element_type(DType dtype) { return dtype == DType::kF16 ? "f16" : "bf16"; }

std::string gate_scope(const std::optional<Gate>& gate) {
  if (!gate) return "kNone";
  return gate->scope == GateScope::kWarp ? "kWarp" : "kTile";
}

/// One line of Config: its declaration and where its value comes from.
struct ConfigField {
  std::string declaration;
  const char* pointer;      ///< field of the spec
  std::string_view origin;  ///< if the spec does not have it
};

std::vector<ConfigField> config_fields(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  const AttendPlan& chosen = plan.attend;
  const Gate no_gate;
  const Gate& gate = attend.gate ? *attend.gate : no_gate;
  const auto integer = [](const char* name, int value) {
    return std::string("static constexpr int ") + name + " = " + std::to_string(value);
  };
  const auto boolean = [](const char* name, bool value) {
    return std::string("static constexpr bool ") + name + " = " + text_of(value);
  };
  return {
      {"using Element = lacuna::" + element_type(plan.program.dtype), "/attention/dtype", "caller"},
      {integer("kHeadDim", plan.program.head_dim), "/attention/head_dim", "caller"},
      {integer("kTileQ", chosen.tile_q.value), "/tile/q", name_of(chosen.tile_q.origin)},
      {integer("kTileK", chosen.tile_k.value), "/tile/k", name_of(chosen.tile_k.origin)},
      {integer("kStages", chosen.stages.value), "/tile/stages", name_of(chosen.stages.origin)},
      {integer("kWarps", chosen.warps.value), "/tile/warps", name_of(chosen.warps.origin)},
      {boolean("kDescending", attend.order == TileOrder::kDescending), "/tile/order",
       name_of(chosen.order.origin)},
      {boolean("kHasMask", !attend.mask.empty()), "/attention/mask", "default"},
      {boolean("kHasScore", !attend.score.empty()), "/attention/score", "default"},
      {boolean("kUsesLists", attend.list_indices >= 0), "/mask", "default"},
      {"static constexpr lacuna::GateScope kGateScope = lacuna::GateScope::" +
           gate_scope(attend.gate),
       "/gate/scope", "default"},
      {boolean("kSkipsVLoad", gate.skips_v_load), "/gate/skips", "default"},
      {boolean("kSkipsExp", gate.skips_exp), "/gate/skips", "default"},
      {boolean("kSkipsPv", gate.skips_pv), "/gate/skips", "default"},
      {boolean("kWritesLse", attend.lse), "/attention/lse", "default"},
  };
}

void write_config(CudaWriter& out, const Plan& plan) {
  out.line("struct Config {");
  for (const ConfigField& field : config_fields(plan)) {
    const Place place = out.place_of(field.pointer, field.origin);
    out.line("  " + field.declaration + ";", place);
  }
  out.line("};", kGenerated);
  out.line("static_assert(lacuna::attend_mma_smem_bytes<Config>() == " +
           std::to_string(plan.attend.smem_bytes.value) + ");");
}

/// The argument block. The asserts hold the device's layout against the host's table; __INTADDR__
/// is the offsetof of NVRTC's front end, which has no other.
void write_args(CudaWriter& out, const Program& program) {
  out.line("");
  out.line("struct Args {");
  out.line("  lacuna::AttendArgs attend;");
  for (const ParamSpec& param : program.params) {
    out.line("  lacuna::Param<" +
             std::string(param.symbol.type == ExprType::kI32 ? "int" : "float") + "> param_" +
             param.symbol.name + ";");
  }
  out.line("};");
  out.line("static_assert(sizeof(Args) == " + std::to_string(attend_block_bytes(program)) + ");");
  for (const ArgField& field : attend_block(program)) {
    for (const char* guarded : {"lse.data", "counts", "n_b", "scale"}) {
      if (field.name != guarded) continue;
      out.line("static_assert(__INTADDR__(&((lacuna::AttendArgs*)0)->" + field.name +
               ") == " + std::to_string(field.offset) + ");");
    }
  }
}

/// Variables are arguments of the hook, but for the lengths, which every hook finds in `args`.
std::string variable_text(Variable variable) {
  switch (variable) {
    case Variable::kNQ:
      return "args.attend.n_q";
    case Variable::kNK:
      return "args.attend.n_k";
    case Variable::kNI:
      return "args.attend.q_tiles";
    case Variable::kNJ:
      return "args.attend.k_tiles";
    default:
      return std::string(info(variable).name);
  }
}

std::string cuda_text(const Expr& expr, const char* absent) {
  if (expr.empty()) return absent;
  return print_cuda(
      expr, {variable_text, [](const ParamSymbol& symbol) { return "args.param_" + symbol.name; }});
}

std::string gate_text(const std::optional<Gate>& gate) {
  if (!gate) return "false";
  std::string skip = cuda_text(gate->skip, "false");
  if (gate->exempt.empty()) return skip;
  return "(" + skip + ") && !(" + cuda_text(gate->exempt, "false") + ")";
}

void write_hooks(CudaWriter& out, const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  const auto hook = [&](const std::string& signature, const char* pointer,
                        const std::string& value) {
    out.line("  static __device__ __forceinline__ " + signature + " {");
    out.line("    return " + value + ";", out.place_of(pointer, "default"));
    out.line("  }");
  };
  const std::string bounds = "(const Args& args, int q0, int q1, int k0, int k1, int h, int b)";
  out.line("");
  out.line("struct Hooks {");
  hook("bool mask(const Args& args, int q, int k, int h, int b)", "/attention/mask",
       cuda_text(attend.mask, "true"));
  hook("bool tile_full" + bounds, "/attention/mask", cuda_text(attend.classifier.must, "true"));
  hook("bool tile_visible" + bounds, "/attention/mask", cuda_text(attend.classifier.may, "true"));
  hook("float score(const Args& args, float s, int q, int k, int h, int b)", "/attention/score",
       cuda_text(attend.score, "s"));
  hook(
      "bool gate_skip(const Args& args, float tile_max, float gap, int i, int j, int q0, int q1, "
      "int k0, int k1, int h, int b)",
      "/gate/skip", gate_text(attend.gate));
  out.line("};", kGenerated);
}

void write_entry(CudaWriter& out, const Plan& plan) {
  out.line("");
  out.line("extern \"C\" __global__ void __launch_bounds__(" +
           std::to_string(plan.attend.warps.value * kWarpThreads) + ", 1)");
  out.line(entry_name(plan.program) + "(const __grid_constant__ Args args) {");
  out.line("  lacuna::attend_mma<Config, Hooks>(args);");
  out.line("}");
}

}  // namespace

CudaSource emit_cuda(const Plan& plan, const SpecDocument& document) {
  const Program& program = plan.program;
  CudaWriter out(document);
  out.line("// " + program.name + ", head_dim " + std::to_string(program.head_dim) + ", " +
           std::string(name_of(program.dtype)) + ", " + plan.target.name +
           ". Generated by lacuna " LACUNA_VERSION "; edit the spec, not this file.");
  out.line("#include \"base/expr.cuh\"");
  out.line("#include \"kernel/attend_mma.cuh\"");
  out.line("");
  write_config(out, plan);
  write_args(out, program);
  write_hooks(out, plan);
  write_entry(out, plan);
  return {out.take(),
          {"--gpu-architecture=" + plan.target.name, "-std=c++17", "-default-device"},
          {entry_name(program)}};
}

}  // namespace lacuna

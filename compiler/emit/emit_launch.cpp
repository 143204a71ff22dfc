// Plan -> LaunchProgram: what the host computes and writes before it launches the kernel.
#include "compiler/emit/attend_block.hpp"
#include "compiler/emit/emit.hpp"
#include "compiler/expr/evaluate.hpp"
#include "compiler/expr/parse.hpp"

namespace lacuna {
namespace {

LaunchValue launch_value(std::string name, const std::string& text) {
  return {std::move(name), parse_expr(text, Site::kLaunch, {}).expr};
}

std::string tiles_of(const char* length, int tile) {
  return "(" + std::string(length) + " + " + std::to_string(tile - 1) + ") // " +
         std::to_string(tile);
}

}  // namespace

std::string entry_name(const Program& program) {
  std::string name = "lacuna_attend_" + program.name;
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

LaunchProgram emit_launch_program(const Plan& plan) {
  const AttendPlan& attend = plan.attend;
  const std::string q_tiles = tiles_of("n_q", attend.tile_q.value);
  LaunchProgram program;
  program.values = {
      // in the order of AttendValue
      launch_value("q_tiles", q_tiles),
      launch_value("k_tiles", tiles_of("n_k", attend.tile_k.value)),
      launch_value("heads_per_kv", "n_h // n_h_kv"),
      launch_value("grid", "n_b * n_h * (" + q_tiles + ")"),
  };
  program.launches.push_back({entry_name(plan.program), static_cast<int>(AttendValue::kGrid),
                              attend.warps.value * 32, attend.smem_bytes.value,
                              attend_block_bytes(plan.program), attend_block(plan.program)});
  return program;
}

void evaluate_launch_values(const LaunchProgram& program, const LaunchShape& shape,
                            std::int32_t* values) {
  Bindings bindings;
  bindings.set(Variable::kNB, shape.n_b);
  bindings.set(Variable::kNH, shape.n_h);
  bindings.set(Variable::kNHKv, shape.n_h_kv);
  bindings.set(Variable::kNQ, shape.n_q);
  bindings.set(Variable::kNK, shape.n_k);
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    values[i] = evaluate(program.values[i].expr, bindings).i32;
  }
}

}  // namespace lacuna

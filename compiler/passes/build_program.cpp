// Spec -> Program: one input for each tensor, one attend.
#include <algorithm>
#include <cmath>

#include "compiler/ir/names.hpp"
#include "compiler/passes/pass.hpp"

namespace lacuna {
namespace {

int add_value(Program& program, std::string name, ValueType type) {
  program.values.push_back({std::move(name), std::move(type)});
  return static_cast<int>(program.values.size()) - 1;
}

int add_input(Program& program, const std::string& name, ValueType type) {
  const int id = add_value(program, name, std::move(type));
  program.nodes.push_back({{id}, Input{name}});
  return id;
}

template <class T, class ToText>
std::string list_of(const std::vector<T>& values, ToText to_text) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + std::string(to_text(value));
  return text;
}

/// The caller's value must be one that the spec admits.
template <class T, class ToText>
void check_admitted(const SpecDocument& document, std::string_view pointer, const char* field,
                    const Choice<T>& admitted, T value, ToText to_text, Diagnostics& diagnostics) {
  if (admitted.is_auto() || std::ranges::count(admitted.values, value) > 0) return;
  const std::string legal = list_of(admitted.values, to_text);
  Diagnostic& d =
      diagnostics.add(at_field(document, pointer, Code::kUnsupported, Severity::kError,
                               std::string(field) + ": the spec admits " + legal +
                                   ", the caller asks for " + std::string(to_text(value))));
  d.helps.push_back("compile for " + legal + ", or extend the spec's list");
}

Gate build_gate(const GateSpec& gate) {
  return {gate.scope, gate.skip, gate.exempt, gate.skips_v_load, gate.skips_exp, gate.skips_pv};
}

}  // namespace

Program build_program(const SpecDocument& document, const BuildOptions& options,
                      Diagnostics& diagnostics) {
  using enum Dim;
  const Spec& spec = document.spec;
  check_admitted(
      document, "/attention/head_dim", "head_dim", spec.attention.head_dim, options.head_dim,
      [](int d) { return std::to_string(d); }, diagnostics);
  check_admitted(
      document, "/attention/dtype", "dtype", spec.attention.dtype, options.dtype,
      [](DType t) { return name_of(t); }, diagnostics);

  Program program{spec.name, options.head_dim, options.dtype, spec.params, {}, {}};
  const Element element = element_of(options.dtype);
  const ValueType queries{element, {kBatch, kHeads, kNQ, kHeadDim}};
  const ValueType keys{element, {kBatch, kHeadsKv, kNK, kHeadDim}};
  Attend attend;
  attend.q = add_input(program, "q", queries);
  attend.k = add_input(program, "k", keys);
  attend.v = add_input(program, "v", keys);
  if (spec.external_mask) {
    attend.list_indices =
        add_input(program, "list_indices", {Element::kI32, {kBatch, kHeads, kQTiles, kCapacity}});
    attend.list_counts =
        add_input(program, "list_counts", {Element::kI32, {kBatch, kHeads, kQTiles}});
  }
  attend.mask = spec.attention.mask;
  attend.score = spec.attention.score;
  if (spec.gate) attend.gate = build_gate(*spec.gate);
  attend.scale =
      spec.attention.scale.value_or(1.0f / std::sqrt(static_cast<float>(options.head_dim)));
  attend.lse = spec.attention.lse;

  Node node{{add_value(program, "o", queries)}, {}};
  if (attend.lse) {
    node.results.push_back(add_value(program, "lse", {Element::kF32, {kBatch, kHeads, kNQ}}));
  }
  node.op = std::move(attend);
  program.nodes.push_back(std::move(node));
  return program;
}

}  // namespace lacuna

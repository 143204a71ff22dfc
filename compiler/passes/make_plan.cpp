// Spec -> Plan: build, run the pipeline, note where the remaining values came from.
#include "compiler/passes/pass.hpp"

namespace lacuna {
namespace {

/// A value that the program took over from the spec, or whose default the program has.
template <class T>
Chosen<T> taken(const SpecDocument& document, const char* pointer, T value, std::string reason) {
  if (document.spans.contains(pointer)) return {value, Origin::kSpec, ""};
  return {value, Origin::kDefault, std::move(reason)};
}

}  // namespace

Plan make_plan(const SpecDocument& document, const BuildOptions& options, const Target& target,
               Diagnostics& diagnostics, const PassObserver& observer) {
  Plan plan{target, {}, {}};
  Diagnostics found;
  plan.program = build_program(document, options, found);
  if (!found.has_errors()) {
    const PassContext context{plan.target, document, plan.attend, found};
    plan.program = run_passes(std::move(plan.program), pipeline(), context, observer);
    const Attend& attend = attend_of(plan.program);
    plan.attend.scale = document.spec.attention.scale
                            ? Chosen<float>{attend.scale, Origin::kSpec, ""}
                            : Chosen<float>{attend.scale, Origin::kDefault, "1 / sqrt(head_dim)"};
    plan.attend.lse = taken(document, "/attention/lse", attend.lse, "");
    if (attend.gate) {
      plan.attend.gate_scope = taken(document, "/gate/scope", attend.gate->scope, "");
    }
  }
  for (Diagnostic& d : found.items) diagnostics.add(std::move(d));
  return plan;
}

}  // namespace lacuna

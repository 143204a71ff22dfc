// Spec -> Plan: build, run the pipeline, note where the remaining values came from.
#include "compiler/ir/head_dims.hpp"
#include "compiler/passes/check_head_dim.hpp"
#include "compiler/passes/pass.hpp"
#include "compiler/passes/target/pack_few_queries.hpp"

namespace lacuna {
namespace {

/// A value that the program took over from the spec, or whose default the program has.
template <class T>
Chosen<T> taken(const SpecDocument& document, const char* pointer, T value, std::string reason) {
  if (document.spans.contains(pointer)) return {value, Origin::kSpec, ""};
  return {value, Origin::kDefault, std::move(reason)};
}

void note_attention(const SpecDocument& document, const Attend& attend, AttendPlan& plan) {
  plan.scale = document.spec.attention.scale
                   ? Chosen<float>{attend.scale, Origin::kSpec, ""}
                   : Chosen<float>{attend.scale, Origin::kDefault, "1 / sqrt(head_dim)"};
  plan.lse = taken(document, "/attention/lse", attend.lse,
                   attend.lse ? "a launch may ask for the log-sum-exp of each row"
                   : has_denominator(attend.normalise)
                       ? "branches are added without the log-sum-exp of their rows"
                       : "only a softmax has one");
  if (!attend.gate) return;
  plan.gate_scope = taken(document, "/gate/scope", attend.gate->scope, "");
  if (attend.gate->scope == GateScope::kWarpgroup) {
    plan.gate_scope = {GateScope::kWarpgroup, Origin::kDerived,
                       "the spec says warp, but wgmma multiplies 64 rows at once"};
  }
}

void note_quantisation(const SpecDocument& document, const Attend& attend, AttendPlan& plan) {
  plan.qk_bits = taken(document, "/quantise/qk/bits", attend.q_scale >= 0 ? 8 : 16, "");
  plan.qk_group = taken(document, "/quantise/qk/group", attend.qk_group, "");
  // Derived: the target took another precision than the spec's.
  if (plan.v_bits.origin != Origin::kDerived)
    plan.v_bits = taken(document, "/quantise/v/bits", attend.v_scale >= 0 ? 8 : 16, "");
}

void note_predictor(const SpecDocument& document, const Program& program, AttendPlan& plan) {
  const auto [select, estimate] = last_step(program);
  if (select == nullptr) return;
  plan.keep_q = taken(document, "/predictor/tile/q", select->tile_q, "");
  plan.keep_k = taken(document, "/predictor/tile/k", select->tile_k, "");
  plan.reuse = taken(document, "/predictor/reuse", document.spec.predictor->reuse,
                     "each launch decides anew");
  if (plan.reuse.reason.empty()) plan.reuse.reason = "launches that a decision serves";
  if (estimate == nullptr) return;
  plan.estimate_bits = taken(document, "/predictor/estimate/bits", estimate->bits,
                             estimate->bits == 32 ? "means are f32" : "tokens as they are");
}

}  // namespace

Plan make_plan(const SpecDocument& document, const BuildOptions& options, const Target& target,
               Diagnostics& diagnostics, const PassObserver& observer) {
  Plan plan{target, {}, {}};
  Diagnostics found;
  plan.program = build_program(document, options, found);
  // Checked here, because the message of the verifier would not help.
  if (!is_head_dim(options.head_dim))
    check_head_dim(document, "head_dim", options.head_dim, target, found);
  if (const int width = value_dim(plan.program); width != options.head_dim && !is_head_dim(width))
    check_head_dim(document, "head_dim_v", width, target, found);
  if (!found.has_errors()) {
    const TunedTiles* tuned = options.tuned ? &*options.tuned : nullptr;
    const PassContext context{plan.target,
                              document,
                              plan.attend,
                              found,
                              tuned,
                              options.family,
                              reliefs()[static_cast<std::size_t>(options.relief)]};
    plan.program = run_passes(std::move(plan.program), pipeline(), context, observer);
    if (!found.has_errors()) {
      const Attend& attend = attend_of(plan.program);
      note_attention(document, attend, plan.attend);
      note_quantisation(document, attend, plan.attend);
      note_predictor(document, plan.program, plan.attend);
      plan.packed = pack_few_queries(plan, context);
    }
  }
  for (Diagnostic& d : found.items) diagnostics.add(std::move(d));
  return plan;
}

}  // namespace lacuna

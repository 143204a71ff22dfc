#include "compiler/target/plan_values.hpp"

#include <algorithm>
#include <charconv>

#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/names.hpp"
#include "compiler/target/choose_variant.hpp"
#include "compiler/target/score_loop.hpp"

namespace lacuna {
namespace {

std::string value_text(int value) { return std::to_string(value); }
std::string value_text(float value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}
std::string value_text(bool value) { return value ? "true" : "false"; }
template <class Enum>
std::string value_text(Enum value) {
  return std::string(name_of(value));
}

/// What a row shows of a plan, but for its name.
using Show = PlanValue (*)(const Plan&);
using Shown = bool (*)(const Plan&);

struct Row {
  const char* name;
  Show value;
  Shown is_shown;
  bool is_choice = false;  ///< a member of AttendPlan
};

// ---- which rows a plan has

bool always(const Plan&) { return true; }
bool has_mask(const Plan& plan) { return !attend_of(plan.program).mask.empty(); }
bool has_open_tiles(const Plan& plan) { return !plan.attend.pairs.reason.empty(); }
bool has_sink(const Plan& plan) { return !attend_of(plan.program).sink.empty(); }
bool has_plain_sum(const Plan& plan) { return !has_denominator(attend_of(plan.program).normalise); }
bool has_lse_base(const Plan& plan) { return attend_of(plan.program).lse_base != LseBase::kE; }
bool has_gate(const Plan& plan) { return attend_of(plan.program).gate.has_value(); }
const Select* select_of(const Plan& plan) { return last_step(plan.program).select; }
const Estimate* estimate_of(const Plan& plan) { return last_step(plan.program).estimate; }
/// The step before the last one.
PredictStep first_step(const Plan& plan) { return predict_steps(plan.program).front(); }
bool has_steps(const Plan& plan) { return predict_steps(plan.program).size() > 1; }
bool has_first_estimate(const Plan& plan) {
  return has_steps(plan) && first_step(plan).estimate != nullptr;
}
bool has_select(const Plan& plan) { return select_of(plan) != nullptr; }
bool has_estimate(const Plan& plan) { return estimate_of(plan) != nullptr; }
bool has_comparison(const Plan& plan) {
  return has_estimate(plan) && !estimate_of(plan)->is_given();
}
/// Could the estimate be computed in more than one way?
bool has_families(const Plan& plan, const Estimate& estimate) {
  return plan.target.has_wgmma &&
         (estimate.rows.kind == SummaryKind::kTokens || has_cells(estimate.rows));
}
bool has_estimate_family(const Plan& plan) {
  return has_estimate(plan) && has_families(plan, *estimate_of(plan));
}
bool has_first_estimate_family(const Plan& plan) {
  return has_first_estimate(plan) && has_families(plan, *first_step(plan).estimate);
}
bool has_dims(const Plan& plan) { return has_estimate(plan) && !estimate_of(plan)->dims.empty(); }
bool has_other_product(const Plan& plan) {
  return has_estimate(plan) &&
         plan.attend.estimate_product_bits.value != plan.attend.estimate_bits.value;
}
bool has_integer_estimate(const Plan& plan) {
  return has_estimate(plan) && estimate_of(plan)->bits < 16;
}
bool has_reference_formula(const Plan& plan) {
  return has_estimate(plan) && estimate_of(plan)->normalise == Normalise::kLse;
}
bool quantises_qk(const Plan& plan) { return plan.attend.qk_bits.value != 16; }
/// Also true where the target lacks e4m3, so that the plan shows what replaces it.
bool quantises_v(const Plan& plan) {
  return plan.attend.v_bits.value != 16 || plan.attend.v_bits.origin == Origin::kDerived;
}
bool is_cuda(const Plan& plan) { return plan.target.kind == TargetKind::kCuda; }
bool has_mask_loop(const Plan& plan) { return is_cuda(plan) && has_mask(plan); }
bool has_score_loop(const Plan& plan) {
  return is_cuda(plan) && !attend_of(plan.program).score.empty();
}
/// Where rows are split, or somebody asked whether to.
bool is_split_asked(const Plan& plan) {
  const Chosen<int>& split = plan.attend.split_kv;
  return is_cuda(plan) && (split.value != 1 || split.origin != Origin::kDefault);
}
bool has_families(const Plan& plan) { return plan.target.has_wgmma; }
bool is_wgmma(const Plan& plan) {
  return has_families(plan) && plan.attend.family.value == AttendFamily::kWgmma;
}
bool has_code_places(const Plan& plan) { return plan.attend.code_places.value > 0; }
bool is_mma(const Plan& plan) { return is_cuda(plan) && !is_wgmma(plan); }
/// Keys and values are not what the caller's tensors of 16 bits have.
bool has_other(const Plan& plan, OperandRows rows) {
  return is_mma(plan) ? rows != OperandRows::kTokens
                      : is_wgmma(plan) && rows != OperandRows::kPanelSlot;
}
bool has_other_keys(const Plan& plan) { return has_other(plan, plan.attend.keys.value); }
bool has_other_values(const Plan& plan) { return has_other(plan, plan.attend.values.value); }
/// A GatherProducer goes through its list of keys by itself.
bool has_walk(const Plan& plan) {
  return is_cuda(plan) && plan.attend.producer.value != Producer::kWgmmaGather;
}
bool has_gate_policy(const Plan& plan) { return is_wgmma(plan) && has_gate(plan); }

// ---- what rows show

template <auto kMember>
PlanValue choice_value(const Plan& plan) {
  const auto& chosen = plan.attend.*kMember;
  return {"", value_text(chosen.value), chosen.origin, chosen.reason};
}
template <auto kMember>
constexpr Row choice(const char* name, Shown is_shown) {
  return {name, choice_value<kMember>, is_shown, true};
}

/// An expression of the spec, or what stands for it where there is none.
PlanValue formula(const Expr& expr, std::string absent) {
  if (expr.empty()) return {"", std::move(absent), Origin::kDefault, "", true};
  return {"", "\"" + print_expr(expr) + "\"", Origin::kSpec, "", true};
}
PlanValue derived_formula(const Expr& expr, std::string reason) {
  return {"", "\"" + print_expr(expr) + "\"", Origin::kDerived, std::move(reason), true};
}

std::string skips_text(const Gate& gate) {
  std::string skips;
  for (const auto& [name, set] :
       {std::pair{"v_load", gate.skips_v_load}, std::pair{"exp", gate.skips_exp},
        std::pair{"pv", gate.skips_pv}}) {
    if (set) skips += (skips.empty() ? "" : ", ") + std::string(name);
  }
  return "[" + skips + "]";
}

std::string estimate_text(const Estimate& estimate) {
  if (estimate.is_given())
    return "\"" + print_expr(estimate.from) + "\", " + std::string(name_of(estimate.normalise));
  const std::string index = estimate.is_indexed()
                                ? "index of " + std::to_string(estimate.index_heads) + " x " +
                                      std::to_string(estimate.index_dim) + ", "
                                : "";
  return index + name_of(estimate.rows) + " x " + name_of(estimate.columns) + ", " +
         std::string(name_of(estimate.reduce)) + ", " + std::string(name_of(estimate.normalise));
}

/// The band of q and k that a branch compares.
std::string dims_of(const Plan& plan) { return find_op<Input>(plan.program)->dims; }

PlanValue from_spec(std::string value) { return {"", std::move(value), Origin::kSpec, ""}; }
PlanValue from_caller(std::string value) { return {"", std::move(value), Origin::kCaller, ""}; }

using P = const Plan&;
using A = AttendPlan;
constexpr Row kRows[] = {
    {"head_dim", [](P p) { return from_caller(value_text(p.program.head_dim)); }, always},
    {"dims", [](P p) { return from_spec(dims_of(p)); }, [](P p) { return !dims_of(p).empty(); }},
    {"head_dim_v", [](P p) { return from_caller(value_text(value_dim(p.program))); },
     [](P p) { return value_dim(p.program) != p.program.head_dim; }},
    {"dtype", [](P p) { return from_caller(value_text(p.program.dtype)); }, always},
    {"attention.mask",
     [](P p) { return formula(attend_of(p.program).mask, "everything is visible"); }, always},
    {"attention.tile_full",
     [](P p) {
       return derived_formula(attend_of(p.program).classifier.must,
                              "if true, the mask lets each query of the tile see each key");
     },
     has_mask},
    {"attention.tile_visible",
     [](P p) {
       return derived_formula(attend_of(p.program).classifier.may,
                              "if false, no query of the tile sees a key");
     },
     has_mask},
    choice<&A::pairs>("attention.pairs", has_open_tiles),
    {"attention.score", [](P p) { return formula(attend_of(p.program).score, "s"); }, always},
    {"attention.sink", [](P p) { return formula(attend_of(p.program).sink, "none"); }, has_sink},
    {"attention.normalise",
     [](P p) { return from_spec(value_text(attend_of(p.program).normalise)); }, has_plain_sum},
    {"attention.v",
     [](P p) {
       return has_tiles_of_keys(p.program) && p.attend.family.value == AttendFamily::kMma
                  ? PlanValue{"", "k", Origin::kSpec, "tiles of K serve as those of V"}
                  : PlanValue{"", "k", Origin::kSpec, "read from the same memory once more"};
     },
     [](P p) { return attend_of(p.program).v_of_k && p.target.kind == TargetKind::kCuda; }},
    choice<&A::scale>("attention.scale", always),
    choice<&A::lse>("attention.lse", always),
    {"attention.lse_base", [](P p) { return from_spec(value_text(attend_of(p.program).lse_base)); },
     has_lse_base},
    choice<&A::gate_scope>("gate.scope", has_gate),
    {"gate.skip", [](P p) { return formula(attend_of(p.program).gate->skip, "never"); }, has_gate},
    {"gate.exempt", [](P p) { return formula(attend_of(p.program).gate->exempt, "nothing"); },
     has_gate},
    {"gate.skips", [](P p) { return from_spec(skips_text(*attend_of(p.program).gate)); }, has_gate},
    choice<&A::keep_q>("predictor.tile.q", has_select),
    choice<&A::keep_k>("predictor.tile.k", has_select),
    {"predictor[0].estimate", [](P p) { return from_spec(estimate_text(*first_step(p).estimate)); },
     has_first_estimate},
    choice<&A::estimate_before_family>("predictor[0].estimate.family", has_first_estimate_family),
    {"predictor[0].keep",
     [](P p) { return formula(first_step(p).select->keep, "everything visible"); }, has_steps},
    {"predictor.estimate", [](P p) { return from_spec(estimate_text(*estimate_of(p))); },
     has_estimate},
    choice<&A::estimate_bits>("predictor.estimate.bits", has_comparison),
    choice<&A::estimate_product_bits>("predictor.estimate.product_bits", has_other_product),
    choice<&A::estimate_family>("predictor.estimate.family", has_estimate_family),
    {"predictor.estimate.dims", [](P p) { return from_spec(estimate_of(p)->dims); }, has_dims},
    {"predictor.estimate.group", [](P p) { return from_spec(value_text(estimate_of(p)->group)); },
     has_integer_estimate},
    {"predictor.estimate.reference",
     [](P p) { return formula(estimate_of(p)->reference, "everything visible"); },
     has_reference_formula},
    {"predictor.estimate.exclude", [](P p) { return formula(estimate_of(p)->exclude, "nothing"); },
     has_estimate},
    {"predictor.keep", [](P p) { return formula(select_of(p)->keep, "everything visible"); },
     has_select},
    {"predictor.heads",
     [](P p) {
       return select_of(p)->shared_heads
                  ? from_spec("shared")
                  : PlanValue{"", "own", Origin::kDefault, "each head decides for itself"};
     },
     has_select},
    choice<&A::reuse>("predictor.reuse", has_select),
    choice<&A::qk_bits>("quantise.qk.bits", quantises_qk),
    choice<&A::qk_group>("quantise.qk.group", quantises_qk),
    choice<&A::v_bits>("quantise.v.bits", quantises_v),
    choice<&A::tile_q>("tile.q", always),
    choice<&A::tile_k>("tile.k", always),
    choice<&A::order>("tile.order", always),
    choice<&A::stages>("tile.stages", is_cuda),
    choice<&A::warps>("tile.warps", is_cuda),
    choice<&A::split_kv>("tile.split_kv", is_split_asked),
    choice<&A::queries>("tile.queries", is_wgmma),
    {"mask_loop", mask_loop, has_mask_loop},
    {"score_loop", score_loop, has_score_loop},
    choice<&A::family>("family", has_families),
    choice<&A::work_tiles>("work_tiles", is_wgmma),
    choice<&A::warpgroups>("warpgroups", is_wgmma),
    choice<&A::step_keys>("step_keys", is_wgmma),
    choice<&A::value_stages>("value_stages", is_wgmma),
    choice<&A::query_buffers>("query_buffers", is_wgmma),
    choice<&A::code_places>("code_places", has_code_places),
    choice<&A::walk>("walk", has_walk),
    choice<&A::producer>("producer", is_cuda),
    choice<&A::keys>("keys", has_other_keys),
    choice<&A::values>("values", has_other_values),
    choice<&A::consumer>("consumer", is_cuda),
    choice<&A::gate_policy>("gate_policy", has_gate_policy),
    {"few_queries",
     [](P) {
       return PlanValue{"", "attend_packed", Origin::kDerived,
                        "of sequences of few queries heads that share keys share work tiles"};
     },
     [](P p) { return p.packed.has_value(); }},
    choice<&A::loader>("loader", is_cuda),
    choice<&A::smem_bytes>("smem_bytes", is_cuda),
    choice<&A::registers>("registers", is_cuda),
    choice<&A::blocks_per_sm>("blocks_per_sm", is_cuda),
};
static_assert(std::ranges::count(kRows, true, &Row::is_choice) ==
                  sizeof(AttendPlan) / sizeof(Chosen<int>),
              "a member of AttendPlan has no row");

}  // namespace

std::vector<PlanValue> plan_values(const Plan& plan) {
  std::vector<PlanValue> values;
  for (const Row& row : kRows) {
    if (!row.is_shown(plan)) continue;
    values.push_back(row.value(plan));
    values.back().name = row.name;
  }
  return values;
}

std::string print_plan(const Plan& plan) {
  constexpr std::size_t kOriginColumn = 30, kLeastGap = 2;
  std::string text = "plan @" + plan.program.name + " on " + plan.target.name + "\n";
  for (const PlanValue& value : plan_values(plan)) {
    const std::string line = value.name + " = " + value.value;
    const std::size_t gap = line.size() < kOriginColumn ? kOriginColumn - line.size() : kLeastGap;
    text += line + std::string(gap, ' ') + "(" + std::string(name_of(value.origin)) +
            (value.reason.empty() ? "" : ": " + value.reason) + ")\n";
  }
  return text;
}

}  // namespace lacuna

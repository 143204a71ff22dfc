// The Config of each kernel: named constants, each with the field of the spec it comes from.
#include <charconv>

#include "compiler/emit/stages.hpp"
#include "compiler/expr/parse.hpp"
#include "compiler/expr/trend.hpp"

namespace lacuna {
namespace {

using Fields = std::vector<ConfigField>;

constexpr const char* kNowhere = "";  ///< no field of the spec
constexpr std::string_view kDefault = "default";
constexpr std::string_view kDerived = "derived";

std::string integer(const char* name, int value) {
  return std::string("static constexpr int ") + name + " = " + std::to_string(value);
}
std::string boolean(const char* name, bool value) {
  return std::string("static constexpr bool ") + name + " = " + (value ? "true" : "false");
}
std::string number(const char* name, float value) {
  char digits[32];
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return std::string("static constexpr float ") + name + " = " + text + "f";
}
std::string enumerator(const char* type, const char* name, const char* value) {
  return std::string("static constexpr lacuna::") + type + " " + name + " = lacuna::" + type +
         "::" + value;
}

const char* group_name(QuantGroup group) {
  switch (group) {
    case QuantGroup::kBlock:
      return "kBlock";
    case QuantGroup::kWarp:
      return "kWarp";
    case QuantGroup::kThread:
      return "kThread";
  }
  return "";
}

const char* normalise_name(Normalise normalise) {
  switch (normalise) {
    case Normalise::kNone:
      return "kNone";
    case Normalise::kSoftmax:
      return "kSoftmax";
    case Normalise::kLse:
      return "kLse";
    case Normalise::kPreviousLse:
      return "kPreviousLse";
  }
  return "";
}

const char* gate_scope(const std::optional<Gate>& gate) {
  if (!gate) return "kNone";
  switch (gate->scope) {
    case GateScope::kWarp:
      return "kWarp";
    case GateScope::kTile:
      return "kTile";
    case GateScope::kWarpgroup:
      return "kWarpgroup";
  }
  return "";
}

ConfigField tile_q_field(int tile) {
  return {integer("kTileQ", tile), "/predictor/tile/q", kDefault};
}
ConfigField tile_k_field(int tile) {
  return {integer("kTileK", tile), "/predictor/tile/k", kDefault};
}
ConfigField mask_field(const Expr& mask) {
  return {boolean("kHasMask", !mask.empty()), "/attention/mask", kDefault};
}

ConfigField split_rows_field(const AttendPlan& chosen) {
  return {integer("kSplitRows", chosen.split_rows.value), "/tile/split_rows",
          name_of(chosen.split_rows.origin)};
}

/// What `keep` (and for the similarities `exclude`) reads.
void add_uses(const StageFacts& facts, Fields& fields) {
  const auto reads = [&](Variable variable) { return uses(facts.select->keep, variable); };
  const auto add = [&](const char* name, bool value) {
    fields.push_back({boolean(name, value), "/predictor/keep", kDefault});
  };
  const auto excludes_by = [&](Variable variable) {
    return facts.estimate != nullptr && uses(facts.estimate->exclude, variable);
  };
  add("kUsesScore", reads(Variable::kScore));
  add("kUsesMass", reads(Variable::kMassBefore));
  add("kOrdersTiles", facts.orders_tiles());
  add("kKeepsFirst", facts.keeps_first());
  if (facts.keeps_first()) add("kKeepsByPlace", facts.keeps_by_place());
  add("kUsesSimilarQ", reads(Variable::kSimilarQ) || excludes_by(Variable::kSimilarQ));
  add("kUsesSimilarK", reads(Variable::kSimilarK) || excludes_by(Variable::kSimilarK));
}

/// What both estimate kernels have besides their tiles.
void add_estimate(const StageFacts& facts, Fields& fields) {
  const Estimate& estimate = *facts.estimate;
  const char* normalise = normalise_name(estimate.normalise);
  fields.insert(fields.end(), {{integer("kRows", facts.rows_of_estimate()), kNowhere, kDerived},
                               {enumerator("Normalise", "kNormalise", normalise),
                                "/predictor/estimate/normalise", kDefault},
                               {boolean("kSums", estimate.reduce == Reduce::kSum),
                                "/predictor/estimate/reduce", kDefault},
                               mask_field(estimate.mask),
                               {boolean("kHasExclude", !estimate.exclude.empty()),
                                "/predictor/estimate/exclude", kDefault}});
  add_uses(facts, fields);
}

/// What the wgmma family has besides.
void add_wgmma(const Attend& attend, const AttendPlan& chosen, Fields& fields) {
  const auto gate_reads = [&](Variable variable) {
    return attend.gate && reads(*attend.gate, variable);
  };
  // What a lane has seen opens a gate if it reads one statistic (the largest of two may be of
  // different rows), and stays open as that grows.
  const auto opens_along = [&](Variable variable) {
    const Trend skip = trend_of(attend.gate->skip, variable);
    const Trend exempt = trend_of(attend.gate->exempt, variable);
    return (skip == Trend::kStill || skip == Trend::kFalls) &&
           (exempt == Trend::kStill || exempt == Trend::kRises);
  };
  const bool lanes_open_gate =
      gate_reads(Variable::kTileMax) != gate_reads(Variable::kGap) &&
      opens_along(gate_reads(Variable::kGap) ? Variable::kGap : Variable::kTileMax);
  fields.insert(
      fields.end(),
      {{integer("kTileRows", chosen.tile_rows.value), kNowhere, name_of(chosen.tile_rows.origin)},
       {integer("kWarpgroups", chosen.warpgroups.value), "/tile/q",
        name_of(chosen.warpgroups.origin)},
       {integer("kStepKeys", chosen.step_keys.value), kNowhere, name_of(chosen.step_keys.origin)},
       {integer("kValueStages", chosen.value_stages.value), kNowhere,
        name_of(chosen.value_stages.origin)},
       {integer("kQueryBuffers", chosen.query_buffers.value), kNowhere,
        name_of(chosen.query_buffers.origin)},
       {boolean("kGateReadsTileMax", gate_reads(Variable::kTileMax)), "/gate/skip", kDefault},
       {boolean("kGateReadsGap", gate_reads(Variable::kGap)), "/gate/skip", kDefault},
       {boolean("kLanesOpenGate", lanes_open_gate), "/gate/skip", kDefault}});
}

}  // namespace

Fields tensor_config(const StageFacts&, Tensor tensor) {
  return {{integer("kTensor", static_cast<int>(tensor)), kNowhere, kDerived}};
}

Fields finish_config(const StageFacts& facts, Tensor tensor) {
  Fields fields = tensor_config(facts, tensor);
  if (tensor == Tensor::kV) {
    fields.push_back(
        {number("kRange", facts.quantise_values->range), "/quantise/v/range", kDefault});
  }
  return fields;
}

Fields unpermute_config(const StageFacts& facts, Tensor) {
  return {{boolean("kWritesLse", facts.attend.lse), "/attention/lse", kDefault}};
}

Fields prepare_config(const StageFacts& facts, Tensor tensor) {
  const TokenOps& ops = facts.ops(tensor);
  const Quantise none{.bits = 0};
  const Quantise& attend = ops.quantise != nullptr ? *ops.quantise : none;
  const Quantise& estimate = ops.estimate_quantise != nullptr ? *ops.estimate_quantise : none;
  const char* tile = tensor == Tensor::kQ ? "/predictor/tile/q" : "/predictor/tile/k";
  const bool gram = ops.similarity != nullptr && ops.similarity->form == SimilarityForm::kGramMax;
  return {
      {boolean("kIsQuery", tensor == Tensor::kQ), kNowhere, kDerived},
      {integer("kTokens", prepare_tokens(ops, facts.head_dim())), kNowhere, kDerived},
      {boolean("kSmooth", ops.smooth != nullptr), "/predictor/smooth", kDefault},
      {integer("kSummaryTile", ops.summary != nullptr ? ops.summary->tile : 0), tile, kDefault},
      {boolean("kSmoothSummary", ops.summary != nullptr && ops.summary->mean >= 0),
       "/predictor/smooth", kDefault},
      {integer("kSimilarityTile", ops.similarity != nullptr ? ops.similarity->tile : 0), tile,
       kDefault},
      {boolean("kGramMax", gram), "/predictor/similarity", kDefault},
      {integer("kBits", attend.bits), "/quantise/qk/bits", kDefault},
      {enumerator("QuantGroup", "kGroup", group_name(attend.group)), "/quantise/qk/group",
       kDefault},
      {integer("kTile", attend.tile), tensor == Tensor::kQ ? "/tile/q" : "/tile/k", kDefault},
      {integer("kEstimateBits", estimate.bits), "/predictor/estimate/bits", kDefault},
      {enumerator("QuantGroup", "kEstimateGroup", group_name(estimate.group)),
       "/predictor/estimate/group", kDefault},
      {integer("kEstimateTile", estimate.tile), tile, kDefault},
      {boolean("kBias", ops.bias != nullptr), "/predictor/smooth", kDefault},
  };
}

Fields prepare_values_config(const StageFacts& facts, Tensor) {
  return {{number("kRange", facts.quantise_values->range), "/quantise/v/range", kDefault}};
}

Fields pooled_config(const StageFacts& facts, Tensor) {
  const Estimate& estimate = *facts.estimate;
  Fields fields = {tile_q_field(estimate.tile_q),
                   tile_k_field(estimate.tile_k),
                   {boolean("kColumnsAreTokens", estimate.columns.kind == SummaryKind::kTokens),
                    "/predictor/estimate/k", kDefault},
                   {boolean("kDecidesKeys", facts.decides_keys()), kNowhere, kDerived}};
  add_estimate(facts, fields);
  return fields;
}

Fields tokens_config(const StageFacts& facts, Tensor) {
  const Estimate& estimate = *facts.estimate;
  const bool last = facts.estimates_last_rows();
  const bool cells = estimate.rows.kind == SummaryKind::kAntidiagonal;
  Fields fields = {
      tile_q_field(estimate.tile_q),
      tile_k_field(estimate.tile_k),
      {integer("kCell", cells ? estimate.rows.count : 1), "/predictor/estimate/q", kDefault},
      {integer("kLastRows", last ? estimate.rows.count : 0), "/predictor/estimate/q", kDefault},
      {integer("kBits", estimate.bits), "/predictor/estimate/bits", kDefault},
      {enumerator("QuantGroup", "kGroup", group_name(estimate.group)), "/predictor/estimate/group",
       kDefault},
      {boolean("kHasRowBias", estimate.row_bias >= 0), "/predictor/smooth", kDefault},
      {boolean("kHasColumnBias", estimate.column_bias >= 0), "/predictor/smooth", kDefault}};
  add_estimate(facts, fields);
  if (facts.estimates_pairs()) {
    fields.push_back(
        {boolean("kHasThreshold", facts.p_condition.has_value()), "/predictor/keep", kDefault});
  }
  return fields;
}

Fields select_config(const StageFacts& facts, Tensor) {
  const Select& select = *facts.select;
  Fields fields = {
      tile_q_field(select.tile_q),
      tile_k_field(select.tile_k),
      {boolean("kHasEstimate", facts.estimate != nullptr), "/predictor/estimate", kDefault},
      mask_field(select.mask),
      {boolean("kKeepsFirstInOrder", facts.keeps_first_in_order()), "/predictor/keep", kDefault}};
  add_uses(facts, fields);
  return fields;
}

Fields compact_config(const StageFacts& facts, Tensor) {
  const Compact& compact = *facts.compact;
  const bool shared = facts.select != nullptr && facts.select->shared_heads;
  return {{integer("kKeepQ", compact.keep_q), "/predictor/tile/q", kDefault},
          {integer("kKeepK", compact.keep_k), "/predictor/tile/k", kDefault},
          {integer("kTileQ", compact.tile_q), "/tile/q", kDefault},
          {integer("kTileK", compact.tile_k), "/tile/k", kDefault},
          mask_field(compact.mask),
          {boolean("kSharedHeads", shared), "/predictor/heads", kDefault}};
}

Fields order_config(const StageFacts& facts, Tensor) {
  return {{integer("kTileRows", facts.plan.attend.tile_rows.value), kNowhere, kDerived}};
}

Fields attend_config(const StageFacts& facts, Tensor) {
  const Attend& attend = facts.attend;
  const AttendPlan& chosen = facts.plan.attend;
  const Gate no_gate;
  const Gate& gate = attend.gate ? *attend.gate : no_gate;
  const bool shared = facts.gathers() && facts.select != nullptr && facts.select->shared_heads;
  const int group_tile = facts.quantises_attend() ? attend.qk_tile_k : chosen.tile_k.value;
  Fields fields = {
      {integer("kTileQ", chosen.tile_q.value), "/tile/q", name_of(chosen.tile_q.origin)},
      {integer("kTileK", chosen.tile_k.value), "/tile/k", name_of(chosen.tile_k.origin)},
      {integer("kStages", chosen.stages.value), "/tile/stages", name_of(chosen.stages.origin)},
      {integer("kWarps", chosen.warps.value), "/tile/warps", name_of(chosen.warps.origin)},
      {boolean("kDescending", attend.order == TileOrder::kDescending), "/tile/order",
       name_of(chosen.order.origin)},
      mask_field(attend.mask),
      {boolean("kHasScore", !attend.score.empty()), "/attention/score", kDefault},
      {boolean("kUsesLists", attend.list_indices >= 0), "/mask", kDefault},
      {enumerator("GateScope", "kGateScope", gate_scope(attend.gate)), "/gate/scope", kDefault},
      {boolean("kSkipsVLoad", gate.skips_v_load), "/gate/skips", kDefault},
      {boolean("kSkipsExp", gate.skips_exp), "/gate/skips", kDefault},
      {boolean("kSkipsPv", gate.skips_pv), "/gate/skips", kDefault},
      {boolean("kWritesLse", attend.lse), "/attention/lse", kDefault},
      {integer("kQkBits", facts.quantises_attend() ? 8 : 16), "/quantise/qk/bits", kDefault},
      {enumerator("QuantGroup", "kQkGroup", group_name(attend.qk_group)), "/quantise/qk/group",
       kDefault},
      {integer("kQkTileK", group_tile), kNowhere, kDerived},
      {integer("kVBits", attend.v_scale >= 0 ? 8 : 16), "/quantise/v/bits", kDefault},
      {boolean("kHasRowBias", attend.row_bias >= 0), "/predictor/smooth", kDefault},
      {boolean("kHasColumnBias", attend.column_bias >= 0), "/predictor/smooth", kDefault},
      {boolean("kGathers", facts.gathers()), "/loader", kDefault},
      {integer("kKeepK", facts.gathers() ? attend.keep_k : 1), "/predictor/tile/k", kDefault},
      {boolean("kSharedHeads", shared), "/predictor/heads", kDefault},
  };
  if (facts.is_wgmma()) add_wgmma(attend, chosen, fields);
  if (facts.splits_rows()) fields.push_back(split_rows_field(chosen));
  return fields;
}

Fields combine_config(const StageFacts& facts, Tensor) {
  return {split_rows_field(facts.plan.attend),
          {boolean("kWritesLse", facts.attend.lse), "/attention/lse", kDefault}};
}

}  // namespace lacuna

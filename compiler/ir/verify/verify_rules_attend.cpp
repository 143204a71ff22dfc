// Rules of attend: operands, lists or columns, gate, tiles.
#include <cmath>

#include "compiler/ir/names.hpp"
#include "compiler/ir/verify/verify_rules.hpp"

namespace lacuna {
namespace {

bool is_tile_size(int size) {
  return size % kRowsOfMma == 0 && size >= kRowsOfMma && size <= kLargestTile;
}

bool is_input(const Program& program, int id, std::string_view name) {
  const auto* input = defined_by<Input>(program, id);
  return input != nullptr && input->name == name;
}

/// q and k: the tensors, or their integers with scales, of 8 bits and the groups that attend names.
bool has_queries_and_keys(const Program& p, const Attend& a) {
  if (a.q_scale < 0 && a.k_scale < 0)
    return tensor_name(p, a.q) == "q" && tensor_name(p, a.k) == "k";
  const Quantise* q = quantised(p, a.q, a.q_scale, "q");
  const Quantise* k = quantised(p, a.k, a.k_scale, "k");
  return q != nullptr && k != nullptr && q->bits == 8 && k->bits == 8 && q->group == a.qk_group &&
         k->group == a.qk_group && q->tile == a.qk_tile_q && k->tile == a.qk_tile_k;
}

bool has_values(const Program& p, const Attend& a) {
  if (a.v_scale < 0) return tensor_name(p, a.v) == "v";
  const auto* values = defined_by<QuantiseValues>(p, a.v, 0);
  return values != nullptr && defined_by<QuantiseValues>(p, a.v_scale, 1) == values;
}

bool has_biases(const Program& p, const Attend& a) {
  const Quantise* q = quantised(p, a.q, a.q_scale, "q");
  const Quantise* k = quantised(p, a.k, a.k_scale, "k");
  if (q == nullptr || k == nullptr) return a.row_bias < 0 && a.column_bias < 0;
  return has_right_biases(p, *q, *k, a.row_bias, a.column_bias);
}

bool has_lists(const Program& p, const Attend& a) {
  if (a.list_indices < 0 && a.list_counts < 0) return true;
  if (is_input(p, a.list_indices, "list_indices")) return is_input(p, a.list_counts, "list_counts");
  const auto* compact = defined_by<Compact>(p, a.list_indices, 0);
  return compact != nullptr && defined_by<Compact>(p, a.list_counts, 1) == compact;
}

bool has_columns(const Program& p, const Attend& a) {
  if (a.columns < 0) return a.keep_k == 0;
  const auto* select = defined_by<Select>(p, a.columns);
  if (select == nullptr || a.keep_k <= 0 || select->tile_k != a.keep_k) return false;
  return a.tile_q == 0 || (a.tile_q == select->tile_q && a.tile_k % a.keep_k == 0);
}

constexpr OpRule<Attend> kAttend[] = {
    {"q and k come from the inputs of these names: as they are, permuted, or both quantised with "
     "8 bits in groups of attend's tiles",
     [](const Program& p, const Node&, const Attend& a) { return has_queries_and_keys(p, a); }},
    {"v comes from the input of this name: as it is, permuted, or in e4m3 with its scale",
     [](const Program& p, const Node&, const Attend& a) { return has_values(p, a); }},
    {kBiasWords, [](const Program& p, const Node&, const Attend& a) { return has_biases(p, a); }},
    {"groups of quantised q and k are those of attend's tiles",
     [](const Program&, const Node&, const Attend& a) {
       if (a.q_scale < 0) return a.qk_tile_q == 0 && a.qk_tile_k == 0;
       return a.qk_tile_q == a.tile_q && a.qk_tile_k == a.tile_k;
     }},
    {"list_indices and list_counts come together, from the inputs of these names or from a compact",
     [](const Program& p, const Node&, const Attend& a) { return has_lists(p, a); }},
    {"columns are the bits of a select whose tiles are attend's rows and keep_k keys, of which a "
     "tile takes a whole number",
     [](const Program& p, const Node&, const Attend& a) { return has_columns(p, a); }},
    {"columns stand instead of lists",
     [](const Program&, const Node&, const Attend& a) {
       return a.columns < 0 || (a.list_indices < 0 && a.list_counts < 0);
     }},
    {"columns are gathered from 16-bit keys and values: groups of 8-bit ones are of neighbours",
     [](const Program&, const Node&, const Attend& a) {
       return a.columns < 0 || (a.q_scale < 0 && a.v_scale < 0);
     }},
    {"gathered columns have no gate, which decides about neighbours, and go in ascending order",
     [](const Program&, const Node&, const Attend& a) {
       return a.columns < 0 || (!a.gate && a.order == TileOrder::kAscending);
     }},
    {"attend defines o, of q's type, and with lse a second value [batch, heads, n_q] f32",
     [](const Program& p, const Node& node, const Attend& a) {
       using enum Dim;
       std::vector<ValueType> types{input_type("q", p.dtype)};
       if (a.lse) types.push_back({Element::kF32, {kBatch, kHeads, kNQ}});
       return defines(p, node, types);
     }},
    {"mask yields bool, score and sink f32",
     [](const Program&, const Node&, const Attend& a) {
       return yields(a.mask, ExprType::kBool) && yields(a.score, ExprType::kF32) &&
              yields(a.sink, ExprType::kF32);
     }},
    {"only a softmax has a denominator: else no lse, sink or gate, and 16-bit values",
     [](const Program&, const Node&, const Attend& a) {
       return has_denominator(a.normalise) ||
              (!a.lse && a.sink.empty() && !a.gate && a.v_scale < 0);
     }},
    {"v of k has no more elements than k",
     [](const Program& p, const Node&, const Attend& a) {
       return !a.v_of_k || value_dim(p) <= p.head_dim;
     }},
    {"tiles that their pairs decide about are those of a mask, neither gathered nor the caller's",
     [](const Program& p, const Node&, const Attend& a) {
       return !a.pairs ||
              (!a.mask.empty() && a.columns < 0 && !is_input(p, a.list_indices, "list_indices"));
     }},
    {"without lse there is no base of it",
     [](const Program&, const Node&, const Attend& a) {
       return a.lse || a.lse_base == LseBase::kE;
     }},
    {"a gate has a skip; skip and exempt yield bool",
     [](const Program&, const Node&, const Attend& a) {
       return !a.gate || (!a.gate->skip.empty() && yields(a.gate->skip, ExprType::kBool) &&
                          yields(a.gate->exempt, ExprType::kBool));
     }},
    {"expressions know the program's parameters, in its order",
     [](const Program& p, const Node&, const Attend& a) {
       return reads_program_parameters(p, a.mask) && reads_program_parameters(p, a.score) &&
              reads_program_parameters(p, a.sink) &&
              (!a.gate || (reads_program_parameters(p, a.gate->skip) &&
                           reads_program_parameters(p, a.gate->exempt)));
     }},
    {"scale is a positive finite number",
     [](const Program&, const Node&, const Attend& a) {
       return std::isfinite(a.scale) && a.scale > 0;
     }},
    {"tile_q and tile_k are multiples of 16 up to 1024, or both still open",
     [](const Program&, const Node&, const Attend& a) {
       return (a.tile_q == 0 && a.tile_k == 0) ||
              (is_tile_size(a.tile_q) && is_tile_size(a.tile_k));
     }},
    {"a gate skips something: v_load, exp or pv",
     [](const Program&, const Node&, const Attend& a) {
       return !a.gate || a.gate->skips_v_load || a.gate->skips_exp || a.gate->skips_pv;
     }},
    {"a gate that skips exp or v_load also skips pv: without P or V there is no product",
     [](const Program&, const Node&, const Attend& a) {
       return !a.gate || a.gate->skips_pv || !(a.gate->skips_exp || a.gate->skips_v_load);
     }},
    {"a gate that skips v_load has scope tile: all warps of a block share one copy of V",
     [](const Program&, const Node&, const Attend& a) {
       return !a.gate || !a.gate->skips_v_load || a.gate->scope == GateScope::kTile;
     }},
};

}  // namespace

std::span<const OpRule<Attend>> rules_of(const Attend*) { return kAttend; }

}  // namespace lacuna

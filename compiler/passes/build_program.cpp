// Spec -> Program: inputs, what is made of them, the decision about tiles, one attend.
#include <algorithm>
#include <cmath>

#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/callers_positions.hpp"
#include "compiler/ir/names.hpp"
#include "compiler/ir/over_means.hpp"
#include "compiler/ir/shift_positions.hpp"
#include "compiler/passes/check_request.hpp"
#include "compiler/passes/choose_loader.hpp"
#include "compiler/passes/eliminate_dead_ops.hpp"
#include "compiler/passes/pass.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {
namespace {

/// Tokens of the tiles that an estimate's integers are grouped by: those of the predictor, but at
/// least the rows and keys of one step of an mma.
int group_tile(int tile, int least) { return std::max(tile, least); }
constexpr int kKeysOfStep = 32;

/// Appends ops in the order of the path. Everything that a spec might need is defined; what its
/// formulas do not read goes at the end.
class ProgramBuilder {
 public:
  ProgramBuilder(const VariantSpec& spec, const BuildOptions& options, Loader loader)
      : spec_(spec),
        loader_(loader),
        element_(element_of(options.dtype)),
        means_{spec.branch.means, spec.branch.query_means} {
    program_ = {spec.name, width_of(spec, options), options.dtype, options.batch, spec.params, {},
                {}};
    if (const int width = head_dim_v(spec, options); width != program_.head_dim)
      program_.head_dim_v = width;
    program_.kv = options.kv;
    for (ParamSpec& param : token_params(means_)) program_.params.push_back(std::move(param));
    scale_ = spec.attention.scale.value_or(1.0f / std::sqrt(static_cast<float>(program_.head_dim)));
  }

  Program build() {
    add_inputs();
    if (spec_.permute.order != TokenOrder::kNone) add_permute();
    add_means();
    for (const PredictorSpec* step : spec_.steps()) add_step(*step);
    add_integers();
    if (kept_ >= 0) add_kept(*spec_.predictor);
    add_attend();
    take_callers_positions(program_);
    return without_unread(std::move(program_));
  }

 private:
  using enum Dim;

  /// An op with one result, or with two; their ids are consecutive.
  int define(std::string name, ValueType type, Op op) {
    for (const Node& node : program_.nodes)  // a step before may have defined it
      if (node.op == op) return node.results[0];
    program_.nodes.push_back({{add_value(std::move(name), std::move(type))}, std::move(op)});
    return program_.nodes.back().results[0];
  }
  int define(std::string name, ValueType type, std::string second_name, ValueType second_type,
             Op op) {
    const std::size_t before = program_.nodes.size();
    const int first = define(std::move(name), std::move(type), std::move(op));
    if (program_.nodes.size() == before) return first;
    program_.nodes.back().results.push_back(
        add_value(std::move(second_name), std::move(second_type)));
    return first;
  }
  int add_value(std::string name, ValueType type) {
    // What each step has of its own.
    const auto is_taken = [&](const Value& value) { return value.name == name; };
    if (std::ranges::any_of(program_.values, is_taken)) name += "_2";
    program_.values.push_back({std::move(name), std::move(type)});
    return static_cast<int>(program_.values.size()) - 1;
  }
  int input(std::string name, ValueType type, std::string dims = {}) {
    Input op{name, std::move(dims)};
    return define(std::move(name), std::move(type), std::move(op));
  }

  ValueType queries() const { return {element_, {kBatch, kHeads, kNQ, kHeadDim}}; }
  ValueType keys() const { return {element_, {kBatch, kHeadsKv, kNK, kHeadDim}}; }
  ValueType key_tokens() const {
    return {element_, {kBatch, kHeadsKv, means_.keys > 1 ? kNTokens : kNK, kHeadDim}};
  }
  ValueType query_tokens() const {
    return {element_, {kBatch, kHeads, means_.queries > 1 ? kNQueries : kNQ, kHeadDim}};
  }
  static ValueType numbers(std::vector<Dim> shape) { return {Element::kF32, std::move(shape)}; }
  static ValueType row_numbers() { return numbers({kBatch, kHeads, kNQ}); }
  static ValueType list_indices() { return {Element::kI32, {kBatch, kHeads, kQTiles, kCapacity}}; }
  static ValueType list_counts() { return {Element::kI32, {kBatch, kHeads, kQTiles}}; }

  void add_inputs() {
    q_ = input("q", query_tokens(), spec_.branch.dims);
    k_ = input("k", key_tokens(), spec_.branch.dims);
    v_ = input("v", key_tokens());
    if (spec_.external_mask) {
      attend_.list_indices = input("list_indices", list_indices());
      attend_.list_counts = input("list_counts", list_counts());
    }
    order_ = input("order", {Element::kI32, {means_.queries > 1 ? kNQueries : kNQ}});
    previous_lse_ = input("previous_lse", row_numbers());
  }

  /// Of each of k and v, and of q, in its place.
  void add_means() {
    if (means_.queries > 1) q_ = define("q_means", queries(), Means{q_, means_.queries});
    if (means_.keys == 1) return;
    k_ = define("k_means", keys(), Means{k_, means_.keys});
    v_ = define("v_means", keys(), Means{v_, means_.keys});
  }

  void add_permute() {
    q_ = define("q_ordered", query_tokens(), Permute{q_, order_});
    k_ = define("k_ordered", key_tokens(), Permute{k_, order_});
    v_ = define("v_ordered", key_tokens(), Permute{v_, order_});
  }

  void add_step(const PredictorSpec& step) {
    within_ = step.within ? kept_ : -1;
    joins_ = step.joins ? kept_ : -1;
    p_ = -1;
    add_statistics(step);
    if (step.estimate) {
      add_estimate_integers(step, *step.estimate);
      add_estimate(step, *step.estimate);
    }
    add_select(step);
  }

  void add_statistics(const PredictorSpec& predictor) {
    const int tile_q = predictor.tile_q, tile_k = predictor.tile_k;
    const int q_mean = define("q_mean", numbers({kBatch, kHeads, kHeadDim}), Smooth{q_});
    const int k_mean = define("k_mean", numbers({kBatch, kHeadsKv, kHeadDim}), Smooth{k_});
    q_mean_ = predictor.smooth_q ? q_mean : -1;
    k_mean_ = predictor.smooth_k ? k_mean : -1;
    // Without their mean, keys shift the logits of a row alike: neither softmax nor what is
    // relative to the row's largest logit sees it.
    const bool shifts = predictor.estimate && (!is_relative_to_row(predictor.estimate->normalise) ||
                                               uses(predictor.keep, Variable::kScore));
    q_summary_ = define("q_summary", numbers({kBatch, kHeads, kKeepQTiles, kHeadDim}),
                        Summarise{.x = q_, .tile = tile_q});
    k_summary_ = define("k_summary", numbers({kBatch, kHeadsKv, kKeepKTiles, kHeadDim}),
                        Summarise{.x = k_, .mean = shifts ? -1 : k_mean_, .tile = tile_k});
    k_bounds_ = define("k_bounds", numbers({kBatch, kHeadsKv, kKeepKTiles, kBounds}),
                       Summarise{.x = k_, .tile = tile_k, .bounds = true});
    if (predictor.estimate && predictor.estimate->q.kind == SummaryKind::kCellMean)
      q_cells_ = define("q_cells", {element_, {kBatch, kHeads, kQCells, kHeadDim}},
                        Summarise{.x = q_, .tile = predictor.estimate->q.count, .rounded = true});
    if (predictor.estimate && predictor.estimate->k.kind == SummaryKind::kCellMean)
      k_cells_ = define("k_cells", {element_, {kBatch, kHeadsKv, kKCells, kHeadDim}},
                        Summarise{.x = k_,
                                  .mean = shifts ? -1 : k_mean_,
                                  .tile = predictor.estimate->k.count,
                                  .rounded = true});
    q_similarity_ = define("q_similarity", numbers({kBatch, kHeads, kKeepQTiles}),
                           Similarity{q_, q_mean_, tile_q, predictor.similarity});
    k_similarity_ = define("k_similarity", numbers({kBatch, kHeadsKv, kKeepKTiles}),
                           Similarity{k_, k_mean_, tile_k, predictor.similarity});
  }

  int add_quantised(const std::string& prefix, bool is_query, int bits, QuantGroup group,
                    int tile) {
    const std::string name = prefix + (is_query ? "q" : "k");
    const Dim heads = is_query ? kHeads : kHeadsKv, groups = is_query ? kQGroups : kKGroups;
    ValueType values{Element::kI8, is_query ? queries().shape : keys().shape};
    return define(name + "_values", std::move(values), name + "_scale",
                  numbers({kBatch, heads, groups}),
                  Quantise{is_query ? q_ : k_, is_query ? q_mean_ : k_mean_, bits, group, tile});
  }

  void add_estimate_integers(const PredictorSpec& step, const EstimateSpec& estimate) {
    if (estimate.bits > 0 && estimate.bits < 16) {
      const int bits = estimate.bits;
      const QuantGroup group = estimate.group;
      estimate_q_ =
          add_quantised("estimate_", true, bits, group, group_tile(step.tile_q, kWarpRows));
      estimate_k_ =
          add_quantised("estimate_", false, bits, group, group_tile(step.tile_k, kKeysOfStep));
    }
    add_biases();
  }

  void add_biases() {
    row_bias_ = column_bias_ = -1;
    if (k_mean_ >= 0) row_bias_ = define("row_bias", row_numbers(), Project{q_, -1, k_mean_});
    if (q_mean_ >= 0) {
      column_bias_ =
          define("column_bias", numbers({kBatch, kHeads, kNK}), Project{k_, k_mean_, q_mean_});
    }
  }

  void add_integers() {
    attend_.q = q_, attend_.k = k_, attend_.v = v_;
    const QuantiseSpec& quantise = spec_.quantise;
    if (quantise.qk_bits < 16) {
      attend_.q = add_quantised("", true, quantise.qk_bits, quantise.qk_group, 0);
      attend_.k = add_quantised("", false, quantise.qk_bits, quantise.qk_group, 0);
      attend_.q_scale = attend_.q + 1;
      attend_.k_scale = attend_.k + 1;
      attend_.qk_group = quantise.qk_group;
    }
    if (quantise.v_bits < 16) {
      attend_.v =
          define("v_values", {Element::kE4M3, keys().shape}, "v_scale",
                 numbers({kBatch, kHeadsKv, kHeadDim}), QuantiseValues{v_, quantise.v_range});
      attend_.v_scale = attend_.v + 1;
    }
    add_biases();
    if (quantise.qk_bits < 16) {
      attend_.row_bias = row_bias_;
      attend_.column_bias = column_bias_;
    }
  }

  int compared(const Summary& summary, int tokens, int tiles, int cells) const {
    if (summary.kind == SummaryKind::kMinMax) return k_bounds_;
    if (summary.kind == SummaryKind::kMean) return tiles;
    return summary.kind == SummaryKind::kCellMean ? cells : tokens;
  }

  void add_estimate(const PredictorSpec& predictor, const EstimateSpec& spec) {
    const bool has_means = spec.q.kind == SummaryKind::kMean || spec.k.kind == SummaryKind::kMean;
    Estimate e;
    e.rows = spec.q, e.columns = spec.k;
    e.bits = spec.bits != 0 ? spec.bits : has_means ? 32 : 16;
    e.from = spec.from;
    if (spec.index) {
      e.index_heads = spec.index->heads, e.index_dim = spec.index->dim;
      e.index_q = spec.index->q, e.index_k = spec.index->k, e.index_weight = spec.index->weight;
    }
    if (!e.is_given() && !e.is_indexed()) {
      e.q = compared(spec.q, q_, q_summary_, q_cells_);
      e.k = compared(spec.k, k_, k_summary_, k_cells_);
    }
    if (e.bits < 16) {
      e.q = estimate_q_, e.k = estimate_k_;
      e.q_scale = e.q + 1, e.k_scale = e.k + 1;
      e.row_bias = row_bias_, e.column_bias = column_bias_;
      e.group = spec.group;
    }
    e.normalise = spec.normalise;
    if (spec.normalise == Normalise::kLse) e.exact_q = q_, e.exact_k = k_;
    if (spec.normalise == Normalise::kPreviousLse) e.previous_lse = previous_lse_;
    e.similar_q = q_similarity_, e.similar_k = k_similarity_;
    e.within = within_;
    e.reduce = spec.reduce;
    e.temperature = spec.temperature;
    e.dims = spec.dims;
    e.mask = spec_.attention.mask;
    e.reference = spec.reference;
    e.exclude = spec.exclude;
    e.scale = scale_;
    e.tile_q = predictor.tile_q, e.tile_k = predictor.tile_k;
    const ValueType type = numbers({kBatch, kHeads, kKeepQTiles, kKeepKTiles});
    p_ = define("p", type, "score", type, std::move(e));
  }

  void add_select(const PredictorSpec& predictor) {
    Select select;
    select.p = p_, select.score = p_ < 0 ? -1 : p_ + 1;
    select.similar_q = q_similarity_, select.similar_k = k_similarity_;
    select.within = within_, select.joins = joins_;
    select.keep = predictor.keep;
    select.mask = spec_.attention.mask;
    select.tile_q = predictor.tile_q, select.tile_k = predictor.tile_k;
    select.shared_heads = predictor.shared_heads;
    const bool is_last = &predictor == &*spec_.predictor;
    kept_ = define(is_last ? "kept" : "kept_before",
                   {Element::kU32, {kBatch, kHeads, kKeepQTiles, kKeepWords}}, select);
  }

  void add_kept(const PredictorSpec& predictor) {
    if (loader_ == Loader::kGather) {
      attend_.columns = kept_;
      attend_.keep_k = predictor.tile_k;
      return;
    }
    attend_.list_indices =
        define("list_indices", list_indices(), "list_counts", list_counts(),
               Compact{kept_, spec_.attention.mask, {}, predictor.tile_q, predictor.tile_k});
    attend_.list_counts = attend_.list_indices + 1;
  }

  void add_attend() {
    attend_.mask = spec_.attention.mask;
    attend_.score = spec_.attention.score;
    if (const auto& gate = spec_.gate) {
      attend_.gate = Gate{gate->scope,        gate->skip,      gate->exempt,
                          gate->skips_v_load, gate->skips_exp, gate->skips_pv};
    }
    attend_.scale = scale_;
    attend_.sink = spec_.attention.sink;
    attend_.normalise = spec_.attention.normalise;
    attend_.v_of_k = spec_.attention.v == ValuesOf::kKeys;
    attend_.lse = spec_.attention.lse;
    const bool permuted = spec_.permute.order != TokenOrder::kNone;
    const bool is_branch = spec_.branch.count > 0;
    // The branches' own are summed up as natural logarithms.
    if (attend_.lse && !is_branch) attend_.lse_base = spec_.attention.lse_base;
    const std::string suffix = is_branch ? "_branch" : permuted ? "_ordered" : "";
    const bool has_lse = attend_.lse;
    const int o = define("o" + suffix, queries(), std::move(attend_));
    int lse = -1;
    if (has_lse) {
      lse = add_value("lse" + suffix, row_numbers());
      program_.nodes.back().results.push_back(lse);
    }
    if (is_branch) return add_merge(o, lse);
    if (!permuted) return;
    define("o", queries(), Unpermute{o, order_});
    if (has_lse) define("lse", row_numbers(), Unpermute{lse, order_});
  }

  void add_merge(int o, int lse) {
    const BranchSpec& branch = spec_.branch;
    MergeBranch merge{.o = o,
                      .lse = lse,
                      .order = spec_.permute.order != TokenOrder::kNone ? order_ : -1,
                      .index = branch.index,
                      .count = branch.count,
                      .queries = means_.queries,
                      .weight = branch.weight,
                      .lse_base = spec_.attention.lse_base};
    ValueType sum = query_tokens();
    if (!merge.is_last()) sum.element = Element::kF32;
    const char* name = merge.is_last() ? "o" : "sum";
    if (lse < 0)
      define(name, std::move(sum), std::move(merge));
    else
      define(name, std::move(sum), "lse", row_numbers(), std::move(merge));
  }

  const VariantSpec& spec_;
  Loader loader_;
  Element element_;
  MeansOf means_;
  Program program_;
  float scale_ = 0;
  Attend attend_;
  // ids of values, -1: not defined; of a pair the first
  int q_ = -1, k_ = -1, v_ = -1, order_ = -1, previous_lse_ = -1;
  int q_mean_ = -1, k_mean_ = -1;  ///< of what is smoothed
  int q_summary_ = -1, k_summary_ = -1, q_similarity_ = -1, k_similarity_ = -1;
  int q_cells_ = -1, k_cells_ = -1, k_bounds_ = -1;
  int kept_ = -1, within_ = -1, joins_ = -1;  ///< bits of the step at hand, of the one before
  int estimate_q_ = -1, estimate_k_ = -1, row_bias_ = -1, column_bias_ = -1, p_ = -1;
};

}  // namespace

Program build_program(const SpecDocument& document, const BuildOptions& options,
                      Diagnostics& diagnostics) {
  check_request(document, options, diagnostics);
  const Loader loader = choose_loader(document, diagnostics);
  Program program = ProgramBuilder(document.spec, options, loader).build();
  // Positions first: a part of a problem has whole means, and formulas find their tokens in it.
  const PartKind part =
      options.batch == BatchLayout::kUniform ? PartKind::kQueriesOfHeads : PartKind::kHeads;
  if (options.positions) program = shift_positions(std::move(program), part, diagnostics);
  take_means({document.spec.branch.means, document.spec.branch.query_means}, program);
  return program;
}

}  // namespace lacuna

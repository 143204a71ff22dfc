#include "tests/numerics/variants/random_variant.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>

#include "compiler/expr/bounds/open_reads.hpp"
#include "compiler/expr/fold.hpp"
#include "compiler/spec/table/bands.hpp"
#include "tests/numerics/variants/random_params.hpp"
#include "tests/oracle/access.hpp"

namespace lacuna::numerics {
namespace {

constexpr const char* kPrefix = "random-";

/// What formulas of one problem read.
struct Formulas {
  std::shared_ptr<const test::DrawnSpec> drawn;
  RandomParams params;
  Bindings common;  ///< n_q, n_k, n_h
  int entry = 0;    ///< number of the first batch entry

  const VariantSpec& spec() const { return drawn->document.spec; }

  Bindings at(int h, int b) const {
    Bindings x = common;
    x.set(Variable::kH, h), x.set(Variable::kB, entry + b);
    return x;
  }
  Bindings of_pair(int q, int k, int h, int b) const {
    Bindings x = at(h, b);
    x.set(Variable::kQ, q), x.set(Variable::kK, k);
    return x;
  }
  Bindings of_tile(const oracle::TileIndex& t, int n_i, int n_j) const {
    Bindings x = at(t.h, t.b);
    x.set(Variable::kI, t.i), x.set(Variable::kJ, t.j);
    x.set(Variable::kNI, n_i), x.set(Variable::kNJ, n_j);
    x.set(Variable::kQ0, t.q0), x.set(Variable::kQ1, t.q1);
    x.set(Variable::kK0, t.k0), x.set(Variable::kK1, t.k1);
    return x;
  }
  Bindings of_facts(const oracle::TileFacts& t) const {
    Bindings x = of_tile(t.tile, t.n_i, t.n_j);
    const auto set = [&](Variable variable, double value) {
      x.set(variable, static_cast<float>(value));
    };
    set(Variable::kScore, t.score), set(Variable::kP, t.p), set(Variable::kPMax, t.p_max);
    set(Variable::kMassBefore, t.mass_before);
    set(Variable::kSimilarQ, t.similar_q), set(Variable::kSimilarK, t.similar_k);
    x.set(Variable::kRank, t.rank), x.set(Variable::kVisible, t.visible);
    return x;
  }
};
using Shared = std::shared_ptr<const Formulas>;

/// All answers of a mask, of heads and entries only where it reads them.
void set_mask(const Shared& formulas, oracle::Problem& p) {
  const Expr& mask = formulas->spec().attention.mask;
  if (mask.empty()) return;
  const int heads = uses(mask, Variable::kH) ? p.n_h : 1;
  const int entries = uses(mask, Variable::kB) ? p.n_b : 1;
  const auto answers = std::make_shared<std::vector<std::uint8_t>>();
  answers->reserve(oracle::flat_row(entries, heads, 0, p.n_q, 0) * static_cast<std::size_t>(p.n_k));
  for (int b = 0; b < entries; ++b)
    for (int h = 0; h < heads; ++h)
      for (int q = 0; q < p.n_q; ++q)
        for (int k = 0; k < p.n_k; ++k)
          answers->push_back(evaluate(mask, formulas->of_pair(q, k, h, b)).boolean ? 1 : 0);
  const int n_q = p.n_q, n_k = p.n_k;
  p.mask = [=](int q, int k, int h, int b) {
    const std::size_t row =
        oracle::flat_row(std::min(b, entries - 1), heads, std::min(h, heads - 1), n_q, q);
    return (*answers)[row * static_cast<std::size_t>(n_k) + static_cast<std::size_t>(k)] != 0;
  };
}

/// May the rounding of s make much of a difference?
bool may_jump(const Expr& score) {
  std::vector<bool> reads_s;
  for (const ExprNode& node : score.nodes) {
    bool reads = is_variable(node, Variable::kS);
    for (const std::int32_t child : node.children)
      reads = reads || (child >= 0 && reads_s[static_cast<std::size_t>(child)]);
    reads_s.push_back(reads);
    const bool is_step = is_comparison(node.op) || node.op == ExprOp::kFloor ||
                         node.op == ExprOp::kCeil || node.op == ExprOp::kToI32;
    const bool may_be_steep = is_special_function(node.op) && node.op != ExprOp::kTanh;
    if (reads && (is_step || may_be_steep)) return true;
  }
  return false;
}

void set_score(const Shared& formulas, oracle::Problem& p) {
  const Expr& score = formulas->spec().attention.score;
  if (score.empty()) return;
  p.score = [formulas](double s, int q, int k, int h, int b) {
    Bindings x = formulas->of_pair(q, k, h, b);
    x.set(Variable::kS, static_cast<float>(s));
    return static_cast<double>(evaluate(formulas->spec().attention.score, x).f32);
  };
  if (!may_jump(score)) return;
  constexpr double kRounding = 1e-4, kMuch = 2e-3;
  p.wavers = [of = p.score](double s, int q, int k, int h, int b) {
    const double here = of(s, q, k, h, b), reach = kRounding * (1 + std::abs(s));
    for (const double x : {s - reach, s + reach, std::abs(s) < reach ? 0.0 : s}) {
      const double there = of(x, q, k, h, b);
      if (there != here && !(std::abs(there - here) < kMuch)) return true;
    }
    return false;
  };
}

void set_sink(const Shared& formulas, oracle::Problem& p) {
  if (formulas->spec().attention.sink.empty()) return;
  p.sink = [formulas](int q, int h, int b) {
    Bindings x = formulas->at(h, b);
    x.set(Variable::kQ, q);
    return static_cast<double>(evaluate(formulas->spec().attention.sink, x).f32);
  };
}

/// How far the statistics may be from the values that they have before the decision turns: one of a
/// few steps, each above a band that comparisons take (check.cpp), or infinity.
constexpr double kMargins[] = {9e-4, 4.9e-2, 2.9e-1};

void set_gate(const Shared& formulas, int n_i, int n_j, Variant& v) {
  if (!formulas->spec().gate) return;
  const auto skips = [=](double tile_max, double gap, const oracle::TileIndex& t) {
    const GateSpec& gate = *formulas->spec().gate;
    Bindings x = formulas->of_tile(t, n_i, n_j);
    x.set(Variable::kTileMax, static_cast<float>(tile_max));
    x.set(Variable::kGap, static_cast<float>(gap));
    const bool is_exempt = !gate.exempt.empty() && evaluate(gate.exempt, x).boolean;
    return !is_exempt && evaluate(gate.skip, x).boolean;
  };
  const GateSpec& spec = *formulas->spec().gate;
  oracle::GateRule gate;
  gate.scope = spec.scope == GateScope::kWarp ? oracle::Scope::kWarp : oracle::Scope::kTile;
  gate.skips_exp = spec.skips_exp;
  gate.skip = skips;
  gate.margin = [=](double tile_max, double gap, const oracle::TileIndex& t) {
    const bool here = skips(tile_max, gap, t);
    for (const double margin : kMargins)
      for (const double a : {tile_max - margin, tile_max + margin})
        for (const double c : {gap - margin, gap + margin})
          if (skips(a, c, t) != here) return margin;
    return oracle::kInfinity;
  };
  v.gate = gate;
}

oracle::Compared compared(SummaryKind kind) {
  switch (kind) {
    case SummaryKind::kMean:
      return oracle::Compared::kMean;
    case SummaryKind::kCellMean:
      return oracle::Compared::kCellMean;
    case SummaryKind::kTokens:
      return oracle::Compared::kTokens;
    case SummaryKind::kAntidiagonal:
      return oracle::Compared::kAntidiagonal;
    case SummaryKind::kLast:
      return oracle::Compared::kLast;
    case SummaryKind::kMinMax:
      return oracle::Compared::kBounds;
    case SummaryKind::kStride:
      break;
  }
  return oracle::Compared::kStride;
}

oracle::Norm norm_of(Normalise normalise) {
  constexpr oracle::Norm kNorms[] = {oracle::Norm::kNone, oracle::Norm::kSoftmax,
                                     oracle::Norm::kReference, oracle::Norm::kPrevious,
                                     oracle::Norm::kRowMax};
  return kNorms[static_cast<std::size_t>(normalise)];
}

oracle::Group group_of(QuantGroup group) {
  constexpr oracle::Group kGroups[] = {oracle::Group::kBlock, oracle::Group::kWarp,
                                       oracle::Group::kThread};
  return kGroups[static_cast<std::size_t>(group)];
}

/// `of`: the step among those of the spec, which the formulas keep.
oracle::EstimateRule estimate_of(const Shared& formulas, const EstimateSpec* of, DType dtype) {
  oracle::EstimateRule rule;
  rule.rows = compared(of->q.kind), rule.columns = compared(of->k.kind);
  rule.count = of->q.count;
  if (of->k.kind == SummaryKind::kCellMean) rule.column_count = of->k.count;
  rule.cells = dtype == DType::kBF16 ? oracle::kBF16 : oracle::kF16;
  rule.temperature = static_cast<double>(of->temperature);
  if (const auto steps = band_steps(of->dims); !of->dims.empty() && steps)
    rule.takes = [steps](int element) { return is_in_bands(*steps, element); };
  const bool has_mean = of->q.kind == SummaryKind::kMean || of->k.kind == SummaryKind::kMean;
  rule.bits = of->bits > 0 ? of->bits : has_mean ? 32 : 16;
  rule.group = group_of(of->group);
  rule.reduction = of->reduce == Reduce::kMax ? oracle::Reduction::kMax : oracle::Reduction::kSum;
  rule.norm = norm_of(of->normalise);
  if (!of->reference.empty())
    rule.reference = [=](int q, int k) {
      return evaluate(of->reference, formulas->of_pair(q, k, 0, 0)).boolean;
    };
  if (!of->exclude.empty())
    rule.exclude = [=](const oracle::TileFacts& t) {
      return evaluate(of->exclude, formulas->of_facts(t)).boolean;
    };
  if (!of->from.empty())
    rule.from = [=](const oracle::TileFacts& t) {
      return static_cast<double>(evaluate(of->from, formulas->of_facts(t)).f32);
    };
  return rule;
}

oracle::Predictor predictor_of(const Shared& formulas, const PredictorSpec* of, DType dtype) {
  oracle::Predictor p;
  p.tile_q = of->tile_q, p.tile_k = of->tile_k;
  p.smooth_q = of->smooth_q, p.smooth_k = of->smooth_k;
  p.similarity = of->similarity == SimilarityForm::kCosine ? oracle::Similarity::kCosine
                                                           : oracle::Similarity::kGramMax;
  const auto reads = [&](Variable variable) {
    return uses(of->keep, variable) || (of->estimate && uses(of->estimate->exclude, variable));
  };
  p.uses_similarity = reads(Variable::kSimilarQ) || reads(Variable::kSimilarK);
  p.uses_rank = reads(Variable::kRank) || reads(Variable::kMassBefore) || reads(Variable::kPMax);
  if (of->estimate) p.estimate = estimate_of(formulas, &*of->estimate, dtype);
  p.keep = [=](const oracle::TileFacts& t) {
    return evaluate(of->keep, formulas->of_facts(t)).boolean;
  };
  p.shared_heads = of->shared_heads;
  for (const PredictorSpec& step : of->before)
    p.before.push_back(predictor_of(formulas, &step, dtype));
  p.joins = of->joins;
  return p;
}

/// Bounds of a tile tell nothing of tensors, remainders and an order, and little of other masks.
/// Where it is known that they tell nothing, the pairs of a tile are asked; but not of every column
/// that a report counts, and in sequences only where a predictor makes lists.
bool has_loose_bounds(const VariantSpec& spec, bool is_sequence) {
  const Expr& mask = spec.attention.mask;
  const bool is_permuted = spec.permute.order != TokenOrder::kNone;
  if (mask.empty() || (test::RandomSpec::has_exact_bounds(mask.text) && !is_permuted)) return false;
  const bool gathers = spec.predictor && spec.predictor->tile_k < 16;
  if ((is_sequence && !spec.predictor) || gathers || spec.external_mask) return true;
  return !is_permuted && open_reads(mask).empty() && loose_part(mask).empty();
}

/// Rows of every density, some empty.
void draw_lists(KernelTile tile, std::uint32_t seed, Variant& v) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  const oracle::Problem& p = v.problem;
  const int rows = p.n_b * p.n_h * oracle::tiles_of(p.n_q, tile.q);
  for (int row = 0; row < rows; ++row) {
    const double density = 1.5 * unit(random) - 0.3;
    for (int j = 0; j < oracle::tiles_of(p.n_k, tile.k); ++j)
      v.tiling.listed.push_back(unit(random) < density ? 1 : 0);
  }
}

void set_formats(const VariantSpec& spec, Variant& v) {
  v.quantisation.qk_bits = spec.quantise.qk_bits, v.quantisation.v_bits = spec.quantise.v_bits;
  v.quantisation.group = group_of(spec.quantise.qk_group);
  v.quantisation.range = static_cast<double>(spec.quantise.v_range);
  if (spec.predictor && spec.quantise.qk_bits == 8)
    v.quantisation.smooth_q = spec.predictor->smooth_q,
    v.quantisation.smooth_k = spec.predictor->smooth_k;
  const AttentionSpec& attention = spec.attention;
  if (attention.scale) v.problem.scale = static_cast<double>(*attention.scale);
  v.problem.lse_is_base_2 = attention.lse_base == LseBase::k2;
  v.problem.weighting = attention.normalise == Weights::kSigmoid ? oracle::Weighting::kSigmoid
                        : attention.normalise == Weights::kNone  ? oracle::Weighting::kLogit
                                                                 : oracle::Weighting::kSoftmax;
}

}  // namespace

std::string random_name(std::uint64_t seed) { return kPrefix + std::to_string(seed); }

bool is_random_name(const std::string& name) { return name.starts_with(kPrefix); }

std::shared_ptr<const test::DrawnSpec> random_spec(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const test::DrawnSpec>> all;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = all.try_emplace(name, nullptr);
  if (is_new) {
    auto drawn = test::draw_spec(std::stoull(name.substr(std::string(kPrefix).size())));
    if (drawn) found->second = std::make_shared<const test::DrawnSpec>(*std::move(drawn));
  }
  return found->second;
}

bool has_own_tiles(const test::DrawnSpec& drawn) {
  const VariantSpec& spec = drawn.document.spec;
  return spec.gate || spec.predictor || spec.external_mask || spec.quantise.qk_bits == 8;
}

void make_random_variant(const Case& c, KernelTile tile, std::uint32_t params_seed, Variant& v) {
  const auto formulas = std::make_shared<Formulas>();
  formulas->drawn = random_spec(c.variant);
  const VariantSpec& spec = formulas->spec();
  oracle::Problem& p = v.problem;
  if (spec.predictor && spec.predictor->tile_k <= 8) v.tiling.tile_k = spec.predictor->tile_k;
  const Case::Batch batch = c.batch.value_or(Case::Batch{0, p.n_b, p.n_q, p.n_k});
  const int q_tiles = oracle::tiles_of(batch.most_q, tile.q),
            k_tiles = oracle::tiles_of(batch.most_k, tile.k);
  draw_params(spec, {batch.count, p.n_h, q_tiles, k_tiles, batch.most_q, batch.most_k}, params_seed,
              formulas->params);
  formulas->entry = batch.entry;
  formulas->common.parameters = formulas->params.views;
  formulas->common.set(Variable::kNQ, p.n_q), formulas->common.set(Variable::kNK, p.n_k);
  formulas->common.set(Variable::kNH, p.n_h);
  v.params = formulas->params.passed;
  set_formats(spec, v);
  set_mask(formulas, p);
  set_score(formulas, p);
  set_sink(formulas, p);
  set_gate(formulas, oracle::tiles_of(p.n_q, tile.q), oracle::tiles_of(p.n_k, tile.k), v);
  const std::vector<TileOrder>& order = spec.tile.order.values;
  v.tiling.descending = !order.empty() && order.front() == TileOrder::kDescending;
  // Without a rule of their own for tiles, a step that only smooths keeps all of them.
  if (spec.predictor && !spec.predictor->only_smooths())
    v.predictor = predictor_of(formulas, &*spec.predictor, c.dtype);
  const bool is_permuted = spec.permute.order != TokenOrder::kNone;
  v.has_loose_bounds = has_loose_bounds(spec, c.batch.has_value());
  if (spec.external_mask)
    draw_lists(tile, params_seed + static_cast<std::uint32_t>(batch.entry), v);
  v.knows_exact = spec.attention.score.empty();
  if (!is_permuted) return;
  v.order.resize(static_cast<std::size_t>(p.n_q));
  std::iota(v.order.begin(), v.order.end(), 0);
  std::mt19937 random(params_seed + static_cast<std::uint32_t>(batch.entry));
  std::shuffle(v.order.begin(), v.order.end(), random);
}

std::string wild_logit(const Variant& v) {
  constexpr double kMost = 400;
  const oracle::Problem& p = v.problem;
  if (!p.score) return "";
  std::ostringstream text;
  for (int b = 0; b < p.n_b; ++b)
    for (int h = 0; h < p.n_h; ++h)
      for (int q = 0; q < p.n_q; ++q)
        for (int k = 0; k < p.n_k; ++k) {
          if (!oracle::visible(p, q, k, h, b)) continue;
          const double product =
              oracle::dot(oracle::row_at(p.q, oracle::query_index(p, b, h, q), p.d),
                          oracle::row_at(p.k, oracle::key_index(p, b, h, k), p.d), p.d);
          const double logit = p.score(product * p.scale, q, k, h, b);
          const bool counts = p.weighting != oracle::Weighting::kLogit;
          if (std::abs(logit) <= kMost || (logit == -oracle::kInfinity && counts)) continue;
          text << "logit " << logit << " of query " << q << " and key " << k;
          return text.str();
        }
  return "";
}

}  // namespace lacuna::numerics

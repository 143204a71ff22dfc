#include "runtime/group/work.hpp"

#include <algorithm>
#include <numeric>

#include "compiler/expr/evaluate.hpp"
#include "compiler/expr/text/parse.hpp"
#include "runtime/base/whole_tiles.hpp"

namespace lacuna::group {
namespace {

constexpr std::int32_t kMostCells = 256;  ///< along queries, and along keys
/// Of all tiles that kernels load together, a multiple.
constexpr std::int32_t kLoadedKeys = 256;
/// Rows of a warp raise their maxima together, so that results are the same bits only where those
/// of one device are together.
constexpr std::int32_t kRowsThatDecide = 16;
/// Keys that take as long as beginning and ending a query tile: about 3 us of an SM of an H100. Of
/// two ranks with as many pairs the one with more and shorter rows was 0.2 ms of 6.5 behind.
constexpr double kKeysOfTile = 256;

bool has_q_tiles(const ParamSpec& param) {
  return std::ranges::find(param.symbol.shape, ParamAxis::kQTiles) != param.symbol.shape.end();
}

/// Does a mean over all queries decide?
bool averages_queries(const Program& program, const Smooth& smooth) {
  const ValueType& type = program.values[static_cast<std::size_t>(smooth.x)].type;
  return std::ranges::find(type.shape, Dim::kNQ) != type.shape.end();
}

/// The share of pairs that the mask leaves visible in cells of queries and keys of one head.
class MaskGrid {
 public:
  MaskGrid(const VariantSpec& spec, const LaunchShape& shape)
      : classifier_(classify_mask(spec.attention.mask)), shape_(shape) {
    for (const ParamSpec& param : spec.params) {
      ParamView& view = views_.emplace_back();
      if (param.symbol.type == ExprType::kI32) {
        view.value.i32 = static_cast<std::int32_t>(param.default_value);
      } else {
        view.value.f32 = static_cast<float>(param.default_value);
      }
    }
    bindings_.parameters = views_;
    bindings_.set(Variable::kNQ, shape.n_q);
    bindings_.set(Variable::kNK, shape.n_k);
  }

  bool reads_head() const {
    return uses(classifier_.may, Variable::kH) || uses(classifier_.must, Variable::kH);
  }
  /// Does what the mask hides follow from tokens alone?
  bool hides_by_tokens() const {
    const Expr& may = classifier_.may;
    return !may.empty() && !uses(may, Variable::kH) && !uses(may, Variable::kB) &&
           std::ranges::none_of(may.nodes,
                                [](const ExprNode& node) { return node.op == ExprOp::kParameter; });
  }

  /// The keys that queries may see, as kernels load them: with those of their tiles.
  Range seen(std::int32_t q0, std::int32_t q1) {
    bindings_.set(Variable::kQ0, q0);
    bindings_.set(Variable::kQ1, q1 - 1);
    Range keys;
    const std::int32_t step =
        std::max(1, ceil_div(shape_.n_k, kMostCells * kLoadedKeys)) * kLoadedKeys;
    for (std::int32_t k0 = 0; k0 < shape_.n_k; k0 += step) {
      const std::int32_t k1 = std::min(k0 + step, shape_.n_k);
      bindings_.set(Variable::kK0, k0);
      bindings_.set(Variable::kK1, k1 - 1);
      if (holds(classifier_.may)) keys = {keys.empty() ? k0 : keys.begin, k1};
    }
    return keys;
  }

  double pairs(std::int32_t head, std::int32_t q0, std::int32_t q1) {
    bindings_.set(Variable::kH, head);
    bindings_.set(Variable::kQ0, q0);
    bindings_.set(Variable::kQ1, q1 - 1);
    const std::int32_t step = std::max(1, ceil_div(shape_.n_k, kMostCells));
    double sum = 0;
    for (std::int32_t k0 = 0; k0 < shape_.n_k; k0 += step) {
      const std::int32_t k1 = std::min(k0 + step, shape_.n_k);
      bindings_.set(Variable::kK0, k0);
      bindings_.set(Variable::kK1, k1 - 1);
      if (!holds(classifier_.may)) continue;
      sum += (holds(classifier_.must) ? 1.0 : 0.5) * (k1 - k0) * (q1 - q0);
    }
    return sum;
  }

 private:
  bool holds(const Expr& expr) const { return expr.empty() || evaluate(expr, bindings_).boolean; }

  TileClassifier classifier_;
  LaunchShape shape_;
  std::vector<ParamView> views_;
  Bindings bindings_;
};

Work empty_work(const LaunchShape& shape, std::int32_t unit) {
  Work work{shape.n_h, ceil_div(shape.n_q, unit), {}};
  work.pairs.resize(static_cast<std::size_t>(work.heads) * static_cast<std::size_t>(work.units));
  return work;
}

}  // namespace

CutRules cut_rules(const Program& program) {
  CutRules rules;
  const Attend& attend = attend_of(program);
  rules.unit = attend.tile_q;
  // Of means whole groups of rows that decide together; tiles of them are too many tokens to cut
  // at.
  if (const Means* queries = query_means(program))
    rules.unit = std::min(attend.tile_q, kRowsThatDecide) * queries->tokens;
  rules.reads_tiles = attend.gate.has_value() || std::ranges::any_of(program.params, has_q_tiles);
  for (const Node& node : program.nodes) {
    if (std::holds_alternative<Input>(node.op) || std::holds_alternative<Attend>(node.op)) continue;
    rules.reads_tiles = rules.reads_all_keys = true;
    if (const auto* select = std::get_if<Select>(&node.op)) {
      rules.unit = std::lcm(rules.unit, select->tile_q);
      rules.whole_kv_heads |= select->shared_heads;
    } else if (const auto* smooth = std::get_if<Smooth>(&node.op);
               smooth != nullptr && averages_queries(program, *smooth)) {
      rules.no_query_cut = "predictor.smooth takes the mean over all queries of a head";
    } else if (const auto* estimate = std::get_if<Estimate>(&node.op);
               estimate != nullptr && estimate->rows.kind == SummaryKind::kLast) {
      rules.no_query_cut = "predictor.estimate.q reads the last queries of a head for all others";
    }
  }
  return rules;
}

CutRules both(const CutRules& first, const CutRules& second) {
  CutRules rules = first;
  rules.unit = std::lcm(first.unit, second.unit);
  rules.reads_tiles |= second.reads_tiles;
  rules.reads_all_keys |= second.reads_all_keys;
  rules.whole_kv_heads |= second.whole_kv_heads;
  if (rules.no_query_cut.empty()) rules.no_query_cut = second.no_query_cut;
  return rules;
}

namespace {

/// Of one attend.
Work work_of_attend(const VariantSpec& spec, const LaunchShape& shape, std::int32_t unit) {
  MaskGrid grid(spec, shape);
  Work work = empty_work(shape, unit);
  const std::int32_t units_of_cell = std::max(1, ceil_div(work.units, kMostCells));
  const std::int32_t heads = grid.reads_head() ? shape.n_h : std::min(shape.n_h, 1);
  for (std::int32_t h = 0; h < heads; ++h) {
    for (std::int32_t first = 0; first < work.units; first += units_of_cell) {
      const std::int32_t last = std::min(first + units_of_cell, work.units);
      const double pairs = grid.pairs(h, first * unit, std::min(last * unit, shape.n_q));
      for (std::int32_t u = first; u < last; ++u)
        work.pairs[work.index(h, u)] = pairs / (last - first);
    }
  }
  work.pairs_of_unit = kKeysOfTile * unit;
  for (std::int32_t first = 0; first < work.units && grid.hides_by_tokens();
       first += units_of_cell) {
    const std::int32_t last = std::min(first + units_of_cell, work.units);
    const Range keys = grid.seen(first * unit, std::min(last * unit, shape.n_q));
    work.seen.insert(work.seen.end(), static_cast<std::size_t>(last - first), keys);
  }
  for (std::int32_t h = heads; h < shape.n_h; ++h) {
    std::copy_n(work.pairs.begin(), work.units,
                work.pairs.begin() + std::ptrdiff_t{h} * work.units);
  }
  return work;
}

}  // namespace

Work work_of_mask(const SpecDocument& document, const LaunchShape& shape, std::int32_t unit) {
  if (document.spec.branches.empty()) return work_of_attend(document.spec, shape, unit);
  Work sum = empty_work(shape, unit);
  for (const SpecDocument& branch : branch_documents(document)) {
    const Work own = work_of_attend(branch.spec, shape, unit);
    for (std::size_t n = 0; n < sum.pairs.size(); ++n)
      sum.pairs[n] += own.pairs[n] / branch.spec.branch.means / branch.spec.branch.query_means;
    sum.pairs_of_unit += own.pairs_of_unit;
  }
  return sum;
}

Work work_of_sequences(const SpecDocument& document, const LaunchShape& shape, std::int32_t count,
                       std::int32_t unit) {
  Work work = work_of_mask(document, shape, unit);
  for (double& pairs : work.pairs) pairs /= count;
  work.seen.clear();  // a sequence's keys are not those that the mask shows of all tokens
  return work;
}

Work work_of_tiles(std::span<const float> tiles, const Program& program, const LaunchShape& shape,
                   std::int32_t unit) {
  const Attend& attend = attend_of(program);
  const std::int32_t tiles_of_head = ceil_div(shape.n_q, attend.tile_q);
  const double pairs_of_tile = static_cast<double>(attend.tile_q) * attend.tile_k;
  Work work = empty_work(shape, unit);
  for (std::int32_t h = 0; h < shape.n_h; ++h) {
    for (std::int32_t i = 0; i < tiles_of_head; ++i) {
      const std::int32_t u = i * attend.tile_q / unit;
      const auto at = static_cast<std::size_t>(h) * static_cast<std::size_t>(tiles_of_head) +
                      static_cast<std::size_t>(i);
      work.pairs[work.index(h, u)] += static_cast<double>(tiles[at]) * pairs_of_tile;
    }
  }
  return work;
}

}  // namespace lacuna::group

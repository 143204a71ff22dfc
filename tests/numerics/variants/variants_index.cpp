// Variants whose estimates compare vectors of their own, and Twilight, whose second step trims what
// the first one kept.
#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

using oracle::Compared;
using oracle::TileFacts;

/// Random numbers, passed as a parameter.
std::vector<double> random_param(Variant& v, const char* name, std::vector<std::int64_t> shape,
                                 Random& random, double low, double high) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  std::vector<double> values;
  for (std::size_t n = 0; n < count; ++n) values.push_back(as_f32(uniform(random, low, high)));
  v.params.push_back({name, false, values, std::move(shape)});
  return values;
}

std::vector<double> rounded(const Variant& v, std::vector<double> values) {
  for (double& value : values) value = round_to(v.dtype, value);
  return values;
}

/// A predictor whose rows are tokens, or every `stride`-th; its index is passed as parameters.
/// Where all weights of a row are negative, most of its keys share the largest score, 0.
oracle::Predictor& indexed(Variant& v, int tile_q, int tile_k, int heads, int dim, int stride,
                           Random& random, double least_weight = -0.5) {
  const oracle::Problem& p = v.problem;
  oracle::Predictor& predictor = v.predictor.emplace();
  predictor.tile_q = tile_q, predictor.tile_k = tile_k;
  oracle::EstimateRule& rule = predictor.estimate.emplace();
  rule.rows = stride == 1 ? Compared::kTokens : Compared::kStride, rule.count = stride;
  rule.columns = Compared::kTokens, rule.bits = 16;
  oracle::IndexVectors& index = rule.index;
  index.heads = heads, index.dim = dim;
  index.q = rounded(v, random_param(v, "index_q", {p.n_b, heads, p.n_q, dim}, random, -0.5, 0.5));
  index.k = rounded(v, random_param(v, "index_k", {p.n_b, p.n_k, dim}, random, -0.5, 0.5));
  index.weight = random_param(v, "index_weight", {p.n_b, heads, p.n_q}, random, least_weight, 1.5);
  return predictor;
}

void make_deepseek_indexer(Variant& v, Random& random) {
  make_causal(v);
  oracle::Predictor& p = indexed(v, 32, 1, 4, 64, 1, random);
  const int keys = 31 + static_cast<int>(uniform(random, 0, 60));
  v.params.push_back({"keys", true, {static_cast<double>(keys)}, {}});
  p.estimate->norm = oracle::Norm::kNone;
  p.keep = [=](const TileFacts& t) { return t.rank < keys; };
  v.tiling.tile_k = 1;
}

/// Tiles by the sums of their probabilities; an odd number of heads and the shortest vectors.
constexpr const char* kIndexTiles = R"json({
  "version": 1, "name": "index-tiles",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"index_q": {"shape": "[batch, 3, n_q, 32]"}, "index_k": {"shape": "[batch, n_k, 32]"},
             "index_weight": {"shape": "[batch, 3, n_q]"}, "tau": {"shape": "[heads]", "range": [0, 1]}},
  "predictor": {"tile": {"q": 128, "k": 64},
    "estimate": {"index": {"heads": 3, "dim": 32, "q": "index_q[index_h, q, index_d]",
                           "k": "index_k[k, index_d]", "weight": "index_weight[index_h, q]"},
                 "reduce": "sum", "temperature": 2},
    "keep": "mass_before < tau or k1 >= q0 + n_k - n_q"}
})json";

void make_index_tiles(Variant& v, Random& random) {
  make_causal(v);
  oracle::Predictor& p = indexed(v, 128, 64, 3, 32, 1, random);
  const auto tau = head_param(v, "tau", random, 0.2, 0.9);
  const int shift = v.problem.n_k - v.problem.n_q;
  p.estimate->reduction = oracle::Reduction::kSum, p.estimate->temperature = 2;
  p.keep = [=](const TileFacts& t) {
    return t.mass_before < tau[static_cast<std::size_t>(t.tile.h)] ||
           t.tile.k1 >= t.tile.q0 + shift;
  };
}

/// Every 8th query, relative to the row's largest score; weights of a formula that knows the head.
constexpr const char* kIndexRows = R"json({
  "version": 1, "name": "index-rows",
  "params": {"index_q": {"shape": "[batch, 2, n_q, 96]"}, "index_k": {"shape": "[batch, n_k, 96]"},
             "index_weight": {"shape": "[batch, 2, n_q]"}, "alpha": {"shape": "[heads]", "range": [0, 1]}},
  "predictor": {"tile": {"q": 64, "k": 32},
    "estimate": {"q": "stride(8)", "normalise": "row_max",
                 "index": {"heads": 2, "dim": 96, "q": "index_q[index_h, q, index_d]",
                           "k": "index_k[k, index_d]", "weight": "0.5 * index_weight[index_h, q]"}},
    "keep": "p > alpha"}
})json";

void make_index_rows(Variant& v, Random& random) {
  oracle::Predictor& p = indexed(v, 64, 32, 2, 96, 8, random);
  for (double& weight : p.estimate->index.weight) weight *= 0.5;
  const auto alpha = head_param(v, "alpha", random, 0.8, 0.97);
  p.uses_rank = false;
  p.estimate->norm = oracle::Norm::kRowMax;
  p.keep = [=](const TileFacts& t) { return t.p > alpha[static_cast<std::size_t>(t.tile.h)]; };
}

/// Latent rows, 32 heads of a token one behind the other, which decide together by an index of the
/// token; V is a part of K.
constexpr const char* kLatentIndex = R"json({
  "version": 1, "name": "latent-index",
  "attention": {"mask": "k <= q // 32 + n_k - 1 - (n_q - 1) // 32", "v": "k"},
  "params": {"index_q": {"shape": "[batch, 2, n_q, 64]"}, "index_k": {"shape": "[batch, n_k, 64]"},
             "index_weight": {"shape": "[batch, 2, n_q]"},
             "keys": {"type": "i32", "range": [0, "inf"]}},
  "predictor": {"tile": {"q": 32, "k": 1},
    "estimate": {"q": "stride(32)", "normalise": "none",
                 "index": {"heads": 2, "dim": 64, "q": "index_q[index_h, q // 32, index_d]",
                           "k": "index_k[k, index_d]", "weight": "index_weight[index_h, q // 32]"}},
    "keep": "rank < keys"},
  "loader": "gather"
})json";

/// What a formula `x[h, q // rows]` reads, for each h and q; `width` numbers each.
std::vector<double> of_tokens(const std::vector<double>& x, int n_q, int rows, std::size_t width) {
  std::vector<double> read;
  for (std::size_t at = 0; at < x.size(); at += static_cast<std::size_t>(n_q) * width)
    for (int q = 0; q < n_q; ++q)
      for (std::size_t n = 0; n < width; ++n)
        read.push_back(x[at + static_cast<std::size_t>(q / rows) * width + n]);
  return read;
}

void make_latent_index(Variant& v, Random& random) {
  constexpr int kRows = 32;
  make_v_of_k(v);
  const int n_q = v.problem.n_q, shift = v.problem.n_k - 1 - (n_q - 1) / kRows;
  v.problem.mask = [=](int q, int k, int, int) { return k <= q / kRows + shift; };
  // There are few rows, so none may be decided by such ties.
  oracle::Predictor& p = indexed(v, kRows, 1, 2, 64, kRows, random, 0.0);
  oracle::IndexVectors& index = p.estimate->index;
  index.q = of_tokens(index.q, n_q, kRows, 64);
  index.weight = of_tokens(index.weight, n_q, kRows, 1);
  const int keys = 31 + static_cast<int>(uniform(random, 0, 60));
  v.params.push_back({"keys", true, {static_cast<double>(keys)}, {}});
  p.estimate->norm = oracle::Norm::kNone;
  p.keep = [=](const TileFacts& t) { return t.rank < keys; };
  v.tiling.tile_k = 1;
}

/// A budget of pages by their bounds; within it the mass of tokens in 4 bits.
void make_twilight(Variant& v, Random& random) {
  make_causal(v);
  const auto pages = head_count(v, "pages", random, 2, 16);
  const auto tau = head_param(v, "tau", random, 0.5, 0.95);
  const int shift = v.problem.n_k - v.problem.n_q;
  oracle::Predictor first;
  first.tile_q = 64, first.tile_k = 16;
  first.estimate.emplace().columns = Compared::kBounds;
  first.estimate->norm = oracle::Norm::kNone;
  first.keep = [=](const TileFacts& t) {
    return t.rank < pages[static_cast<std::size_t>(t.tile.h)] || t.tile.k1 >= t.tile.q0 + shift;
  };
  oracle::Predictor& p = v.predictor.emplace(first);
  p.before = {first};
  p.estimate->rows = p.estimate->columns = Compared::kTokens;
  p.estimate->bits = 4, p.estimate->group = oracle::Group::kWarp;
  p.estimate->norm = oracle::Norm::kSoftmax;
  p.estimate->reduction = oracle::Reduction::kSum;
  p.keep = [=](const TileFacts& t) {
    return t.mass_before < tau[static_cast<std::size_t>(t.tile.h)] ||
           t.tile.k1 >= t.tile.q0 + shift;
  };
  v.tiling.tile_k = 16;
}

}  // namespace

std::string index_spec(const std::string& name) {
  if (name == "index-tiles") return kIndexTiles;
  if (name == "latent-index") return kLatentIndex;
  return name == "index-rows" ? kIndexRows : "";
}

bool make_index_variant(const std::string& name, Variant& v, KernelTile, Random& random) {
  if (name == "deepseek-indexer") return make_deepseek_indexer(v, random), true;
  if (name == "index-tiles") return make_index_tiles(v, random), true;
  if (name == "index-rows") return make_index_rows(v, random), true;
  if (name == "latent-index") return make_latent_index(v, random), true;
  if (name == "twilight") return make_twilight(v, random), true;
  return false;
}

}  // namespace lacuna::numerics

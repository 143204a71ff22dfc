// Masks of which the bounds of a tile do not tell whether it has a visible pair: those that read a
// tensor for each pair of tokens, or for tokens in no order, and those that compare remainders. For
// them the pairs of a tile are asked (Attend::pairs, Select::pairs).
#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

constexpr const char* kDocuments = R"({"version": 1, "name": "documents",
  "attention": {"mask": "k <= q + n_k - n_q and of_query[q] == of_key[k]"},
  "params": {"of_query": {"type": "i32", "shape": "[n_q]", "doc": "document of a query"},
             "of_key": {"type": "i32", "shape": "[n_k]", "doc": "document of a key"}}})";

constexpr const char* kPairMask = R"({"version": 1, "name": "pair-mask",
  "attention": {"mask": "k < first or seen[q, k] != 0"},
  "params": {"first": {"type": "i32", "shape": "[batch]", "doc": "keys that all see"},
             "seen": {"type": "i32", "shape": "[batch, heads, n_q, n_k]", "doc": "who sees whom"}},
  "tile": {"order": "descending"}})";

constexpr const char* kPairGate = R"({"version": 1, "name": "pair-gate",
  "attention": {"mask": "seen[q, k // 32] >> k % 32 & 1 == 1"},
  "params": {"seen": {"type": "i32", "shape": "[heads, n_q, 32]", "doc": "a bit for each key"},
             "least": {"shape": "[heads]", "unit": "logits", "doc": "of a tile's largest"}},
  "gate": {"scope": "tile", "skip": "tile_max < least", "skips": ["v_load", "exp", "pv"]},
  "tile": {"q": 128, "k": 64}})";

constexpr const char* kPairLists = R"({"version": 1, "name": "pair-lists",
  "attention": {"mask": "of_query[q] == of_key[k]"},
  "params": {"of_query": {"type": "i32", "shape": "[n_q]", "doc": "document of a query"},
             "of_key": {"type": "i32", "shape": "[n_k]", "doc": "document of a key"},
             "window": {"type": "i32", "shape": "[heads]", "doc": "keys before a tile"}},
  "predictor": {"tile": {"q": 128, "k": 128}, "keep": "j == 0 or q0 - k1 < window"},
  "tile": {"k": 64}})";

constexpr const char* kNeighbourTiles = R"({"version": 1, "name": "neighbour-tiles",
  "attention": {"mask": "abs(q % width - k % width) <= reach"},
  "params": {"width": {"type": "i32", "shape": "scalar", "doc": "tokens of a row of an image"},
             "reach": {"type": "i32", "shape": "[heads]", "doc": "columns to the side"},
             "ratio": {"shape": "[heads]", "doc": "of the visible tiles"}},
  "predictor": {"tile": {"q": 128, "k": 128}, "estimate": {"q": "mean", "k": "mean"},
                "keep": "rank < ratio * visible"},
  "tile": {"k": 64}})";

/// Runs of tokens of one document, which come in no order.
std::vector<double> documents(int tokens, Random& random) {
  std::vector<double> of;
  while (static_cast<int>(of.size()) < tokens) {
    const double document = std::floor(uniform(random, -2, 3));
    const int length = static_cast<int>(uniform(random, 1, 160));
    for (int n = 0; n < length && static_cast<int>(of.size()) < tokens; ++n) of.push_back(document);
  }
  return of;
}

struct Documents {
  std::vector<double> query, key;
  bool same(int q, int k) const {
    return query[static_cast<std::size_t>(q)] == key[static_cast<std::size_t>(k)];
  }
};

Documents pass_documents(Variant& v, Random& random) {
  const oracle::Problem& p = v.problem;
  const Documents of = {documents(p.n_q, random), documents(p.n_k, random)};
  v.params.push_back({"of_query", true, of.query, {p.n_q}});
  v.params.push_back({"of_key", true, of.key, {p.n_k}});
  return of;
}

void make_documents(Variant& v, Random& random) {
  const Documents of = pass_documents(v, random);
  const int shift = v.problem.n_k - v.problem.n_q;
  v.problem.mask = [=](int q, int k, int, int) { return k <= q + shift && of.same(q, k); };
}

/// Pairs of blocks of 96 queries and 80 keys, which are no tiles: nobody sees anybody, all see all,
/// or a few of them.
std::vector<bool> blocks_of_pairs(int rows, int keys, int heads, Random& random) {
  std::vector<bool> seen(static_cast<std::size_t>(heads) * static_cast<std::size_t>(rows) *
                         static_cast<std::size_t>(keys));
  const int q_blocks = rows / 96 + 1, k_blocks = keys / 80 + 1;
  std::vector<int> kinds;
  for (int n = 0; n < heads * q_blocks * k_blocks; ++n)
    kinds.push_back(static_cast<int>(uniform(random, 0, 4)));
  for (std::size_t x = 0; x < seen.size(); ++x) {
    const int k = static_cast<int>(x) % keys, row = static_cast<int>(x) / keys;
    const int head = row / rows, q = row % rows;
    const int kind =
        kinds[static_cast<std::size_t>((head * q_blocks + q / 96) * k_blocks + k / 80)];
    seen[x] = kind == 1 || (kind == 2 && (q * 7 + k) % 61 == 0);
  }
  return seen;
}

void make_pair_mask(Variant& v, Random& random) {
  const oracle::Problem& p = v.problem;
  std::vector<double> first, values;
  for (int b = 0; b < p.n_b; ++b) first.push_back(std::floor(uniform(random, 0, 2)));
  const std::vector<bool> seen = blocks_of_pairs(p.n_q, p.n_k, p.n_b * p.n_h, random);
  for (const bool pair : seen) values.push_back(pair ? 3 : 0);
  v.params = {{"first", true, first, {p.n_b}},
              {"seen", true, values, {p.n_b, p.n_h, p.n_q, p.n_k}}};
  const int n_h = p.n_h, n_q = p.n_q, n_k = p.n_k;
  v.problem.mask = [=](int q, int k, int h, int b) {
    return k < first[static_cast<std::size_t>(b)] ||
           seen[static_cast<std::size_t>(((b * n_h + h) * n_q + q) * n_k + k)];
  };
  v.tiling.descending = true;
}

void make_pair_gate(Variant& v, Random& random) {
  constexpr int kWords = 32;  // for the 900 keys of the longest launch
  const oracle::Problem& p = v.problem;
  const int n_h = p.n_h, n_q = p.n_q, bits = 32 * kWords;
  const std::vector<bool> seen = blocks_of_pairs(n_q, bits, n_h, random);
  std::vector<double> words;
  for (std::size_t x = 0; x < seen.size(); x += 32) {
    std::uint32_t word = 0;
    for (std::size_t bit = 0; bit < 32; ++bit) word |= std::uint32_t{seen[x + bit]} << bit;
    words.push_back(static_cast<std::int32_t>(word));
  }
  v.params = {{"seen", true, words, {n_h, n_q, kWords}}};
  const auto least = head_param(v, "least", random, 0.5, 3);
  v.gate = tile_max_gate(
      [=](const oracle::TileIndex& t) { return least[static_cast<std::size_t>(t.h)]; }, {});
  v.gate->skips_exp = true;
  v.problem.mask = [=](int q, int k, int h, int) {
    return k < bits && seen[static_cast<std::size_t>((h * n_q + q) * bits + k)];
  };
}

void make_pair_lists(Variant& v, Random& random) {
  const Documents of = pass_documents(v, random);
  v.problem.mask = [=](int q, int k, int, int) { return of.same(q, k); };
  keep_window_of_tiles(v, random);
}

/// Rows of an image that are longer than a tile, and columns close to each other: tiles in between
/// have no visible pair, and are none of those that are counted and ranked.
void make_neighbour_tiles(Variant& v, Random& random) {
  const int width = 260 + static_cast<int>(uniform(random, 0, 200));
  v.params.push_back({"width", true, {static_cast<double>(width)}, {}});
  const auto reach = head_count(v, "reach", random, 0, 30);
  const auto ratio = head_param(v, "ratio", random, 0.2, 0.9);
  v.problem.mask = [=](int q, int k, int h, int) {
    return std::abs(q % width - k % width) <= static_cast<int>(reach[static_cast<std::size_t>(h)]);
  };
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = v.predictor->tile_k = 128;
  v.predictor->estimate = oracle::EstimateRule{};
  v.predictor->keep = [=](const oracle::TileFacts& t) {
    return t.rank < ratio[static_cast<std::size_t>(t.tile.h)] * t.visible;
  };
}

}  // namespace

std::string pair_spec(const std::string& name) {
  if (name == "documents") return kDocuments;
  if (name == "pair-mask") return kPairMask;
  if (name == "pair-gate") return kPairGate;
  if (name == "pair-lists") return kPairLists;
  if (name == "neighbour-tiles") return kNeighbourTiles;
  return "";
}

bool make_pairs_variant(const std::string& name, Variant& v, Random& random) {
  if (name == "documents") return make_documents(v, random), true;
  if (name == "pair-mask") return make_pair_mask(v, random), true;
  if (name == "pair-gate") return make_pair_gate(v, random), true;
  if (name == "pair-lists") return make_pair_lists(v, random), true;
  if (name == "neighbour-tiles") return make_neighbour_tiles(v, random), true;
  return false;
}

}  // namespace lacuna::numerics

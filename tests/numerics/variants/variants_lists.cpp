// Lists whose rows have 64 queries: those of one warpgroup where wgmma multiplies, so that a block
// takes two of them together.
#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

struct NarrowList {
  const char* name;
  const char* tile_k;
  bool causal, descending;
  const char* gate;  ///< its scope and what it skips; "": none
  const char* quantise;
  int split_kv = 1;
};

constexpr NarrowList kNarrowLists[] = {
    {"lists-64x64", "64", true, false, "", ""},
    {"lists-64x64-descending", "64", true, true, "", ""},
    {"lists-64x128", "[128, 64]", false, false, "", ""},
    {"lists-64x32", "32", true, false, "", ""},
    {"lists-64x64-warp-gate", "64", true, false,
     R"("scope": "warp", "skip": "gap < lambda", "skips": ["pv"])", ""},
    {"lists-64x128-tile-gate", "[128, 64]", true, true,
     R"("scope": "tile", "skip": "gap < lambda", "skips": ["exp", "pv"])", ""},
    {"int8-lists-64x32", "32", true, false, "", R"("qk": {"bits": 8, "group": "block"})"},
    {"int8-lists-64x64", "64", false, false, "", R"("qk": {"bits": 8, "group": "warp"})"},
    {"int8-lists-64x64-gate", "64", true, false,
     R"("scope": "warp", "skip": "gap < lambda", "skips": ["pv"])",
     R"("qk": {"bits": 8, "group": "thread"})"},
    {"int8-lists-64x64-e4m3", "64", true, true, "",
     R"("qk": {"bits": 8, "group": "block"}, "v": {"bits": 8})"},
    {"int8-lists-64x64-e4m3-unmasked", "64", false, false, "",
     R"("qk": {"bits": 8, "group": "block"}, "v": {"bits": 8})"},
    {"lists-64x64-split", "64", true, false, "", "", 2},
    {"lists-64x32-split", "32", false, true, "", "", 7},
    {"int8-lists-64x64-split", "64", true, false, "", R"("qk": {"bits": 8, "group": "block"})", 3},
};

const NarrowList* find(const std::string& name) {
  for (const NarrowList& list : kNarrowLists)
    if (name == list.name) return &list;
  return nullptr;
}

void quantise(const std::string& text, oracle::Quantisation& q) {
  if (text.empty()) return;
  q.qk_bits = 8;
  q.v_bits = text.find("\"v\"") != std::string::npos ? 8 : 16;
  const auto says = [&](const char* group) { return text.find(group) != std::string::npos; };
  q.group = says("thread") ? oracle::Group::kThread
            : says("warp") ? oracle::Group::kWarp
                           : oracle::Group::kBlock;
}

void gate(const NarrowList& list, Variant& v, Random& random) {
  const std::string text = list.gate;
  if (text.empty()) return;
  const double limit = as_f32(uniform(random, -3, -0.5));
  v.params = {{"lambda", false, {limit}, {}}};
  v.gate = gap_gate([limit](const oracle::TileIndex&) { return limit; }, {});
  if (text.find("warp") != std::string::npos) v.gate->scope = oracle::Scope::kWarp;
  v.gate->skips_exp = text.find("exp") != std::string::npos;
}

}  // namespace

const std::vector<std::string>& narrow_list_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const NarrowList& list : kNarrowLists) all.emplace_back(list.name);
    return all;
  }();
  return names;
}

std::string narrow_list_spec(const std::string& name) {
  const NarrowList* list = find(name);
  if (list == nullptr) return "";
  std::string text = R"({"version": 1, "name": ")" + name + R"(", "mask": "external")";
  if (list->causal) text += R"(, "attention": {"mask": "k <= q + n_k - n_q"})";
  if (*list->gate != '\0') {
    text += R"(, "params": {"lambda": {"range": [-50, 0], "doc": "skip what trails by more"}})";
    text += R"(, "gate": {)" + std::string(list->gate) + "}";
  }
  if (*list->quantise != '\0') text += R"(, "quantise": {)" + std::string(list->quantise) + "}";
  text += R"(, "tile": {"q": 64, "k": )" + std::string(list->tile_k);
  if (list->descending) text += R"(, "order": "descending")";
  if (list->split_kv > 1) text += R"(, "split_kv": )" + std::to_string(list->split_kv);
  return text + "}}";
}

/// Rows of every density, some empty: alone, or with their neighbour.
bool make_narrow_list_variant(const std::string& name, Variant& v, KernelTile tile,
                              Random& random) {
  const NarrowList* list = find(name);
  if (list == nullptr) return false;
  if (list->causal) make_causal(v);
  v.tiling.descending = list->descending;
  quantise(list->quantise, v.quantisation);
  gate(*list, v, random);
  const oracle::Problem& p = v.problem;
  const int q_tiles = (p.n_q + tile.q - 1) / tile.q, k_tiles = (p.n_k + tile.k - 1) / tile.k;
  for (int row = 0; row < p.n_b * p.n_h * q_tiles; ++row) {
    const double density = uniform(random, -0.3, 1.2);
    for (int j = 0; j < k_tiles; ++j)
      v.tiling.listed.push_back(uniform(random, 0, 1) < density ? 1 : 0);
  }
  return true;
}

}  // namespace lacuna::numerics

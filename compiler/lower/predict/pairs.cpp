// The kernel that Attend::pairs asks for. It evaluates the mask of a tile's pairs and writes two
// bits for the tile: whether some pair is visible, and whether all are.
#include "compiler/expr/text/parse.hpp"
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/lower.hpp"
#include "templates/shared/select_block.cuh"

namespace lacuna {
namespace {

constexpr int kWordTiles = 32;

/// Rows of tiles are of one mask each.
std::string masks_of(const Expr& mask) {
  const bool by_batch = uses(mask, Variable::kB), by_head = uses(mask, Variable::kH);
  return by_batch ? (by_head ? "n_b * n_h" : "n_b") : (by_head ? "n_h" : "1");
}

}  // namespace

void add_pair_fields(const Attend& attend, std::vector<ConfigField>& fields) {
  if (!attend.pairs) return;
  constexpr const char* kMask = "/attention/mask";
  fields.push_back(boolean("kAsksPairs", true, kMask));
  fields.push_back(boolean("kPairsVaryByBatch", uses(attend.mask, Variable::kB), kMask));
  fields.push_back(boolean("kPairsVaryByHead", uses(attend.mask, Variable::kH), kMask));
}

void add_pair_fields(const Attend& attend, const Select& select, std::vector<ConfigField>& fields) {
  if (!select.pairs) return;
  fields.push_back(boolean("kAsksCells", true, "/attention/mask"));
  if (!attend.pairs) return;
  add_pair_fields(attend, fields);
  fields.push_back(integer("kClassQ", attend.tile_q, "/tile/q"));
  fields.push_back(integer("kClassK", attend.tile_k, "/tile/k"));
}

Kernels lower_pairs(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  if (!attend.pairs) return {};
  const std::string masks = masks_of(attend.mask), q_tiles = tiles_of(Tensor::kQ, attend.tile_q);
  const std::string words = tiles_of(Tensor::kK, kWordTiles * attend.tile_k);
  std::vector<ConfigField> config = {integer("kTileQ", attend.tile_q, "/tile/q"),
                                     integer("kTileK", attend.tile_k, "/tile/k")};
  add_pair_fields(attend, config);
  return {
      {.name = "pairs",
       .because = "the bounds of a tile do not say what its mask hides",
       .header = "select/pairs.cuh",
       .function = "classify_pairs",
       .config = std::move(config),
       .grid = {masks + " * (" + q_tiles + ") * (" + words + ")",
                "one for each " + std::to_string(kWordTiles) + " tiles of a row"},
       .threads = block_threads(),
       .smem_bytes = {pair_smem_bytes(kBlockThreads), Origin::kDerived, "two words for each warp"},
       .slots = {
           {"tile_classes", units(masks, "(" + q_tiles + ") * (" + words + ") * 2", kWordBytes)}}}};
}

}  // namespace lacuna

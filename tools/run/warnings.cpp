#include "tools/run/warnings.hpp"

#include <algorithm>
#include <cmath>

#include "compiler/expr/bounds/open_reads.hpp"
#include "runtime/launch/param_promises.hpp"
#include "tools/run/mask_classes.hpp"

namespace lacuna::tools {
namespace {

/// Does every visited tile lie wholly in what the mask leaves visible?
bool is_true_everywhere(const SpecDocument& document, const Inputs& inputs,
                        const RunResult& result) {
  MaskClasses classes(document, inputs, result.tile_q, result.tile_k);
  const auto& shape = result.tile_mask.shape;
  const auto extent = [&](std::size_t d) { return static_cast<std::int32_t>(shape[d]); };
  for (std::int32_t b = 0; b < extent(0); ++b)
    for (std::int32_t h = 0; h < extent(1); ++h)
      for (std::int32_t i = 0; i < extent(2); ++i)
        for (std::int32_t j = 0; j < extent(3); ++j)
          if (classes.look(b, h, i, j, 1) != TileLook::kFull) return false;
  return true;
}

std::string mask_warning(const SpecDocument& document, const Inputs& inputs,
                         const RunResult& result) {
  const TileCounts& tiles = result.tiles;
  const auto all = static_cast<std::int64_t>(result.tile_mask.bytes.size());
  if (document.spec.attention.mask.empty() || all == 0) return "";
  if (tiles.visible == 0) return "attention.mask hides every key of every query: o is 0";
  if (tiles.visible < all) return "";
  if (is_true_everywhere(document, inputs, result)) return "attention.mask is true everywhere";
  // Of these `visible` counts what bounds leave, and a tile without a visible pair is not visited.
  const Expr& mask = document.spec.attention.mask;
  if (!open_reads(mask).empty() || !loose_part(mask).empty()) return "";
  return "attention.mask leaves no tile out: it hides keys within tiles alone";
}

/// Rows of [batch, heads, n_q, d] whose elements are all 0.
std::vector<bool> zero_rows(const Array& array) {
  const std::vector<float> values = to_f32(array);
  const auto width = static_cast<std::size_t>(array.shape.back());
  std::vector<bool> rows;
  for (std::size_t at = 0; width > 0 && at < values.size(); at += width)
    rows.push_back(std::all_of(values.begin() + static_cast<std::ptrdiff_t>(at),
                               values.begin() + static_cast<std::ptrdiff_t>(at + width),
                               [](float x) { return x == 0; }));
  return rows;
}

/// "3 of 512 queries see no key, and o of them is 0: attention.mask hides all keys from them".
/// `by_mask`: what the mask hides; `by_score`: what else may be, where a formula makes the weights.
std::string row_warning(const VariantSpec& spec, std::int64_t count, std::size_t rows,
                        const std::string& by_mask, const std::string& by_score) {
  if (count == 0) return "";
  const bool is_one = count == 1;
  const std::string of_all = std::to_string(count) + " of " + std::to_string(rows) + " queries";
  const std::string from_them = is_one ? " from it" : " from them";
  if (spec.attention.score.empty())
    return of_all + (is_one ? " sees" : " see") + " no key, and o of " + (is_one ? "it" : "them") +
           " is 0: " + by_mask + from_them;
  return "o of " + of_all +
         " is 0: " + (spec.attention.mask.empty() ? "" : by_mask + from_them + ", or ") + by_score;
}

/// Queries that attend to nothing, though others do: the mask hides all from them, or what is left
/// of their tiles has nothing for them.
std::vector<std::string> row_warnings(const VariantSpec& spec, const Inputs& inputs,
                                      const RunResult& result) {
  if (!result.branches.empty() || result.tiles.visited == 0) return {};
  const std::vector<float> v = to_f32(inputs.v);
  if (std::ranges::all_of(v, [](float x) { return x == 0; })) return {};
  const std::vector<bool> rows = zero_rows(result.o), dense = zero_rows(result.dense_o);
  std::int64_t hidden = 0, left_out = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    hidden += rows[row] && dense[row] ? 1 : 0;
    left_out += rows[row] && !dense[row] ? 1 : 0;
  }
  return {row_warning(spec, hidden, rows.size(), "attention.mask hides all keys",
                      "attention.score leaves no key any weight"),
          row_warning(spec, left_out, rows.size(),
                      "what is computed has only keys that attention.mask hides",
                      "attention.score leaves no key that is computed any weight")};
}

/// Of a spec, or of one branch.
std::string keep_warning(const VariantSpec& spec, const TileCounts& tiles) {
  if (!spec.predictor || spec.predictor->only_smooths() || tiles.visible == 0) return "";
  if (tiles.visited == 0) return "predictor.keep holds for no visible tile: o is 0";
  if (tiles.visited < tiles.visible) return "";
  return "predictor.keep holds for every visible tile: nothing is left out";
}

/// Work tiles that visit something: the first tile of each is never gated.
std::int64_t visiting_rows(const Array& tile_mask) {
  const auto tiles = static_cast<std::size_t>(tile_mask.shape.back());
  std::int64_t rows = 0;
  for (std::size_t at = 0; tiles > 0 && at < tile_mask.bytes.size(); at += tiles)
    rows += tile_mask.bytes.find_first_not_of('\0', at) < at + tiles ? 1 : 0;
  return rows;
}

/// Reports count what all rows of a tile gated; warps that gate alone are in no count.
std::string gate_warning(const VariantSpec& spec, const RunResult& result) {
  const TileCounts& tiles = result.tiles;
  if (!spec.gate || spec.gate->scope != GateScope::kTile || tiles.visited == 0) return "";
  if (tiles.gated == 0) return "gate.skip holds for no tile: nothing is gated";
  if (tiles.gated < tiles.visited - visiting_rows(result.tile_mask)) return "";
  return "gate.skip holds for every tile but the first of each row, which is never gated";
}

}  // namespace

std::int64_t count_not_finite(const Array& array) {
  const std::vector<float> values = to_f32(array);
  return std::ranges::count_if(values, [](float x) { return !std::isfinite(x); });
}

std::vector<std::string> warnings_of(const SpecDocument& document, const Inputs& inputs,
                                     const RunResult& result) {
  std::vector<std::string> warnings = {mask_warning(document, inputs, result),
                                       keep_warning(document.spec, result.tiles),
                                       gate_warning(document.spec, result)};
  for (std::size_t n = 0; n < result.branches.size(); ++n) {
    const BranchReport& branch = result.branches[n];
    const std::string text = keep_warning(document.spec.branches[n], branch.tiles);
    if (!text.empty()) warnings.push_back("branch " + branch.name + ": " + text);
  }
  for (std::string& warning : row_warnings(document.spec, inputs, result))
    warnings.push_back(std::move(warning));
  std::erase(warnings, "");
  return warnings;
}

std::string broken_promise(const VariantSpec& spec, const Inputs& inputs) {
  const std::vector<ParamView> views = views_of(spec, inputs);
  for (std::size_t p = 0; p < spec.params.size(); ++p) {
    if (const auto broken = lacuna::broken_promise(spec.params[p], views[p]))
      return spec.params[p].symbol.name + (broken->starts_with("is ") ? " " : ": ") + *broken;
  }
  return "";
}

}  // namespace lacuna::tools

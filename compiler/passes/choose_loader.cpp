#include "compiler/passes/choose_loader.hpp"

#include <string>
#include <vector>

#include "compiler/passes/pass.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {
namespace {

/// Keys of a column: what the gather loader is for where a tile of a loader in order has at
/// least 16.
constexpr int kMostKeysOfColumn = 16;

bool has_8_bits(const QuantiseSpec& quantise) {
  return quantise.qk_bits == 8 || quantise.v_bits == 8;
}

/// Why a loader cannot be used; "" if it can.
std::string objection(Loader loader, const VariantSpec& spec) {
  if (loader == Loader::kCpAsync) {
    if (!spec.predictor || spec.predictor->tile_k % kWarpRows == 0) return "";
    return "cp_async loads tiles of at least 16 neighbouring keys, predictor.tile.k is " +
           std::to_string(spec.predictor->tile_k);
  }
  if (!spec.predictor) return "gather loads the keys that a predictor keeps, and there is none";
  if (spec.predictor->tile_k > kMostKeysOfColumn) {
    return "gather loads columns of 1, 8 or 16 keys, predictor.tile.k is " +
           std::to_string(spec.predictor->tile_k);
  }
  if (has_8_bits(spec.quantise)) return "gather takes 16-bit keys and values";
  if (spec.gate) return "a gate decides about tiles of neighbouring keys";
  if (!spec.tile.order.admits(TileOrder::kAscending)) return "keys are gathered in ascending order";
  if (!spec.tile.split_kv.admits(1)) return "the columns of a row are gathered by one block";
  if (!spec.tile.q.admits(spec.predictor->tile_q))
    return "a gathered work tile has the queries of predictor.tile.q";
  return "";
}

Loader default_loader(const VariantSpec& spec) {
  const bool has_columns = spec.predictor && spec.predictor->tile_k <= kMostKeysOfColumn;
  const bool must_gather = !objection(Loader::kCpAsync, spec).empty();
  return has_columns && (must_gather || objection(Loader::kGather, spec).empty())
             ? Loader::kGather
             : Loader::kCpAsync;
}

}  // namespace

Loader choose_loader(const SpecDocument& document, Diagnostics& diagnostics) {
  const VariantSpec& spec = document.spec;
  std::vector<Loader> candidates = spec.loader.values;
  if (candidates.empty()) candidates.push_back(default_loader(spec));
  for (const Loader loader : candidates) {
    if (objection(loader, spec).empty()) return loader;
  }
  Diagnostic& d = diagnostics.add(at_field(
      document, "/loader", Code::kConflict, Severity::kError,
      "loader: " + std::string(name_of(candidates.front())) + " does not go with the spec"));
  d.notes.push_back(objection(candidates.front(), spec));
  for (const Loader other : {Loader::kCpAsync, Loader::kGather}) {
    if (objection(other, spec).empty()) d.helps.push_back("write " + std::string(name_of(other)));
  }
  return candidates.front();
}

}  // namespace lacuna

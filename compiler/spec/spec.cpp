#include "compiler/spec/spec.hpp"

#include "compiler/expr/fold.hpp"
#include "compiler/spec/enum_names.hpp"

namespace lacuna {

std::vector<ParamSymbol> VariantSpec::param_symbols() const {
  std::vector<ParamSymbol> symbols;
  symbols.reserve(params.size());
  for (const ParamSpec& param : params) symbols.push_back(param.symbol);
  return symbols;
}

VariantSpec without_let(VariantSpec spec) {
  spec.let.clear();
  for (VariantSpec& branch : spec.branches) branch.let.clear();
  return spec;
}

bool PredictorSpec::only_smooths() const {
  return before.empty() && (smooth_q || smooth_k) && is_constant(keep, 1);
}

std::vector<const PredictorSpec*> VariantSpec::steps() const {
  std::vector<const PredictorSpec*> all;
  if (!predictor) return all;
  for (const PredictorSpec& step : predictor->before) all.push_back(&step);
  all.push_back(&*predictor);
  return all;
}

std::string_view name_of(DType dtype) { return kDTypeNames[static_cast<std::size_t>(dtype)]; }
std::string_view name_of(GateScope scope) {
  return kGateScopeNames[static_cast<std::size_t>(scope)];
}
std::string_view name_of(TileOrder order) {
  return kTileOrderNames[static_cast<std::size_t>(order)];
}
std::string_view name_of(QueryPlace place) {
  return kQueryPlaceNames[static_cast<std::size_t>(place)];
}
std::string_view name_of(Loader loader) { return kLoaderNames[static_cast<std::size_t>(loader)]; }
std::string_view name_of(Reduce reduce) { return kReduceNames[static_cast<std::size_t>(reduce)]; }
std::string_view name_of(Weights weights) {
  return kWeightsNames[static_cast<std::size_t>(weights)];
}
std::string_view name_of(ValuesOf values) {
  return kValuesOfNames[static_cast<std::size_t>(values)];
}
std::string_view name_of(LseBase base) { return kLseBaseNames[static_cast<std::size_t>(base)]; }
std::string_view name_of(Normalise normalise) {
  return kNormaliseNames[static_cast<std::size_t>(normalise)];
}
std::string_view name_of(QuantGroup group) {
  return kQuantGroupNames[static_cast<std::size_t>(group)];
}
std::string_view name_of(SimilarityForm form) {
  return kSimilarityNames[static_cast<std::size_t>(form)];
}
std::string_view name_of(TokenOrder order) {
  return kTokenOrderNames[static_cast<std::size_t>(order)];
}
std::string_view name_of(Calibrate procedure) {
  return kCalibrateNames[static_cast<std::size_t>(procedure)];
}

int size_bytes(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

}  // namespace lacuna

#include "compiler/spec/spec.hpp"

#include "compiler/expr/expr_tables.hpp"
#include "compiler/spec/fields.hpp"

namespace lacuna {

std::vector<ParamSymbol> Spec::param_symbols() const {
  std::vector<ParamSymbol> symbols;
  symbols.reserve(params.size());
  for (const ParamSpec& param : params) symbols.push_back(param.symbol);
  return symbols;
}

std::string_view name_of(DType dtype) { return kDTypeNames[static_cast<std::size_t>(dtype)]; }
std::string_view name_of(GateScope scope) {
  return kGateScopeNames[static_cast<std::size_t>(scope)];
}
std::string_view name_of(TileOrder order) {
  return kTileOrderNames[static_cast<std::size_t>(order)];
}
std::string_view name_of(Loader loader) { return kLoaderNames[static_cast<std::size_t>(loader)]; }
std::string_view name_of(ParamDim dim) { return info(dim).name; }

int size_bytes(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

}  // namespace lacuna

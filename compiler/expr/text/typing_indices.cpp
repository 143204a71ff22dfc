// A parameter with its indices: those that are written, and those that the site supplies.
#include <algorithm>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/typing.hpp"

namespace lacuna {

/// The first `count` dimensions have no index: the site has to supply one for each.
bool Typing::check_missing_indices(const ParamSymbol& symbol, std::size_t count,
                                   std::uint32_t begin, std::uint32_t end) {
  const auto is_supplied = [&](const ParamDim& dim) {
    const auto& index = info(dim.axis).index;
    return index && offers(site_, *index);
  };
  const auto first = std::find_if_not(symbol.shape.begin(),
                                      symbol.shape.begin() + std::ptrdiff_t(count), is_supplied);
  if (first == symbol.shape.begin() + std::ptrdiff_t(count)) return true;
  const DimInfo& dim = info(first->axis);
  ExprError& error = report(Code::kExprIndex, begin, end,
                            quoted(symbol.name) + " has the shape " + print_shape(symbol) +
                                ": no index for " + name_of(*first));
  if (dim.index) {
    error.notes.push_back(std::string(dim.name) + " is indexed by the " + std::string(dim.doc) +
                          " " + std::string(info(*dim.index).name) + ", which " +
                          std::string(info(site_).name) + " does not have");
    error.helps.emplace_back("write the index in brackets, or drop the dimension");
    return false;
  }
  error.notes.emplace_back(dim.axis == ParamAxis::kFixed
                               ? "dimensions of a fixed extent are written out"
                               : "token dimensions are written out");
  std::string written;  // an index that the site has, for each dimension from the first on
  for (auto at = first; at != symbol.shape.end(); ++at)
    written += (written.empty() ? "[" : ", ") + usual_index(*at);
  error.helps.push_back("write `" + symbol.name + written + "]`");
  return false;
}

/// What usually indexes a dimension at this site.
std::string Typing::usual_index(const ParamDim& dim) const {
  const auto offered = [&](Variable wanted, Variable otherwise) {
    return std::string(info(offers(site_, wanted) ? wanted : otherwise).name);
  };
  switch (dim.axis) {
    case ParamAxis::kNQ:
      return offered(Variable::kQ, Variable::kQ0);
    case ParamAxis::kNK:
      return offered(Variable::kK, Variable::kK0);
    case ParamAxis::kFixed:
      return "0";
    default:
      return std::string(info(*info(dim.axis).index).name);
  }
}

/// How an f32 becomes an index.
std::string Typing::index_help(const Operand& index) const {
  const std::string rounded = "write `int(" + std::string(source(index)) + ")`";
  return builder_[index.node].op == ExprOp::kParameter
             ? "declare the parameter with \"type\": \"i32\", or " + rounded
             : rounded;
}

bool Typing::check_indices(const ParamSymbol& symbol, std::span<const Operand> indices,
                           std::uint32_t begin, std::uint32_t end) {
  const std::size_t rank = symbol.shape.size();
  if (indices.size() > rank) {
    const std::string got = ", got " + std::to_string(indices.size());
    if (rank == 0) {
      report(Code::kExprIndex, begin, end,
             quoted(symbol.name) + " is a scalar: expected no index" + got)
          .helps.push_back("write `" + symbol.name +
                           "`, or declare what is indexed: \"shape\": \"[" +
                           (source(indices[0]) == "q" ? "n_q" : "n_k") + "]\"");
    } else {
      report(Code::kExprIndex, begin, end,
             quoted(symbol.name) + " has the shape " + print_shape(symbol) + ": expected at most " +
                 std::to_string(rank) + (rank == 1 ? " index" : " indices") + got);
    }
    return false;
  }
  if (!check_missing_indices(symbol, rank - indices.size(), begin, end)) return false;
  bool good = true;
  for (std::size_t n = 0; n < indices.size(); ++n) {
    if (!indices[n].ok()) {
      good = false;
    } else if (type_of(indices[n]) != ExprType::kI32) {
      ExprError& error =
          report(Code::kExprType, indices[n].begin, indices[n].end,
                 "index " + std::to_string(n + 1) + " of " + quoted(symbol.name) +
                     ": expected i32, got " + std::string(name_of(type_of(indices[n]))));
      if (type_of(indices[n]) == ExprType::kF32) error.helps.push_back(index_help(indices[n]));
      good = false;
    }
  }
  return good;
}

Operand Typing::parameter(const ParamSymbol& symbol, std::span<const Operand> indices,
                          std::uint32_t begin, std::uint32_t end) {
  if (!check_indices(symbol, indices, begin, end)) return {-1, begin, end};
  const std::size_t implicit = symbol.shape.size() - indices.size();
  ExprChildren children = kNoChildren;
  for (std::size_t d = 0; d < symbol.shape.size(); ++d) {
    children[d] = d < implicit ? builder_.variable(*info(symbol.shape[d].axis).index)
                               : indices[d - implicit].node;
  }
  const auto index = static_cast<int>(&symbol - parameters_.data());
  return located(builder_.parameter(index, symbol.type, children), begin, end);
}

}  // namespace lacuna

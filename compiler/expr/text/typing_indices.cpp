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
    const bool of_queries = dim.axis == ParamAxis::kQTiles && offers(site_, Variable::kQ);
    const bool of_keys = dim.axis == ParamAxis::kKTiles && offers(site_, Variable::kK);
    error.helps.push_back(of_queries || of_keys
                              ? std::string("of tiles of 128 write `") + (of_queries ? "q" : "k") +
                                    " // 128` in brackets, or drop the dimension"
                              : "write the index in brackets, or drop the dimension");
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

namespace {

/// What an index counts; of a dimension of a fixed extent, and of other variables, anything.
std::string_view counted_by(Variable variable) {
  switch (variable) {
    case Variable::kQ:
    case Variable::kK:
    case Variable::kQ0:
    case Variable::kQ1:
    case Variable::kK0:
    case Variable::kK1:
      return "tokens";
    case Variable::kI:
    case Variable::kJ:
      return "tiles";
    case Variable::kH:
      return "heads";
    case Variable::kB:
      return "batch entries";
    default:
      return "";
  }
}

std::string_view counted_along(ParamAxis axis) {
  switch (axis) {
    case ParamAxis::kNQ:
    case ParamAxis::kNK:
      return "tokens";
    case ParamAxis::kQTiles:
    case ParamAxis::kKTiles:
      return "tiles";
    case ParamAxis::kHeads:
      return "heads";
    case ParamAxis::kBatch:
      return "batch entries";
    case ParamAxis::kFixed:
      break;
  }
  return "";
}

}  // namespace

/// A variable alone that counts other things than the dimension has: an index beyond its end reads
/// the last element, so that nothing else would tell.
bool Typing::check_counted(const ParamSymbol& symbol, const Operand& index, std::size_t dim,
                           std::size_t number) {
  const ExprNode& node = builder_[index.node];
  if (node.op != ExprOp::kVariable) return true;
  const auto variable = static_cast<Variable>(node.symbol);
  const std::string_view has = counted_by(variable), wants = counted_along(symbol.shape[dim].axis);
  if (has.empty() || wants.empty() || has == wants) return true;
  ExprError& error = report(Code::kExprIndex, index.begin, index.end,
                            "index " + std::to_string(number) + " of " + quoted(symbol.name) +
                                ": '" + std::string(info(variable).name) + "' counts " +
                                std::string(has) + ", the dimension " + std::string(wants));
  error.notes.push_back(quoted(symbol.name) + " has the shape " + print_shape(symbol) +
                        "; its indices stand in this order");
  std::string usual;  // what is not written out is the site's own
  for (const ParamDim& each : symbol.shape) {
    const auto& own = info(each.axis).index;
    if (!own || !offers(site_, *own)) usual += (usual.empty() ? "[" : ", ") + usual_index(each);
  }
  error.helps.push_back("write `" + symbol.name + usual + (usual.empty() ? "`" : "]`") +
                        ", or declare another shape");
  return false;
}

bool Typing::check_index(const ParamSymbol& symbol, const Operand& index, std::size_t dim,
                         std::size_t number) {
  if (!index.ok()) return false;
  if (type_of(index) == ExprType::kI32) return check_counted(symbol, index, dim, number);
  ExprError& error = report(Code::kExprType, index.begin, index.end,
                            "index " + std::to_string(number) + " of " + quoted(symbol.name) +
                                ": expected i32, got " + std::string(name_of(type_of(index))));
  error.helps.push_back(type_of(index) == ExprType::kF32
                            ? index_help(index)
                            : "make it a number: `select(" + std::string(source(index)) +
                                  ", 1, 0)`");
  return false;
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
  for (std::size_t n = 0; n < indices.size(); ++n)
    good = check_index(symbol, indices[n], rank - indices.size() + n, n + 1) && good;
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

#include "compiler/emit/cuda/hook_text.hpp"

#include <algorithm>
#include <utility>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/nodes/constant_divisors.hpp"
#include "compiler/expr/nodes/constant_parts.hpp"

namespace lacuna {
namespace {

/// Variables are arguments of the hook, but for the lengths and the number of
/// heads, which every hook finds in `args`.
std::string variable_text(Variable variable, Tiling tiling) {
  switch (variable) {
    case Variable::kNQ:
      return "args.attend.n_q";
    case Variable::kNK:
      return "args.attend.n_k";
    case Variable::kNH:
      return "args.attend.n_h";
    case Variable::kNI:
      return tiling == Tiling::kAttend ? "args.attend.q_tiles" : "args.predict.keep_q_tiles";
    case Variable::kNJ:
      return tiling == Tiling::kAttend ? "args.attend.k_tiles" : "args.predict.keep_k_tiles";
    case Variable::kPMax:  // which a kernel finds out and puts among the parts of a row
      return "row.p_max";
    default:
      return std::string(info(variable).name);
  }
}

}  // namespace

CudaNames cuda_names(Tiling tiling) {
  return {[tiling](Variable variable) { return variable_text(variable, tiling); },
          [](const ParamSymbol& symbol) { return "args.param_" + symbol.name; }};
}

CudaNames score_names() {
  CudaNames names = cuda_names(Tiling::kAttend);
  names.approximates = true;
  return names;
}

std::string cuda_text(const Expr& expr, const char* absent, Tiling tiling) {
  return expr.empty() ? absent : print_cuda(expr, cuda_names(tiling));
}

CudaBody cuda_body(const Expr& expr, const char* absent, Tiling tiling) {
  return expr.empty() ? absent : print_cuda_body(expr, cuda_names(tiling));
}

RowText split_text(const Expr& expr, const std::string& name, const std::string& holder,
                   std::vector<std::int32_t> parts, const std::vector<std::int32_t>& divisors,
                   CudaNames names) {
  RowText text{"", "", ""};
  for (const std::int32_t divisor : divisors)
    if (std::ranges::count(parts, divisor) == 0) parts.push_back(divisor);
  const auto is_divisor = [&](std::int32_t node) {
    return std::ranges::count(divisors, node) != 0;
  };
  const auto member = [&](std::int32_t node) {
    const auto at = std::ranges::find(parts, node);
    return at == parts.end() ? std::string() : name + "_" + std::to_string(at - parts.begin());
  };
  for (const std::int32_t node : parts) {
    const auto type = expr.nodes[static_cast<std::size_t>(node)].type;
    const std::string value = print_cuda(expr, node, names);
    text.members +=
        is_divisor(node) ? " lacuna::IntegerDivisor" : " " + std::string(cuda_name(type));
    text.members += " " + member(node) + ";";
    text.values += (text.values.empty() ? "" : ", ") +
                   (is_divisor(node) ? "lacuna::divisor_of(" + value + ")" : value);
  }
  names.known = [&](std::int32_t node) {
    const std::string known = member(node);
    return known.empty() ? known : holder + "." + known + (is_divisor(node) ? ".value" : "");
  };
  names.divisor = [&](std::int32_t node) {
    return is_divisor(node) ? holder + "." + member(node) : std::string();
  };
  text.rest = print_cuda_body(expr, names, name + "_value_");
  return text;
}

RowText row_text(const Expr& expr, const std::string& name, std::span<const Variable> changing,
                 const char* absent, CudaNames names) {
  if (expr.empty()) return {"", "", absent};
  return split_text(expr, name, "row", constant_parts(expr, changing),
                    constant_divisors(expr, changing), std::move(names));
}

void write_hook(CudaWriter& out, const std::string& signature, const char* pointer,
                const CudaBody& body) {
  out.line("  static __device__ __forceinline__ " + signature + " {");
  if (out.knows_one_sequence && signature.ends_with("int b)"))
    out.generated_line("    b += args.sequences.entry;");
  for (const std::string& local : body.locals)
    out.line("    " + local, out.place_of(pointer, "default"));
  out.line("    return " + body.value + ";", out.place_of(pointer, "default"));
  out.line("  }");
}

void write_row_struct(CudaWriter& out, const std::string& name, const std::string& members) {
  out.generated_line("  struct " + name + " {" + members + (members.empty() ? "};" : " };"));
}

}  // namespace lacuna

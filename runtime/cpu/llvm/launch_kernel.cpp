#include "runtime/cpu/llvm/launch_kernel.hpp"

#include <array>
#include <vector>

#include "compiler/expr/text/parse.hpp"
#include "runtime/cpu/llvm/jit/lower_expr.hpp"

namespace lacuna::host {
namespace {

constexpr std::array kLaunchVariables = {Variable::kNB, Variable::kNH, Variable::kNHKv,
                                         Variable::kNQ, Variable::kNK, Variable::kSmCount};

bool parse_lines(std::string_view text, std::vector<Expr>& expressions, std::string& error) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const ParsedExpr parsed = parse_expr(text.substr(0, end), Site::kLaunch, {});
    if (!parsed.ok()) {
      error =
          "line " + std::to_string(expressions.size() + 1) + ": " + parsed.errors.front().message;
      return false;
    }
    expressions.push_back(parsed.expr);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

void emit_launch(llvm::Module& module, const std::vector<Expr>& expressions) {
  Emitter e(module, 4);
  llvm::Type* pointer = e.ir.getPtrTy();
  llvm::Function* function = e.begin_function("launch", e.ir.getVoidTy(), {pointer, pointer});
  function->addParamAttr(0, llvm::Attribute::NoAlias);
  function->addParamAttr(1, llvm::Attribute::NoAlias);
  ExprScope scope;
  for (std::size_t n = 0; n < kLaunchVariables.size(); ++n)
    scope[kLaunchVariables[n]] =
        e.load(e.i32(), e.at(e.i32(), function->getArg(0), e.index(static_cast<int>(n))), 4);
  for (std::size_t n = 0; n < expressions.size(); ++n)
    e.store(lower_expr(e, expressions[n], scope),
            e.at(e.i32(), function->getArg(1), e.index(static_cast<int>(n))), 4);
  e.ir.CreateRetVoid();
}

}  // namespace

bool compile_launch(std::string_view expressions, LaunchKernel& launch, std::string& error) {
  std::vector<Expr> parsed;
  if (!parse_lines(expressions, parsed, error)) return false;
  const auto fill = [&](llvm::Module& module) { emit_launch(module, parsed); };
  if (!generate("launch", fill, launch.code, error)) return false;
  launch.code.find("launch", launch.run);
  return true;
}

}  // namespace lacuna::host

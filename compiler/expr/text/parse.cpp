// Precedence climbing over the operator table. Names and types are settled as nodes are made
// (typing.hpp), so one pass reports everything.
#include "compiler/expr/text/parse.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include "compiler/expr/text/tokens.hpp"
#include "compiler/expr/text/typing.hpp"

namespace lacuna {
namespace {

// Recursive consumers (printers, lowering) rely on these.
constexpr int kMaxNesting = 200;
constexpr std::size_t kMaxTokens = 2000;
constexpr std::size_t kMaxBytes = std::size_t{1} << 16;  ///< most names would have to be of 32

class Parser {
 public:
  Parser(std::string_view text, Site site, std::span<const ParamSymbol> parameters,
         const Lets& lets, std::vector<ExprError>& errors)
      : typing_(text, site, parameters, lets, errors), tokens_(tokenize(text, errors)) {
    lost_ = std::ranges::any_of(errors, &ExprError::loses_place);
  }

  /// The root's node, or -1.
  int run() {
    if (tokens_.size() > kMaxTokens) {
      too_complex(0, tokens_.back().end, "expression has more than 2000 words and symbols");
      return -1;
    }
    if (token().kind == TokenKind::kEnd) {
      if (ExprError* error = syntax_error(token(), "expected an expression, got the end"))
        error->helps.emplace_back("leave the field out where there is nothing to say");
      return -1;
    }
    const Operand root = expression(kPrecedenceOr);
    if (token().kind == TokenKind::kEnd) return typing_.result(root);
    if (token().is(")") || token().is("]")) {
      syntax_error(token(), "'" + std::string(token().text) + "' closes nothing");
    } else {
      unexpected("an operator");
    }
    return -1;
  }

  const Typing& typing() const { return typing_; }
  /// Behind a bracket that is never closed nobody knows what belongs to what.
  std::uint32_t unsure_from() const { return unsure_from_; }

 private:
  /// An operand, and the comparison before it.
  struct Compared {
    Token sign;
    Operand operand;
  };

  const Token& token() const { return tokens_[at_]; }
  Token take() {
    const Token taken = token();
    if (taken.kind != TokenKind::kEnd) ++at_;
    last_end_ = taken.end;
    return taken;
  }
  bool accept(std::string_view spelling) {
    if (!token().is(spelling)) return false;
    take();
    return true;
  }

  /// The parser loses its place; what it would say from there on follows from this.
  ExprError* syntax_error(const Token& at, std::string message) {
    if (aborted_ || lost_) return nullptr;
    lost_ = true;
    if (typing_.has_error_at(at.begin)) return nullptr;  // a sign of another language
    ExprError& error = typing_.report(Code::kExprSyntax, at.begin, at.end, std::move(message));
    error.loses_place = true;
    return &error;
  }

  /// What other languages write as a word; "" if it is none.
  static const char* operator_for(std::string_view word) {
    constexpr std::pair<std::string_view, const char*> kWords[] = {
        {"mod", "%"},   {"div", "//"}, {"is", "=="},  {"xor", "^"},
        {"AND", "and"}, {"OR", "or"},  {"shl", "<<"}, {"shr", ">>"}};
    for (const auto& [other, here] : kWords)
      if (word == other) return here;
    return "";
  }

  void unexpected(std::string_view wanted) {
    if (token().is("[")) {
      if (ExprError* error = syntax_error(token(), "expected an operator, got '['"))
        error->helps.emplace_back("all indices stand in one pair of brackets: `table[h, q]`");
      return;
    }
    if (token().is("if") || token().is("else")) {
      ExprError* error =
          syntax_error(token(), "'" + std::string(token().text) + "' is not an operator here");
      if (error) error->helps.emplace_back("`x if c else y` is written `select(c, x, y)`");
      return;
    }
    if (const char* here = operator_for(token().text); *here != '\0') {
      ExprError* error =
          syntax_error(token(), "'" + std::string(token().text) + "' is not an operator here");
      if (error) error->helps.push_back("write `" + std::string(here) + "`");
      return;
    }
    const bool at_end = token().kind == TokenKind::kEnd;
    const std::string got = at_end ? "the end" : "'" + std::string(token().text) + "'";
    ExprError* error = syntax_error(token(), "expected " + std::string(wanted) + ", got " + got);
    if (error && token().is(","))
      error->helps.emplace_back("conditions are joined by `and` or `or`");
    if (error && token().is("|"))
      error->helps.emplace_back(
          "the magnitude of x is `abs(x)`; `|` joins the bits of two integers");
    if (error && token().is("in"))
      error->helps.emplace_back("for each value `k == 0 or k == 4`, or a table: `is_sink[k] == 1`");
    if (error && token().is("not"))
      error->helps.emplace_back(
          "for each value `k != 0 and k != 4`, or a table: `is_sink[k] == 0`");
  }

  void too_complex(std::uint32_t begin, std::uint32_t end, std::string message) {
    if (aborted_) return;
    typing_.report(Code::kExprTooComplex, begin, end, std::move(message));
    at_ = tokens_.size() - 1;
    aborted_ = true;
  }

  Operand expression(int precedence) {
    if (++nesting_ > kMaxNesting) {
      too_complex(token().begin, token().end, "expression is nested more than 200 deep");
    }
    Operand left = prefix(precedence);
    std::vector<Compared> chain;
    while (token().infix && token().infix->precedence >= precedence) {
      const Token sign = take();
      const OperatorInfo& op = *sign.infix;
      const Operand right = expression(op.precedence + 1);
      if (op.precedence == kPrecedenceComparison) {
        if (chain.empty()) chain.push_back({{}, left});
        chain.push_back({sign, right});
      }
      const bool chains = chain.size() > 2;
      left = chains ? Operand{-1, left.begin, right.end} : binary(op, left, right);
    }
    if (chain.size() > 2) chained(chain);
    --nesting_;
    return left;
  }

  Operand binary(const OperatorInfo& op, const Operand& left, const Operand& right) {
    const Operand operands[] = {left, right};
    return typing_.apply(op, operands, left.begin, std::max(left.end, right.end));
  }

  /// `a < b`
  std::string comparison(const Operand& left, const Compared& right) const {
    return typing_.source(left) + " " + std::string(right.sign.text) + " " +
           typing_.source(right.operand);
  }

  void chained(std::span<const Compared> chain) {
    const Token& sign = chain[2].sign;
    ExprError& error =
        typing_.report(Code::kExprSyntax, sign.begin, sign.end,
                       "comparisons do not chain: second comparison '" + std::string(sign.text) +
                           "' after '" + std::string(chain[1].sign.text) + "'");
    const std::string between = typing_.source(chain[1].operand);
    const std::size_t bits = between.find_first_of("&|");
    if (bits != std::string::npos) {  // `a < b & c < d`
      const bool is_and = between[bits] == '&';
      error.notes.push_back(std::string("'") + between[bits] +
                            "' takes integers and binds tighter than comparisons");
      error.helps.push_back(std::string("between conditions write `") + (is_and ? "and`" : "or`"));
      return;
    }
    const auto is_equality = [](const Token& of) { return of.is("==") || of.is("!="); };
    if (chain.size() == 4 && is_equality(sign) && !is_equality(chain[1].sign) &&
        !is_equality(chain[3].sign)) {  // `a < b == c < d`
      error.helps.push_back("write `(" + comparison(chain[0].operand, chain[1]) + ") " +
                            std::string(sign.text) + " (" + comparison(chain[2].operand, chain[3]) +
                            ")`");
      return;
    }
    std::string parts;
    for (std::size_t n = 1; n < chain.size(); ++n)
      parts += (n > 1 ? " and " : "") + comparison(chain[n - 1].operand, chain[n]);
    error.helps.push_back("write `" + parts + "`");
  }

  Operand prefix(int precedence) {
    const Token sign = token();
    if (sign.is("not")) {
      if (precedence > kPrecedenceNot) {
        typing_.report(Code::kExprSyntax, sign.begin, sign.end, "'not' needs parentheses here")
            .helps.emplace_back("'not' binds looser than comparisons: `(not x)`");
      }
      take();
      return unary(ExprOp::kNot, sign, expression(kPrecedenceNot));
    }
    if (sign.kind == TokenKind::kOperator && sign.is("-")) {
      take();
      if (token().kind == TokenKind::kInteger || token().kind == TokenKind::kReal) {
        return number(true, sign.begin);
      }
      return unary(ExprOp::kNegate, sign, expression(kPrecedenceUnary));
    }
    return primary();
  }

  Operand unary(ExprOp op, const Token& sign, const Operand& operand) {
    return typing_.apply(info(op), {&operand, 1}, sign.begin, std::max(sign.end, operand.end));
  }

  Operand number(bool negative, std::uint32_t begin) {
    const Token digits = take();
    return typing_.number(digits.text, digits.kind == TokenKind::kReal, negative, begin,
                          digits.end);
  }

  Operand primary() {
    const Token first = token();
    switch (first.kind) {
      case TokenKind::kInteger:
      case TokenKind::kReal:
        return number(false, first.begin);
      case TokenKind::kName:
        return named();
      default:
        break;
    }
    if (accept("(")) {
      closers_.push_back(')');
      const Operand inside = expression(kPrecedenceOr);
      close(")", first);
      return {inside.node, first.begin, std::max(inside.end, last_end_)};
    }
    unexpected("an operand");
    if (first.infix && !first.is("and") && !first.is("or")) {  // a stray operator: go on behind it
      take();
      const Operand skipped = expression(kPrecedenceUnary);
      return {-1, first.begin, std::max(first.end, skipped.end)};
    }
    return {-1, first.begin, first.begin};
  }

  Operand named() {
    const Token name = take();
    if (name.is("true") || name.is("false")) {
      return typing_.constant(ExprType::kBool, name.is("true") ? 1 : 0, name.begin, name.end);
    }
    if (name.is("inf")) {
      return typing_.constant(ExprType::kF32, std::numeric_limits<double>::infinity(), name.begin,
                              name.end);
    }
    const Token open = token();
    if (accept("(")) return call(name, open);
    if (accept("[")) {
      const std::vector<Operand> indices = list("]", open);
      return typing_.indexed(name.text, name.begin, name.end, indices, last_end_);
    }
    return typing_.name(name.text, name.begin, name.end);
  }

  Operand call(const Token& name, const Token& open) {
    const std::size_t errors_before = typing_.count_errors();
    const std::vector<Operand> arguments = list(")", open);
    const OperatorInfo* function = find_function(name.text);
    if (!function) {  // it may have taken a tensor
      typing_.forget(Code::kExprIndex, errors_before);
      return typing_.not_a_function(name.text, name.begin, name.end);
    }
    if (arguments.size() != static_cast<std::size_t>(function->arity))
      return typing_.wrong_count(*function, arguments, name.begin, last_end_);
    return typing_.apply(*function, arguments, name.begin, last_end_);
  }

  /// Operands up to the closing bracket.
  std::vector<Operand> list(std::string_view closing, const Token& open) {
    std::vector<Operand> operands;
    if (accept(closing)) return operands;
    closers_ += closing;
    do {
      operands.push_back(expression(kPrecedenceOr));
    } while (accept(","));
    close(closing, open);
    return operands;
  }

  void close(std::string_view closing, const Token& open) {
    const std::string all_open(closers_.rbegin(), closers_.rend());
    closers_.pop_back();
    if (accept(closing)) return;
    if (token().kind == TokenKind::kEnd) {
      unsure_from_ = std::min(unsure_from_, open.begin);
      ExprError* error = syntax_error(open, "'" + std::string(open.text) + "' is never closed");
      if (error && all_open.size() > 1)
        error->helps.push_back(std::to_string(all_open.size()) +
                               " brackets are open at the end: `" + all_open + "` closes them");
      return;
    }
    unexpected(closing == ")" ? "an operator or ')'" : "an operator or ']'");
    while (token().kind != TokenKind::kEnd && !token().is(closing)) take();
    accept(closing);
  }

  Typing typing_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t last_end_ = 0;
  std::uint32_t unsure_from_ = std::numeric_limits<std::uint32_t>::max();
  std::string closers_;  ///< of the brackets that are open, the innermost last
  int nesting_ = 0;
  bool lost_ = false;     ///< a syntax error is reported, and none after it
  bool aborted_ = false;  ///< too complex: the rest is not read
};

/// Removes errors of types, indices and arguments that touch a syntax error: of such an operand the
/// parser has read a part only.
void forget_cut_operands(std::string_view text, std::uint32_t unsure_from,
                         std::vector<ExprError>& errors) {
  std::vector<ExprError> lost;
  std::ranges::copy_if(errors, std::back_inserter(lost), &ExprError::loses_place);
  const auto is_cut = [&](const ExprError& error) {
    return error.end > unsure_from || std::ranges::any_of(lost, [&](const ExprError& at) {
             // The end of what stands before it.
             const std::size_t last = text.substr(0, at.begin).find_last_not_of(' ');
             const std::size_t before = last == std::string_view::npos ? 0 : last + 1;
             return error.begin <= at.end && error.end >= before;
           });
  };
  std::erase_if(errors, [&](const ExprError& error) {
    return (error.code == Code::kExprType || error.code == Code::kExprIndex ||
            error.code == Code::kExprArguments) &&
           is_cut(error);
  });
}

/// A formula that reads names of `let` must keep the limits of length and depth with their
/// definitions written out: so programs are printed, and read again.
void check_written_out(std::uint32_t tree_size, Site site, ParsedExpr& parsed) {
  constexpr std::uint32_t kNodesOfToken =
      2 + kMaxParamRank;  // a parameter, its indices, a promotion
  std::string message = "expression has more than 2000 words and symbols";
  if (tree_size <= kNodesOfToken * kMaxTokens) {
    const ParsedExpr again = parse_expr(print_expr(parsed.expr), site, parsed.expr.parameters);
    if (again.ok()) return;
    message = again.errors[0].message;
  }
  parsed.errors.push_back({Code::kExprTooComplex,
                           0,
                           static_cast<std::uint32_t>(parsed.expr.text.size()),
                           message + " with the names of let written out",
                           {},
                           {}});
  parsed.expr = {};
}

}  // namespace

ParsedExpr parse_expr(std::string_view text, Site site, std::span<const ParamSymbol> parameters,
                      const Lets& lets) {
  ParsedExpr parsed;
  if (text.size() > kMaxBytes) {
    parsed.errors.push_back({Code::kExprTooComplex,
                             0,
                             1,
                             "expression has more than " + std::to_string(kMaxBytes) + " bytes",
                             {},
                             {}});
    return parsed;
  }
  Parser parser(text, site, parameters, lets, parsed.errors);
  const int root = parser.run();
  forget_cut_operands(text, parser.unsure_from(), parsed.errors);
  parsed.lets = parser.typing().lets_read();
  if (parsed.ok() && root >= 0) {
    const ExprBuilder& builder = parser.typing().builder();
    parsed.expr = builder.extract(root, {parameters.begin(), parameters.end()});
    parsed.expr.text = text;
    if (!parsed.lets.empty()) check_written_out(builder.tree_size(root), site, parsed);
  }
  std::stable_sort(parsed.errors.begin(), parsed.errors.end(),
                   [](const ExprError& a, const ExprError& b) { return a.begin < b.begin; });
  return parsed;
}

}  // namespace lacuna

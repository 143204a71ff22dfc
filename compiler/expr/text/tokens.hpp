// Text of an expression -> tokens. Part of the parser.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/expr_error.hpp"

namespace lacuna {

enum class TokenKind : std::uint8_t { kEnd, kName, kInteger, kReal, kOperator, kPunctuation };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::uint32_t begin = 0, end = 0;
  std::string_view text;                ///< as written; for foreign spellings (&&) as meant (and)
  const OperatorInfo* infix = nullptr;  ///< if it can stand between two operands
  bool is(std::string_view spelling) const { return text == spelling && kind != TokenKind::kEnd; }
};

/// All tokens, then one kEnd. Unknown characters and operators of other languages are reported;
/// the latter still become the operator that was meant, so that parsing goes on.
std::vector<Token> tokenize(std::string_view text, std::vector<ExprError>& errors);

}  // namespace lacuna

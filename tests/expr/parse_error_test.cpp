// What a user reads after a mistake in an expression: exact text and exact bytes.
#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

using enum ParamAxis;

const std::vector<ParamSymbol> kErrorParameters = {
    {"tau", ExprType::kF32, {}, false},
    {"threshold", ExprType::kF32, {kHeads, kQTiles}, false},
    {"start", ExprType::kI32, {kNQ}, true},
    {"pairs", ExprType::kF32, {kHeads, kNQ, kNK}, false},
    {"bucket", ExprType::kF32, {kHeads, {kFixed, 32}}, false},
};

/// `source range` code message, then notes and helps, for each error.
std::string errors(const std::string& text, Site site) {
  std::string out;
  for (const ExprError& error : parse_expr(text, site, kErrorParameters).errors) {
    out += "`" + text.substr(error.begin, error.end - error.begin) + "`@" +
           std::to_string(error.begin) + " " + code_name(error.code) + " " + error.message + "\n";
    for (const std::string& note : error.notes) out += "note: " + note + "\n";
    for (const std::string& help : error.helps) out += "help: " + help + "\n";
  }
  return out;
}

struct Case {
  const char *text, *errors;
  Site site = Site::kMask;
};

void expect_errors(const std::vector<Case>& cases) {
  for (const Case& row : cases) EXPECT_EQ(errors(row.text, row.site), row.errors) << row.text;
}

TEST(parse_error, syntax) {
  expect_errors({
      {"",
       "``@0 E0301 expected an expression, got the end\n"
       "help: leave the field out where there is nothing to say\n"},
      {"q <= start[q][k]",
       "`[`@13 E0301 expected an operator, got '['\n"
       "help: all indices stand in one pair of brackets: `table[h, q]`\n"},
      {"q <", "``@3 E0301 expected an operand, got the end\n"},
      {"q < k k", "`k`@6 E0301 expected an operator, got 'k'\n"},
      {"(q < k", "`(`@0 E0301 '(' is never closed\n"},
      {"min(k, q < start[q",
       "`[`@16 E0301 '[' is never closed\n"
       "help: 2 brackets are open at the end: `])` closes them\n"},
      {"select(q < k, q < 3, start[q) == 1", "`)`@28 E0301 expected an operator or ']', got ')'\n"},
      {"k not in 3",
       "`not`@2 E0301 expected an operator, got 'not'\n"
       "help: for each value `k != 0 and k != 4`, or a table: `is_sink[k] == 0`\n"},
      {"k < q !", "`!`@6 E0301 '!' is not an operator here\nhelp: write `not`\n"},
      {"q < k)", "`)`@5 E0301 ')' closes nothing\n"},
      {"(q < k]", "`]`@6 E0301 expected an operator or ')', got ']'\n"},
      {"q * / k < 0", "`/`@4 E0301 expected an operand, got '/'\n"},
      {"q + not k",
       "`not`@4 E0301 'not' needs parentheses here\n"
       "help: 'not' binds looser than comparisons: `(not x)`\n"
       "`k`@8 E0303 operand of 'not': expected bool, got i32\n"
       "help: compare it: `k > 0`\n"},
      {"0 <= q - k < 64",
       "`<`@11 E0301 comparisons do not chain: second comparison '<' after '<='\n"
       "help: write `0 <= q - k and q - k < 64`\n"},
  });
}

TEST(parse_error, habits_of_other_languages) {
  expect_errors({
      {"q < k && !(k == 3)",
       "`&&`@6 E0301 '&&' is not an operator here\nhelp: write `and`\n"
       "`!`@9 E0301 '!' is not an operator here\nhelp: write `not`\n"},
      {"k mod 2 == 0", "`mod`@2 E0301 'mod' is not an operator here\nhelp: write `%`\n"},
      {"k <= q and k mod 2", "`mod`@13 E0301 'mod' is not an operator here\nhelp: write `%`\n"},
      {"pairs[q, q, k] < k",
       "`q`@6 E0304 index 1 of 'pairs': 'q' counts tokens, the dimension heads\n"
       "note: 'pairs' has the shape [heads, n_q, n_k]; its indices stand in this order\n"
       "help: write `pairs[q, k]`, or declare another shape\n"},
      {"q = k", "`=`@2 E0301 '=' is not an operator here\nhelp: write `==` to compare\n"},
      {"k ≤ q", "`≤`@2 E0301 '≤' is not an operator here\nhelp: write `<=`\n"},
      {"(k if h == 0 else q) < 4",
       "`if`@3 E0301 'if' is not an operator here\n"
       "help: `x if c else y` is written `select(c, x, y)`\n"},
      {"(q < k) & (k < 9)",
       "`(q < k) & (k < 9)`@0 E0303 operands of '&': expected i32, got bool\n"
       "help: between conditions write `and`\n"},
      {"(q < k) * (k < 9) or (q < 3) + (k < 3)",
       "`(q < k) * (k < 9)`@0 E0303 operands of '*': expected f32 or i32, got bool\n"
       "help: between conditions write `and`\n"
       "`(q < 3) + (k < 3)`@21 E0303 operands of '+': expected f32 or i32, got bool\n"
       "help: between conditions write `or`\n"},
      {"q < k | k < 9",
       "`<`@10 E0301 comparisons do not chain: second comparison '<' after '<'\n"
       "note: '|' takes integers and binds tighter than comparisons\n"
       "help: between conditions write `or`\n"},
      {"q ** 2 == k",
       "`**`@2 E0301 '**' is not an operator here\n"
       "help: there are no powers; write `x * x`, or `exp2(y * log2(x))`\n"},
      {"q < k ? 1 : 0",
       "`?`@6 E0301 unexpected character '?'\nhelp: write `select(condition, x, y)`\n"},
      {"q < 0x10",
       "`0x10`@4 E0301 '0x10' is not a number\n"
       "help: numbers are decimal: write '16'\n"},
      {"q < 12ab",
       "`12ab`@4 E0301 '12ab' is not a number\n"
       "help: write '12'; numbers are decimal and have no suffix\n"},
      {"k < 1_000",
       "`1_000`@4 E0301 '1_000' is not a number\nhelp: write '1000'; nothing stands between "
       "digits\n"},
      {"k < $q + {q}",
       "`$`@4 E0301 unexpected character '$'\nhelp: names stand as they are: `window`\n"},
      {"q < k;",
       "`;`@5 E0301 unexpected character ';'\n"
       "help: arguments have `,` between them, conditions `and` or `or`\n"},
      {"select(q < k; q < 5, k > 3)",
       "`;`@12 E0301 unexpected character ';'\n"
       "help: arguments have `,` between them, conditions `and` or `or`\n"},
  });
}

TEST(parse_error, names) {
  expect_errors({
      {"k <= q + n_kk",
       "`n_kk`@9 E0302 'n_kk' is neither a variable of attention.mask nor a parameter\n"
       "note: attention.mask reads q k n_q n_k h b n_h\n"
       "note: parameters: tau (scalar), threshold ([heads, q_tiles]), start ([n_q]), "
       "pairs ([heads, n_q, n_k]), bucket ([heads, 32])\n"
       "help: did you mean 'n_k'?\n"},
      {"k < nk",
       "`nk`@4 E0302 'nk' is neither a variable of attention.mask nor a parameter\n"
       "note: attention.mask reads q k n_q n_k h b n_h\n"
       "note: parameters: tau (scalar), threshold ([heads, q_tiles]), start ([n_q]), "
       "pairs ([heads, n_q, n_k]), bucket ([heads, 32])\n"
       "help: did you mean 'n_k'?\n"},
      {"gap < 0",
       "`gap`@0 E0302 'gap' cannot be read in attention.mask\n"
       "note: gap is the largest difference, over the rows in scope, of this tile's row maximum to "
       "the running one; it can be read in gate\n"
       "note: attention.mask reads q k n_q n_k h b n_h\n"
       "note: parameters: tau (scalar), threshold ([heads, q_tiles]), start ([n_q]), "
       "pairs ([heads, n_q, n_k]), bucket ([heads, 32])\n"},
      {"maxx(q, k) < 1",
       "`maxx`@0 E0302 'maxx' is not a function\n"
       "note: functions: select min max abs exp exp2 log log2 sqrt tanh floor ceil bit_length int "
       "hash clamp\n"
       "help: did you mean 'max'?\n"},
      {"exp < 1", "`exp`@0 E0301 'exp' is a function\nhelp: write exp(x)\n"},
      {"tau(3) < 1",
       "`tau`@0 E0302 'tau' is not a function\n"
       "help: 'tau' is a scalar parameter: write `tau`\n"},
      {"start(q) < 1",
       "`start`@0 E0302 'start' is not a function\n"
       "help: 'start' is a parameter; indices stand in brackets: `start[...]`\n"},
      {"min(q) < clamp(k, 1)",
       "`min(q)`@0 E0305 min: expected 2 arguments, got 1\n"
       "note: min(x, y): the smaller; the other one if one is NaN\n"
       "`clamp(k, 1)`@9 E0305 clamp: expected 3 arguments, got 2\n"
       "note: clamp(x, low, high): min(max(x, low), high)\n"},
  });
}

TEST(parse_error, types) {
  expect_errors({
      {"k + q",
       "`k + q`@0 E0303 attention.mask: expected bool, got i32\n"
       "note: attention.mask yields bool: whether query token q sees key token k\n"
       "help: compare it: `k + q > 0`\n"},
      {"s > 0",
       "`s > 0`@0 E0303 attention.score: expected f32, got bool\n"
       "note: attention.score yields f32: the logit of query token q and key token k\n"
       "help: make it a number: `select(s > 0, 1, 0)`\n",
       Site::kScore},
      {"n_q / 2",
       "`n_q / 2`@0 E0303 launch: expected i32, got f32\n"
       "note: launch yields i32: a size or count that a launch needs\n"
       "help: make it an integer: `int(n_q / 2)`, which rounds toward 0\n",
       Site::kLaunch},
      {"q and k < 3",
       "`q`@0 E0303 left operand of 'and': expected bool, got i32\n"
       "help: compare it: `q > 0`\n"},
      {"(q < 3) + 1 > k",
       "`(q < 3)`@0 E0303 left operand of '+': expected f32 or i32, got bool\n"
       "help: make it a number: `select((q < 3), 1, 0)`\n"},
      {"q % tau == 0 or bit_length(0.5) == 1",
       "`tau`@4 E0303 right operand of '%': expected i32, got f32\n"
       "help: make it an integer: `int(tau)`, which rounds toward 0\n"
       "`0.5`@27 E0303 argument of bit_length: expected i32, got f32\n"
       "help: make it an integer: `int(0.5)`, which rounds toward 0\n"},
      {"k // (k < q) == 0",
       "`(k < q)`@5 E0303 right operand of '//': expected i32, got bool\n"
       "help: a condition is no divisor; to choose between two: `select((k < q), 2, 1)`\n"},
      {"select(q, 1, 2) == 1",
       "`q`@7 E0303 argument 1 of select: expected bool, got i32\n"
       "help: compare it: `q > 0`\n"},
      {"(k < q) == 1",
       "`(k < q)`@0 E0303 left operand of '==': expected f32 or i32, got bool\n"
       "help: make it a number: `select((k < q), 1, 0)`\n"},
      {"select(q > 0, k < 3, 1) or k == q",
       "`k < 3`@14 E0303 argument 2 of select: expected f32 or i32, got bool\n"
       "help: make it a number: `select(k < 3, 1, 0)`\n"},
      {"(k < q) < (k > 3)",
       "`(k < q)`@0 E0303 left operand of '<': expected f32 or i32, got bool\n"
       "help: make it a number: `select((k < q), 1, 0)`\n"
       "`(k > 3)`@10 E0303 right operand of '<': expected f32 or i32, got bool\n"
       "help: make it a number: `select((k > 3), 1, 0)`\n"},
  });
}

TEST(parse_error, exclude_comes_before_the_estimate) {
  EXPECT_TRUE(
      parse_expr("similar_q < tau or k0 < 64 or j == i", Site::kExclude, kErrorParameters).ok());
  expect_errors({
      {"p < tau",
       "`p`@0 E0302 'p' cannot be read in estimate.exclude\n"
       "note: p is the normalised estimate of the tile; it can be read in predictor.keep\n"
       "note: estimate.exclude reads n_q n_k h b i j n_i n_j q0 q1 k0 k1 similar_q similar_k n_h\n"
       "note: parameters: tau (scalar), threshold ([heads, q_tiles]), start ([n_q]), "
       "pairs ([heads, n_q, n_k]), bucket ([heads, 32])\n",
       Site::kExclude},
  });
}

TEST(parse_error, indices) {
  expect_errors({
      {"pairs > 0",
       "`pairs`@0 E0304 'pairs' has the shape [heads, n_q, n_k]: no index for n_q\n"
       "note: token dimensions are written out\nhelp: write `pairs[q, k]`\n"},
      {"bucket > 0",
       "`bucket`@0 E0304 'bucket' has the shape [heads, 32]: no index for 32\n"
       "note: dimensions of a fixed extent are written out\nhelp: write `bucket[0]`\n"},
      {"k >= start",
       "`start`@5 E0304 'start' has the shape [n_q]: no index for n_q\n"
       "note: token dimensions are written out\nhelp: write `start[q]`\n"},
      {"k0 >= start",
       "`start`@6 E0304 'start' has the shape [n_q]: no index for n_q\n"
       "note: token dimensions are written out\nhelp: write `start[q0]`\n",
       Site::kGate},
      {"k >= start[q, k]",
       "`start[q, k]`@5 E0304 'start' has the shape [n_q]: expected at most 1 index, got 2\n"},
      {"k >= tau[q]",
       "`tau[q]`@5 E0304 'tau' is a scalar: expected no index, got 1\n"
       "help: write `tau`, or declare what is indexed: \"shape\": \"[n_q]\"\n"},
      {"k >= q[1]",
       "`q[1]`@5 E0304 'q' is a variable and has no indices\n"
       "help: write `q`: it is the query token\n"},
      {"k >= start[q / 2]",
       "`q / 2`@11 E0303 index 1 of 'start': expected i32, got f32\n"
       "help: write `int(q / 2)`\n"},
      {"threshold > 0",
       "`threshold`@0 E0304 'threshold' has the shape [heads, q_tiles]: no index for q_tiles\n"
       "note: q_tiles is indexed by the query tile i, which attention.mask does not have\n"
       "help: of tiles of 128 write `q // 128` in brackets, or drop the dimension\n"},
  });
}

TEST(parse_error, literals_and_size) {
  expect_errors({
      {"q < 2147483648",
       "`2147483648`@4 E0306 number does not fit i32\n"
       "note: i32 holds -2147483648 to 2147483647\n"
       "help: write an f32 number: 2147483648.0\n"},
      {"q > -2147483649",
       "`-2147483649`@4 E0306 number does not fit i32\n"
       "note: i32 holds -2147483648 to 2147483647\n"
       "help: write an f32 number: -2147483649.0\n"},
      {"q < 1e39",
       "`1e39`@4 E0306 number does not fit f32\n"
       "note: f32 holds 1.4e-45 to 3.4028235e38, and 0.0\nhelp: write 0.0 or inf\n"},
  });
  EXPECT_TRUE(parse_expr("q > -2147483648", Site::kMask, {}).ok());
  const std::string deep = std::string(300, '(') + "q" + std::string(300, ')') + " < k";
  EXPECT_EQ(errors(deep, Site::kMask), "`(`@200 E0307 expression is nested more than 200 deep\n");
  std::string longest = "q";
  for (int n = 0; n < 2000; ++n) longest += " + k";
  EXPECT_EQ(parse_expr(longest + " > 0", Site::kMask, {}).errors.at(0).message,
            "expression has more than 2000 words and symbols");
  EXPECT_EQ(errors(std::string(65537, ' '), Site::kMask),
            "` `@0 E0307 expression has more than 65536 bytes\n");
  std::string strange = "q < k";
  for (int n = 0; n < 2000; ++n) strange += " ;";
  EXPECT_EQ(parse_expr(strange, Site::kMask, {}).errors.size(), 100U);
}

TEST(parse_error, all_errors_of_an_expression_are_reported_in_order) {
  const ParsedExpr parsed =
      parse_expr("max(k, ) < foo and min(q) > start or 1 && 2", Site::kMask, kErrorParameters);
  std::vector<Code> codes;
  for (const ExprError& error : parsed.errors) codes.push_back(error.code);
  EXPECT_EQ(codes,
            (std::vector<Code>{Code::kExprSyntax, Code::kExprUnknownName, Code::kExprArguments,
                               Code::kExprIndex, Code::kExprType, Code::kExprSyntax}));
  EXPECT_TRUE(parsed.expr.empty());
}

}  // namespace
}  // namespace lacuna

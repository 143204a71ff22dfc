// Which tensors of a mask bounds of a tile tell nothing of.
#include "compiler/expr/bounds/open_reads.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

std::string open_in(const std::string& mask) {
  const auto of_tokens = [](const char* name, std::vector<ParamDim> shape, bool monotone) {
    ParamSymbol symbol;
    symbol.name = name, symbol.type = ExprType::kI32, symbol.shape = std::move(shape);
    symbol.monotone = monotone;
    return symbol;
  };
  const std::vector<ParamSymbol> symbols = {
      of_tokens("ids", {ParamAxis::kNK}, false), of_tokens("start", {ParamAxis::kNQ}, true),
      of_tokens("m", {ParamAxis::kHeads, ParamAxis::kNQ, ParamAxis::kNK}, false),
      of_tokens("rows", {ParamAxis::kNQ, ParamAxis::kNK}, true),
      of_tokens("window", {ParamAxis::kHeads}, false)};
  const ParsedExpr parsed = parse_expr(mask, Site::kMask, symbols);
  EXPECT_TRUE(parsed.ok()) << mask;
  std::string names;
  for (const std::string& name : open_reads(parsed.expr)) names += name + " ";
  return names;
}

TEST(OpenReads, AreElementsThatDifferInATileAndDoNotRise) {
  EXPECT_EQ(open_in("k <= q and q - k < window"), "");
  EXPECT_EQ(open_in("k >= start[q]"), "");
  EXPECT_EQ(open_in("k >= start[q // 2 + 3]"), "");
  EXPECT_EQ(open_in("ids[k] == 3 or ids[q] == 4"), "ids ");
  EXPECT_EQ(open_in("ids[n_k - 1] == k"), "");
  EXPECT_EQ(open_in("m[q, k] != 0 and k >= start[q] and ids[k] > 0"), "m ids ");
  EXPECT_EQ(open_in("m[n_q - 1, k // 32] >> k % 32 & 1 == 1"), "m ");
  EXPECT_EQ(open_in("rows[q, k] > 0"), "rows ");
  EXPECT_EQ(open_in("rows[3, k] > 0"), "");
  EXPECT_EQ(open_in("start[ids[k]] < q"), "ids ");
}

std::string loose_in(const std::string& mask) {
  const std::vector<ParamSymbol> symbols = {{"chunk", ExprType::kI32, {}, false, 1},
                                            {"step", ExprType::kI32, {}, false}};
  const ParsedExpr parsed = parse_expr(mask, Site::kMask, symbols);
  EXPECT_TRUE(parsed.ok()) << mask;
  return loose_part(parsed.expr);
}

TEST(OpenReads, LooseAreComparisonsThatBoundsDoNotSettle) {
  EXPECT_EQ(loose_in("(q - k) * (q - k) <= 1024"), "(q - k) * (q - k) <= 1024");
  EXPECT_EQ(loose_in("abs(q - k) <= 32 and k <= q"), "");
  EXPECT_EQ(loose_in("k >= q // chunk * chunk and k <= q"), "k >= q // chunk * chunk");
  EXPECT_EQ(loose_in("abs(q - k) * step < 100"), "abs(q - k) * step < 100");
  EXPECT_EQ(loose_in("k <= q * n_k // n_q"), "k <= q * n_k // n_q");
  EXPECT_EQ(loose_in("q * k < 2000"), "q * k < 2000");
  EXPECT_EQ(loose_in("int(log2(max(k, 1))) == 3"), "log2(max(k, 1))");
  EXPECT_EQ(loose_in("q - k < q // 2"), "q - k < q // 2");
  EXPECT_EQ(loose_in("q >= 0 and k <= q + n_k - n_q"), "");
}

TEST(OpenReads, LooseAreRemaindersAndBitsOfTokens) {
  EXPECT_EQ(loose_in("k <= q and q // 64 == k // 64"), "");
  EXPECT_EQ(loose_in("q // 24 // 7 == k // 24 // 7 and q % 24 // 7 == k % 24 // 7"), "q % 24");
  EXPECT_EQ(loose_in("k < n_k % 64"), "");
  EXPECT_EQ(loose_in("k >= q - q % chunk"), "");
  EXPECT_EQ(loose_in("k >= q - q % chunk and q % chunk < 3"), "q % chunk");
  EXPECT_EQ(loose_in("k >= q - q % step"), "q % step");
  EXPECT_EQ(loose_in("k <= q and (q ^ k) < 64"), "q ^ k");
  EXPECT_EQ(loose_in("hash(3, q // 16) < 0"), "hash(3, q // 16)");
}

}  // namespace
}  // namespace lacuna

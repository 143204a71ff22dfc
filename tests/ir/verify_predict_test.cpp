// Rules of estimate, select and compact, each broken once.
#include "compiler/expr/text/parse.hpp"
#include "tests/ir/violations.hpp"

namespace lacuna {
namespace {

class PredictRule : public testing::TestWithParam<TextViolation> {};

TEST_P(PredictRule, IsTheDiagnostic) {
  const TextViolation& violation = GetParam();
  EXPECT_EQ(verify_text(replaced(violation.text, violation.from, violation.to)),
            violation.messages);
}

const std::string kKindsRule =
    "estimate %p: rows and columns are mean and mean, min_max or tokens, mean(n) and mean(m), "
    "antidiagonal(n) both, or all or some of the tokens and tokens\n";
const std::string kCellsRule =
    "estimate %p: cells and strides have at least 2 tokens and divide the tiles, last rows are at "
    "least 1\n";
const std::string kBitsRule =
    "estimate %p: means of tiles are compared in 32 bits, tokens in 16, 8 or 4, cells and some of "
    "the queries in 16\n";
const std::string kFromRule =
    "estimate %p: with from, rows and columns are means of tiles, and weights are relative to "
    "these, "
    "if to anything\n";
const std::string kIndexRule =
    "estimate %p: an index has 1 to 128 heads, vectors of 32 to 256 elements in steps of 16 and "
    "formulas of both; it compares tokens in 16 bits, and no lse of exact logits normalises\n";
const std::string kDimsRule =
    "estimate %p: dims are ascending bands within the head dimension, of what is compared in 16 or "
    "32 bits, and no lse of exact logits normalises\n";

const TextViolation kPredict[] = {
    {"Kinds", kPredictedText, "rows=tokens, columns=tokens, bits=4", "rows=tokens, bits=4",
     kKindsRule},
    {"KindsOfCells", kGatheredText, "columns=tokens",
     "rows=antidiagonal(4), columns=antidiagonal(8)", kKindsRule + kBitsRule + kComparedRule},
    {"Cells", kGatheredText, "columns=tokens", "rows=antidiagonal(16), columns=antidiagonal(16)",
     kCellsRule + kBitsRule + kComparedRule},
    {"CellsOfMeans", kGatheredText, "columns=tokens", "rows=mean(8), columns=mean(16), bits=16",
     kCellsRule + kComparedRule},
    {"CellsWithTokens", kGatheredText, "columns=tokens", "rows=mean(8), columns=tokens, bits=16",
     kKindsRule + kComparedRule},
    {"BoundsOfTokens", kGatheredText, "columns=tokens", "rows=tokens, columns=min_max, bits=16",
     kKindsRule + kComparedRule},
    {"BoundsOfMeans", kGatheredText, "columns=tokens", "columns=min_max", kComparedRule},
    {"FromOfTokens", kGatheredText, "%q_summary, %k, columns=tokens",
     "from=\"0.5\", columns=tokens", kFromRule},
    {"FromCompares", kGatheredText, "columns=tokens", "from=\"0.5\"", kComparedRule},
    {"IndexOfShortVectors", kGatheredText, "%q_summary, %k, columns=tokens",
     "rows=tokens, columns=tokens, bits=16, index_heads=1, index_dim=24, index_q=\"0.5\", "
     "index_k=\"0.5\"",
     kIndexRule},
    {"IndexWithoutKeys", kGatheredText, "%q_summary, %k, columns=tokens",
     "rows=tokens, columns=tokens, bits=16, index_heads=1, index_dim=32, index_q=\"0.5\"",
     kIndexRule},
    {"IndexCompares", kGatheredText, "%q_summary, %k, columns=tokens",
     "%q, %k, rows=tokens, columns=tokens, bits=16, index_heads=1, index_dim=32, "
     "index_q=\"0.5\", index_k=\"0.5\"",
     kComparedRule},
    {"NothingCompared", kGatheredText, "%q_summary, %k, columns=tokens", "columns=tokens",
     kComparedRule},
    {"DimsBeyondTheHead", kGatheredText, "columns=tokens", "columns=tokens, dims=\"32:80\"",
     kDimsRule},
    {"DimsThatFall", kGatheredText, "columns=tokens", "columns=tokens, dims=\"32:64,0:16\"",
     kDimsRule},
    {"SumOfRowMaximum", kGatheredText, "columns=tokens",
     "columns=tokens, reduce=sum, normalise=row_max",
     "estimate %p: weights relative to the row's largest logit are not summed\n"},
    {"Temperature", kGatheredText, "columns=tokens", "columns=tokens, temperature=0",
     "estimate %p: temperature is a positive finite number, 1 where an lse of exact logits "
     "normalises\n"},
    {"Bits", kGatheredText, "columns=tokens", "columns=tokens, bits=8", kBitsRule + kComparedRule},
    {"SummaryOfOtherTiles", kGatheredText, "summarise %q, tile=128", "summarise %q, tile=64",
     kComparedRule},
    {"UnscaledIntegers", kPredictedText, "q_scale=%estimate_q_scale, k_scale=%estimate_k_scale, ",
     "", kComparedRule + "estimate %p: " + kBiasRule},
    {"OtherIntegers", kPredictedText, "k_scale=%estimate_k_scale", "k_scale=%k_scale",
     kComparedRule + "estimate %p: " + kBiasRule},
    {"GroupsOfIntegers", kPredictedText, "exclude=\"similar_k < tau\"",
     "group=block, exclude=\"similar_k < tau\"", kComparedRule},
    {"EstimateBias", kPredictedText, "k_scale=%estimate_k_scale, row_bias=%row_bias",
     "k_scale=%estimate_k_scale", "estimate %p: " + kBiasRule},
    {"BiasOfUnsmoothed", kPredictedText, "quantise %k_ordered, mean=%k_mean, bits=4",
     "quantise %k_ordered, bits=4", "estimate %p: " + kBiasRule},
    {"ExactTensors", kPredictedText, "exact_k=%k_ordered", "exact_k=%v_ordered",
     "estimate %p: exact_q and exact_k are q and k, given where an lse of exact logits "
     "normalises\n"},
    {"ExactTensorsForLse", kPredictedText, "normalise=lse, mask", "normalise=softmax, mask",
     "estimate %p: exact_q and exact_k are q and k, given where an lse of exact logits "
     "normalises\nestimate %p: only an lse of exact logits has a reference\n"},
    {"PreviousLse", kGatheredText, "columns=tokens",
     "rows=last(64), columns=tokens, bits=16, normalise=previous_lse, previous_lse=%v",
     kComparedRule +
         "estimate %p: previous_lse is the input of this name, given where it normalises\n"},
    {"PreviousLseUnread", kGatheredText, "columns=tokens",
     "columns=tokens, previous_lse=%previous_lse",
     "estimate %p: previous_lse is the input of this name, given where it normalises\n"},
    {"LseOfMeans", kGatheredText, "columns=tokens",
     "columns=tokens, normalise=previous_lse, previous_lse=%previous_lse",
     "estimate %p: an lse normalises rows of tokens: means and antidiagonals have none\n"},
    {"Reference", kGatheredText, "columns=tokens", "columns=tokens, reference=\"k < 32\"",
     "estimate %p: only an lse of exact logits has a reference\n"},
    {"ExcludeOfLast", kGatheredText, "%q_summary, %k, columns=tokens",
     "%q, %k, rows=last(64), columns=tokens, bits=16, exclude=\"j < 3\"",
     "estimate %p: last rows serve all tiles of queries alike: exclude cannot tell these apart\n"},
    {"ExcludeReads", kPredictedText, "similar_k=%k_similarity, ", "",
     "estimate %p: similar_q and similar_k are similarities of the estimate's tiles, given where "
     "exclude reads them\n"},
    {"SimilarityOfOtherTiles", kPredictedText, "mean=%k_mean, tile=64, form=gram_max",
     "mean=%k_mean, tile=32, form=gram_max",
     "estimate %p: similar_q and similar_k are similarities of the estimate's tiles, given where "
     "exclude reads them\n"},
    {"EstimateScale", kGatheredText, "columns=tokens, scale=0.125", "columns=tokens",
     "estimate %p: scale is a positive finite number\n"},
    {"EstimateTiles", kGatheredText, "scale=0.125, tile_q=128, tile_k=8", "scale=0.125, tile_q=128",
     "estimate %p: tile_q and tile_k are between 1 and 1024 tokens\n" + kEstimatedRule},
    {"EstimateType", kGatheredText, "[batch, heads, keep_q_tiles, keep_k_tiles] f32\n",
     "[batch, heads, keep_q_tiles, keep_words] f32\n",
     "estimate %p: estimate defines p and score, a number f32 for each tile\n"},
    {"KeepReadsP", kGatheredText, "select p=%p, ", "select ", kEstimatedRule},
    {"KeepReadsScore", kPredictedText, "score=%score, ", "", kEstimatedRule},
    {"SwappedEstimates", kPredictedText, "select p=%p, score=%score", "select p=%score, score=%p",
     kEstimatedRule},
    {"KeepReadsSimilarity", kPredictedText, "similar_q=%q_similarity, ", "",
     "select %kept: similar_q and similar_k are similarities of the select's tiles, given where "
     "keep reads them\n"},
    {"NoKeep", kGatheredText, "p=%p, keep=\"p > 0.5 / n_k\"", "p=%p",
     "select %kept: keep is given; keep and mask yield bool\n"},
    {"SelectTiles", kGatheredText, "n_k\", tile_q=128, tile_k=8", "n_k\", tile_q=128",
     kEstimatedRule + "select %kept: tile_q and tile_k are between 1 and 1024 tokens\nattend %o: " +
         kColumnsRule},
    {"SelectType", kGatheredText, "keep_words] u32", "keep_words] i32",
     "select %kept: select defines the bits of each work tile, in words of u32\n"},
    {"CompactBits", kPredictedText, "keep_q=128, keep_k=64", "keep_q=128, keep_k=32",
     "compact %list_indices: bits are those of a select with tiles of keep_q x keep_k tokens\n"},
    {"CompactTiles", kPredictedText, "keep_k=64, tile_q=64, tile_k=32",
     "keep_k=64, tile_q=128, tile_k=64",
     "compact %list_indices: a tile of the bits is a whole number of attend's tiles, which may "
     "still be open (0)\n"},
    {"CompactTypes", kPredictedText, "[batch, heads, q_tiles, capacity] i32",
     "[batch, heads, q_tiles, k_tiles] i32",
     "compact %list_indices: compact defines list_indices and list_counts, of the types of the "
     "inputs of these names\n"},
};
INSTANTIATE_TEST_SUITE_P(Ops, PredictRule, testing::ValuesIn(kPredict),
                         [](const auto& violation) { return violation.param.name; });

TEST(PredictRules, MassNeedsANormalisedEstimate) {
  const std::string logits =
      replaced(kGatheredText, "columns=tokens, scale", "columns=tokens, normalise=none, scale");
  EXPECT_EQ(verify_text(logits), "");
  EXPECT_EQ(verify_text(replaced(logits, "p > 0.5 / n_k", "mass_before < 0.5")),
            "select %kept: mass_before sums weights: the estimate is normalised\n");
}

TEST(PredictRules, GivenScoresNeedNoTensors) {
  const std::string given = replaced(kGatheredText, "%q_summary, %k, columns=tokens",
                                     "from=\"1.0 / (1 + abs(i - j))\", normalise=row_max");
  EXPECT_EQ(verify_text(given), "");
  const Program program = must_parse(given);
  EXPECT_EQ(must_parse(print_program(program)), program);
}

TEST(PredictRules, ExpressionsYieldBool) {
  Program program = must_parse(kPredictedText);
  const Expr number = parse_expr("s", Site::kScore, {}).expr;
  find_op<Estimate>(program)->reference = find_op<Select>(program)->mask =
      find_op<Compact>(program)->mask = number;
  Diagnostics diagnostics;
  verify_program(program, diagnostics);
  EXPECT_EQ(
      messages(diagnostics),
      "estimate %p: mask, reference and exclude yield bool, from and the formulas of an index "
      "f32\n"
      "estimate %p: expressions know the program's parameters, in its order\n"
      "select %kept: keep is given; keep and mask yield bool\n"
      "select %kept: expressions know the program's parameters, in its order\n"
      "compact %list_indices: mask yields bool and knows the program's parameters, in its order\n");
}
}  // namespace
}  // namespace lacuna

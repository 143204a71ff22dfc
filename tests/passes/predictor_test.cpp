// Specs with predictors, quantisation and permutation: which ops they become.
#include "compiler/ir/fields.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

Program build(const SpecDocument& document) {
  Diagnostics diagnostics;
  Program program = build_program(document, {}, diagnostics);
  verify_program(program, diagnostics);
  EXPECT_EQ(text_of(diagnostics), "");
  return program;
}

std::string build_errors(const SpecDocument& document) {
  Diagnostics diagnostics;
  (void)build_program(document, {}, diagnostics);
  return text_of(diagnostics);
}

/// "q_mean=smooth kept=select ...", inputs by their names alone.
std::string ops_of(const Program& program) {
  std::string text;
  for (const Node& node : program.nodes) {
    const std::string& result = program.values[static_cast<std::size_t>(node.results[0])].name;
    text += text.empty() ? result : " " + result;
    std::visit(
        [&]<class T>(const T&) {
          if (!std::is_same_v<T, Input>) text += "=" + std::string(Fields<T>::name);
        },
        node.op);
  }
  return text;
}

constexpr const char* kStatic =
    R"("attention": {"mask": "k <= q"}, "predictor": {"keep": "k0 < 128 or q0 - k1 < 256"})";

TEST(BuildPredictor, AStaticPatternTakesNoEstimate) {
  const Program program = build(read_document(kStatic));
  EXPECT_EQ(ops_of(program), "q k v kept=select list_indices=compact o=attend");
  EXPECT_EQ(find_op<Select>(program)->tile_q, 128);
}

TEST(BuildPredictor, PooledTilesWithSimilarityAndIntegers) {
  const Program program = build(read_document(
      R"("predictor": {"smooth": ["k"], "heads": "shared", "similarity": "gram_max",
           "estimate": {"q": "mean", "k": "mean", "exclude": "similar_k < 0.5"},
           "keep": "mass_before < 0.9 or similar_k < 0.5"},
         "quantise": {"qk": {"bits": 8, "group": "warp"}, "v": {"bits": 8, "range": 2.25}})"));
  EXPECT_EQ(ops_of(program),
            "q k v k_mean=smooth q_summary=summarise k_summary=summarise k_similarity=similarity "
            "row_bias=project p=estimate kept=select q_values=quantise k_values=quantise "
            "v_values=quantise_values list_indices=compact o=attend");
  EXPECT_TRUE(find_op<Select>(program)->shared_heads);
  EXPECT_EQ(find_op<Similarity>(program)->form, SimilarityForm::kGramMax);
  EXPECT_EQ(find_op<QuantiseValues>(program)->range, 2.25f);
  EXPECT_EQ(find_op<Estimate>(program)->bits, 32);
  EXPECT_EQ(attend_of(program).qk_group, QuantGroup::kWarp);
}

TEST(BuildPredictor, TokensInFourBitsWithBothBiases) {
  const Program program = build(read_document(
      R"("predictor": {"tile": {"q": 64, "k": 32}, "smooth": ["q", "k"],
           "estimate": {"q": "tokens", "k": "tokens", "bits": 4, "normalise": "lse",
                        "reference": "k < 32"}, "keep": "p > 0.1"})"));
  EXPECT_EQ(ops_of(program),
            "q k v q_mean=smooth k_mean=smooth estimate_q_values=quantise "
            "estimate_k_values=quantise row_bias=project column_bias=project p=estimate "
            "kept=select list_indices=compact o=attend");
  const auto* estimate = find_op<Estimate>(program);
  EXPECT_EQ(estimate->exact_q, 0);
  EXPECT_EQ(find_op<Quantise>(program)->tile, 64);
}

TEST(BuildPredictor, KeysOfAColumnShareTheGroupsOf32) {
  const Program program = build(read_document(
      R"("predictor": {"tile": {"q": 128, "k": 8},
           "estimate": {"q": "tokens", "k": "tokens", "bits": 8, "group": "block"},
           "keep": "p > 0.1"})"));
  const auto* estimate = find_op<Estimate>(program);
  EXPECT_EQ(std::get<Quantise>(definition_of(program, estimate->k).op).tile, 32);
  EXPECT_EQ(std::get<Quantise>(definition_of(program, estimate->q).op).tile, 128);
}

/// Softmax does not see what smoothing takes from the logits of a row; other uses of them do.
TEST(BuildPredictor, SmoothsASummaryOnlyWhereThatDoesNotShow) {
  const auto smooths_summary = [](const std::string& estimate, const std::string& keep) {
    const Program program = build(read_document(
        R"("quantise": {"qk": {"bits": 8}}, "predictor": {"smooth": ["q", "k"], "estimate": {)" +
        estimate + R"("q": "mean", "k": "mean"}, "keep": ")" + keep + "\"}"));
    const auto* estimated = find_op<Estimate>(program);
    EXPECT_EQ(std::get<Summarise>(definition_of(program, estimated->q).op).mean, -1);
    return std::get<Summarise>(definition_of(program, estimated->k).op).mean >= 0;
  };
  EXPECT_TRUE(smooths_summary("", "p > 0.1"));
  EXPECT_FALSE(smooths_summary("", "p > 0.1 or score > 3.0"));
  EXPECT_FALSE(smooths_summary(R"("normalise": "none", )", "rank < 8"));
}

TEST(BuildPredictor, PermutesAllTensorsAndPutsResultsBack) {
  const Program program = build(read_document(R"("permute": {"hilbert": [4, 8, 8]})"));
  EXPECT_EQ(ops_of(program),
            "q k v order q_ordered=permute k_ordered=permute v_ordered=permute o_ordered=attend "
            "o=unpermute lse=unpermute");
  SpecDocument silent = read_document(R"("permute": "external", "attention": {"lse": false})");
  EXPECT_EQ(ops_of(build(silent)),
            "q k v order q_ordered=permute k_ordered=permute v_ordered=permute o_ordered=attend "
            "o=unpermute");
}

TEST(BuildPredictor, PreviousLseIsAnInputOfTheCaller) {
  const std::string spec =
      R"("predictor": {"tile": {"k": 1}, "estimate": {"q": "tokens", "k": "tokens",
           "normalise": "previous_lse"}, "keep": "p > 0.5 / n_k", "reuse": 15})";
  EXPECT_EQ(ops_of(build(read_document(spec))),
            "q k v previous_lse p=estimate kept=select o=attend");
}

TEST(BuildPredictor, ColumnsAreGatheredUnlessSomethingSpeaksAgainstIt) {
  const auto gathers = [](const std::string& fields) {
    return attend_of(build(read_document(fields))).columns >= 0;
  };
  const std::string columns = R"("predictor": {"tile": {"k": 16}, "keep": "k0 < 128"})";
  EXPECT_TRUE(gathers(R"("predictor": {"tile": {"k": 1}, "keep": "k0 < 128"})"));
  EXPECT_TRUE(gathers(columns));
  EXPECT_FALSE(gathers(columns + R"(, "loader": "cp_async")"));
  EXPECT_FALSE(gathers(columns + R"(, "gate": {"skip": "gap < -9", "skips": ["pv"]})"));
  EXPECT_FALSE(gathers(columns + R"(, "tile": {"order": "descending"})"));
  EXPECT_FALSE(gathers(columns + R"(, "tile": {"q": 64})"));
  EXPECT_FALSE(gathers(columns + R"(, "quantise": {"qk": {"bits": 8}})"));
  EXPECT_FALSE(gathers(kStatic));
}

TEST(BuildPredictor, ALoaderThatCannotIsRefused) {
  SpecDocument document = read_document(R"("predictor": {"tile": {"k": 8}, "keep": "k0 < 128"})");
  document.spec.loader.values = {Loader::kCpAsync};
  EXPECT_EQ(build_errors(document),
            "error : loader: cp_async does not go with the spec\n"
            "note: cp_async loads tiles of at least 16 neighbouring keys, predictor.tile.k is 8\n"
            "help: write gather\n");
  document.spec.loader.values = {Loader::kGather};
  document.spec.predictor->tile_k = 64;
  EXPECT_EQ(build_errors(document),
            "error : loader: gather does not go with the spec\n"
            "note: gather loads columns of 1, 8 or 16 keys, predictor.tile.k is 64\n"
            "help: write cp_async\n");
  document.spec.predictor->tile_k = 8;
  document.spec.quantise.v_bits = 8;
  EXPECT_EQ(build_errors(document),
            "error : loader: gather does not go with the spec\n"
            "note: gather takes 16-bit keys and values\n");
  document.spec.predictor.reset();
  EXPECT_EQ(build_errors(document),
            "error : loader: gather does not go with the spec\n"
            "note: gather loads the keys that a predictor keeps, and there is none\n"
            "help: write cp_async\n");
}

}  // namespace
}  // namespace lacuna

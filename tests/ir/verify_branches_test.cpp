// Rules of branches, each broken once.
#include "tests/ir/violations.hpp"

namespace lacuna {
namespace {

/// The second of three branches, over means.
constexpr const char* kBranchText = R"(program @branch(head_dim=128, dtype=bf16) {
  param gates : f32[heads, n_q, 3], range=[0, 1]
  param n_tokens : i32, range=[0, inf]
  %q = input name="q" : [batch, heads, n_q, d] bf16
  %k = input name="k" : [batch, heads_kv, n_tokens, d] bf16
  %v = input name="v" : [batch, heads_kv, n_tokens, d] bf16
  %k_means = means %k, tokens=32 : [batch, heads_kv, n_k, d] bf16
  %v_means = means %v, tokens=32 : [batch, heads_kv, n_k, d] bf16
  %o_branch = attend %q, %k_means, %v_means, mask="min(k * 32 + 31, n_tokens - 1) <= q + n_tokens - n_q", scale=0.08838835, lse=false : [batch, heads, n_q, d] bf16
  %sum = merge_branch %o_branch, index=1, count=3, weight="gates[q, 1]" : [batch, heads, n_q, d] f32
}
)";

/// The last of two, merged by their log-sum-exps.
constexpr const char* kMergedText = R"(program @merged(head_dim=64, dtype=f16) {
  %q = input name="q" : [batch, heads, n_q, d] f16
  %k = input name="k" : [batch, heads_kv, n_k, d] f16
  %v = input name="v" : [batch, heads_kv, n_k, d] f16
  %o_branch, %lse_branch = attend %q, %k, %v, scale=0.125 : [batch, heads, n_q, d] f16, [batch, heads, n_q] f32
  %o, %lse = merge_branch %o_branch, lse=%lse_branch, index=1, count=2, lse_base=2 : [batch, heads, n_q, d] f16, [batch, heads, n_q] f32
}
)";

/// The first of two, over the second half of rows of 128.
constexpr const char* kBandText = R"(program @band(head_dim=64, head_dim_v=128, dtype=bf16) {
  %q = input name="q", dims="64:128" : [batch, heads, n_q, d] bf16
  %k = input name="k", dims="64:128" : [batch, heads_kv, n_k, d] bf16
  %v = input name="v" : [batch, heads_kv, n_k, d] bf16
  %o_branch = attend %q, %k, %v, scale=0.125, lse=false : [batch, heads, n_q, d] bf16
  %sum = merge_branch %o_branch, count=2, weight="-1.0" : [batch, heads, n_q, d] f32
}
)";

/// The first of two, in which means of queries attend.
constexpr const char* kPooledText = R"(program @pooled(head_dim=64, dtype=bf16) {
  param n_queries : i32, range=[0, inf]
  %q = input name="q" : [batch, heads, n_queries, d] bf16
  %k = input name="k" : [batch, heads_kv, n_k, d] bf16
  %v = input name="v" : [batch, heads_kv, n_k, d] bf16
  %q_means = means %q, tokens=64 : [batch, heads, n_q, d] bf16
  %o_branch = attend %q_means, %k, %v, mask="k <= q * 64 + n_k - n_queries", scale=0.125, lse=false : [batch, heads, n_q, d] bf16
  %sum = merge_branch %o_branch, count=2, queries=64, weight="1.0" : [batch, heads, n_queries, d] f32
}
)";

TEST(BranchPrograms, AreSoundAndSurviveARoundTrip) {
  for (const char* text : {kBranchText, kMergedText, kBandText, kPooledText}) {
    EXPECT_EQ(verify_text(text), "");
    EXPECT_EQ(print_program(must_parse(text)), text);
  }
}

class BranchRule : public testing::TestWithParam<TextViolation> {};

TEST_P(BranchRule, IsTheDiagnostic) {
  const TextViolation& violation = GetParam();
  EXPECT_EQ(verify_text(replaced(violation.text, violation.from, violation.to)),
            violation.messages);
}

const TextViolation kBranches[] = {
    {"MeansOfMeans", kBranchText, "means %v, tokens=32", "means %k_means, tokens=32",
     "means %v_means: means are of the inputs q, k and v, as they are or permuted, 2 to 1024 "
     "tokens "
     "each; of k and v of e4m3 1, too\n"
     "attend %o_branch: v comes from the input of this name: as it is, permuted, or in e4m3 with "
     "its "
     "scale\n"},
    {"MeansOfOne", kBranchText, "means %v, tokens=32", "means %v, tokens=1",
     "means %v_means: means are of the inputs q, k and v, as they are or permuted, 2 to 1024 "
     "tokens "
     "each; of k and v of e4m3 1, too\n"},
    {"OtherQueriesThanThoseOfMeans", kPooledText, "queries=64", "queries=32",
     "merge_branch %sum: queries is the tokens of a mean of them, else 1, and goes with weight\n"},
    {"QueriesWithoutMeans", kBandText, "count=2", "count=2, queries=64",
     "merge_branch %sum: queries is the tokens of a mean of them, else 1, and goes with weight\n"
     "merge_branch %sum: merge_branch defines o, f32 but in the last branch, and without weight "
     "lse\n"},
    {"AnOrderOfTokensThatAreNot", kBranchText, "merge_branch %o_branch",
     "merge_branch %o_branch, order=%q",
     "merge_branch %sum: order is the input of this name where tokens are permuted, else there is "
     "none\n"},
    {"QueryTokensOfNoMeans", kMergedText, "%q = input name=\"q\" : [batch, heads, n_q, d] f16",
     "%q = input name=\"q\" : [batch, heads, n_queries, d] f16",
     "input %q: an input defines one value, whose type follows from the input's name\n"},
    {"MeansType", kBranchText, "means %v, tokens=32 : [batch, heads_kv, n_k, d] bf16",
     "means %v, tokens=32 : [batch, heads_kv, n_tokens, d] bf16",
     "means %v_means: means defines rows of x's type, n_k of them, or of queries n_q\n"},
    {"TokensOfNoMeans", kMergedText, "%k = input name=\"k\" : [batch, heads_kv, n_k, d] f16",
     "%k = input name=\"k\" : [batch, heads_kv, n_tokens, d] f16",
     "input %k: an input defines one value, whose type follows from the input's name\n"},
    {"MergedOutput", kBranchText, "merge_branch %o_branch", "merge_branch %v_means",
     "merge_branch %sum: the results of attend are merged: o, and its lse where there is no "
     "weight\n"
     "merge_branch %sum: merge_branch defines o, f32 but in the last branch, and without weight "
     "lse\n"},
    {"NeitherWeightNorLse", kBranchText, ", weight=\"gates[q, 1]\"", "",
     "merge_branch %sum: the results of attend are merged: o, and its lse where there is no "
     "weight\n"
     "merge_branch %sum: merge_branch defines o, f32 but in the last branch, and without weight "
     "lse\n"},
    {"BranchBeyondTheLast", kBranchText, "index=1, count=3", "index=3, count=3",
     "merge_branch %sum: there are 2 to 4 branches, and index is one of them\n"},
    {"OneBranch", kMergedText, "index=1, count=2", "count=1",
     "merge_branch %o: there are 2 to 4 branches, and index is one of them\n"},
    {"BandOfValues", kBandText, "name=\"v\"", "name=\"v\", dims=\"0:64\"",
     "input %v: dims of an input are one band, as wide as the program's rows, of q or k\n"},
    {"BandOfAnotherWidth", kBandText, "name=\"k\", dims=\"64:128\"", "name=\"k\", dims=\"64:96\"",
     "input %k: dims of an input are one band, as wide as the program's rows, of q or k\n"},
    {"SeveralBands", kBandText, "name=\"q\", dims=\"64:128\"", "name=\"q\", dims=\"0:32,64:96\"",
     "input %q: dims of an input are one band, as wide as the program's rows, of q or k\n"},
    {"SumType", kBranchText, "index=1, count=3", "index=2, count=3",
     "merge_branch %sum: merge_branch defines o, f32 but in the last branch, and without weight "
     "lse\n"},
};
INSTANTIATE_TEST_SUITE_P(Ops, BranchRule, testing::ValuesIn(kBranches),
                         [](const auto& info) { return std::string(info.param.name); });

/// n_tokens is what means are made by.
TEST(BranchPrograms, MeansNeedTheNumberOfTokens) {
  std::string text = replaced(kBranchText, "  param n_tokens : i32, range=[0, inf]\n", "");
  text = replaced(text, "mask=\"min(k * 32 + 31, n_tokens - 1) <= q + n_tokens - n_q\", ", "");
  const std::string rule =
      ": the number of tokens is an i32 parameter, n_tokens or of queries n_queries, a scalar\n";
  EXPECT_EQ(verify_text(text), "means %k_means" + rule + "means %v_means" + rule);
}

}  // namespace
}  // namespace lacuna

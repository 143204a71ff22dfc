// Rules of inputs, order, means, summaries and integers, each broken once.
#include "tests/ir/violations.hpp"

namespace lacuna {
namespace {

class PrepareRule : public testing::TestWithParam<TextViolation> {};

TEST_P(PrepareRule, IsTheDiagnostic) {
  const TextViolation& violation = GetParam();
  EXPECT_EQ(verify_text(replaced(violation.text, violation.from, violation.to)),
            violation.messages);
}

const TextViolation kPrepare[] = {
    {"InputName", kGatheredText, "input name=\"previous_lse\"", "input name=\"bias\"",
     "input %previous_lse: inputs are q, k, v, list_indices, list_counts, order and "
     "previous_lse\ninput %previous_lse: an input defines one value, whose type follows from the "
     "input's name\n"},
    {"InputType", kPredictedText, "\"order\" : [n_q] i32", "\"order\" : [n_k] i32",
     "input %order: an input defines one value, whose type follows from the input's name\n"},
    {"PermutedTensor", kPredictedText, "permute %v, %order", "permute %k_ordered, %order",
     "permute %v_ordered: the inputs q, k and v are permuted, into values of their "
     "types\nquantise_values %v_values: x is v, as it is or permuted\n"},
    {"PermuteOrder", kPredictedText, "permute %v, %order", "permute %v, %v",
     "permute %v_ordered: order is the input of this name\n"},
    {"PermuteType", kPredictedText, "permute %v, %order : [batch, heads_kv, n_k, d] bf16",
     "permute %v, %order : [batch, heads, n_k, d] bf16",
     "permute %v_ordered: the inputs q, k and v are permuted, into values of their "
     "types\nquantise_values %v_values: quantise_values defines codes e4m3 of x's shape and a "
     "scale f32 for each channel\n"},
    {"UnpermuteOrder", kPredictedText, "unpermute %lse_ordered, %order",
     "unpermute %lse_ordered, %q",
     "unpermute %lse: order is the input of this name\n" + kOneOrderRule},
    {"UnpermutedResult", kPredictedText, "unpermute %o_ordered", "unpermute %q_ordered",
     "unpermute %o: the results of attend are put back, into values of their types\n"},
    {"OneTokenOrder", kPredictedText, "%q_similarity = similarity %q_ordered",
     "%q_similarity = similarity %q", kOneOrderRule},
    {"SmoothedTensor", kPredictedText, "%k_summary = summarise %k_ordered, mean=%k_mean",
     "%v_mean = smooth %v_ordered : [batch, heads_kv, d] f32\n  %k_summary = summarise %k_ordered, "
     "mean=%k_mean",
     "smooth %v_mean: x is q or k, as it is or permuted\n"},
    {"SmoothType", kPredictedText, "smooth %k_ordered : [batch, heads_kv, d] f32",
     "smooth %k_ordered : [batch, heads, d] f32",
     "smooth %k_mean: smooth defines the mean of each head, f32\n"},
    {"SummarisedMean", kPredictedText, "summarise %k_ordered, mean=%k_mean",
     "summarise %k_ordered, mean=%q_mean", "summarise %k_summary: mean is the mean of x\n"},
    {"SummarisedTile", kPredictedText, "%k_mean, tile=64 : [batch, heads_kv, keep_k_tiles, d]",
     "%k_mean : [batch, heads_kv, keep_k_tiles, d]",
     "summarise %k_summary: tile is between 1 and 1024 tokens\n"},
    {"SummaryType", kPredictedText, "tile=64 : [batch, heads_kv, keep_k_tiles, d] f32",
     "tile=64 : [batch, heads_kv, keep_q_tiles, d] f32",
     "summarise %k_summary: summarise defines a vector for each tile, f32, or for each cell, in "
     "x's element type\n"},
    {"BoundsOfSmoothed", kPredictedText, "tile=64 : [batch, heads_kv, keep_k_tiles, d] f32",
     "tile=64, bounds=true : [batch, heads_kv, keep_k_tiles, bounds] f32",
     "summarise %k_summary: bounds are those of tiles of k, without a mean\n"},
    {"SummarisedTensor", kPredictedText, "summarise %k_ordered, mean=%k_mean, tile=64",
     "summarise %v_ordered, tile=64", "summarise %k_summary: x is q or k, as it is or permuted\n"},
    {"SimilarTensor", kPredictedText, "similarity %q_ordered, tile=128",
     "similarity %q_mean, tile=128",
     "similarity %q_similarity: x is q or k, as it is or permuted\nsimilarity %q_similarity: "
     "similarity defines a number for each tile, f32\nselect %kept: similar_q and similar_k are "
     "similarities of the select's tiles, given where keep reads them\n"},
    {"SimilarityMean", kPredictedText, "%q_similarity = similarity %q_ordered,",
     "%q_similarity = similarity %q_ordered, mean=%k_mean,",
     "similarity %q_similarity: mean is the mean of x\n"},
    {"SimilarityTile", kPredictedText, "mean=%k_mean, tile=64, form=gram_max",
     "mean=%k_mean, tile=2048, form=gram_max",
     "similarity %k_similarity: tile is between 1 and 1024 tokens\nestimate %p: similar_q and "
     "similar_k are similarities of the estimate's tiles, given where exclude reads them\n"},
    {"SimilarityType", kPredictedText, "tile=128 : [batch, heads, keep_q_tiles] f32",
     "tile=128 : [batch, heads, keep_q_tiles] i32",
     "similarity %q_similarity: similarity defines a number for each tile, f32\n"},
    {"QuantisedTensor", kPredictedText, "quantise %k_ordered, mean=%k_mean, bits=4",
     "quantise %v_ordered, bits=4",
     "quantise %estimate_k_values: x is q or k, as it is or permuted\n" + kComparedRule +
         "estimate %p: " + kBiasRule},
    {"QuantisedMean", kPredictedText, "quantise %q_ordered, mean=%q_mean, bits=4",
     "quantise %q_ordered, mean=%k_mean, bits=4",
     "quantise %estimate_q_values: mean is the mean of x\nestimate %p: " + kBiasRule},
    {"QuantisedBits", kPredictedText, "quantise %k_ordered, mean=%k_mean, bits=4",
     "quantise %k_ordered, mean=%k_mean, bits=5",
     "quantise %estimate_k_values: integers have 8 or 4 bits\n" + kComparedRule},
    {"QuantisedTile", kPredictedText, "bits=4, group=thread, tile=64",
     "bits=4, group=thread, tile=1056",
     "quantise %estimate_k_values: tile is between 1 and 1024 tokens, or 0 until attend's tiles "
     "are chosen\n"},
    {"ThreadGroupsOfKeys", kPredictedText, "bits=4, group=thread, tile=64",
     "bits=4, group=thread, tile=48",
     "quantise %estimate_k_values: a tile of groups is a whole number of 16 queries (warp, thread) "
     "or 32 keys (thread)\n"},
    {"QuantisedType", kPredictedText,
     "[batch, heads_kv, n_k, d] i8, [batch, heads_kv, k_groups] f32\n  %q_values",
     "[batch, heads_kv, n_k, d] i8, [batch, heads_kv, q_groups] f32\n  %q_values",
     "quantise %estimate_k_values: quantise defines values i8 of x's shape and a scale f32 for "
     "each group\n"},
    {"QuantisedValues", kPredictedText, "quantise_values %v_ordered", "quantise_values %k_ordered",
     "quantise_values %v_values: x is v, as it is or permuted\n"},
    {"ValueRange", kPredictedText, "range=2.25", "range=500",
     "quantise_values %v_values: range is above 0 and at most 448, the largest number of e4m3\n"},
    {"ValueCodes", kPredictedText, "[batch, heads_kv, n_k, d] e4m3", "[batch, heads_kv, n_k, d] i8",
     "quantise_values %v_values: quantise_values defines codes e4m3 of x's shape and a scale f32 "
     "for each channel\n"},
    {"ProjectedTensor", kPredictedText, "project %k_ordered, mean=%k_mean, onto=%q_mean",
     "project %v_ordered, onto=%q_mean",
     "project %column_bias: x is q or k, as it is or permuted\nestimate %p: " + kBiasRule +
         "attend %o_ordered: " + kBiasRule},
    {"ProjectedMean", kPredictedText, "project %k_ordered, mean=%k_mean, onto=%q_mean",
     "project %k_ordered, mean=%q_mean, onto=%q_mean",
     "project %column_bias: mean is the mean of x\nestimate %p: " + kBiasRule +
         "attend %o_ordered: " + kBiasRule},
    {"ProjectedOnto", kPredictedText, "project %q_ordered, onto=%k_mean", "project %q_ordered",
     "project %row_bias: x is projected onto the mean of the other of q and k\nestimate %p: " +
         kBiasRule + "attend %o_ordered: " + kBiasRule},
    {"ProjectionType", kPredictedText, "[batch, heads, n_k] f32", "[batch, heads_kv, n_k] f32",
     "project %column_bias: project defines a number for each token of each query head, f32\n"},
};
INSTANTIATE_TEST_SUITE_P(Ops, PrepareRule, testing::ValuesIn(kPrepare),
                         [](const auto& violation) { return violation.param.name; });

TEST(PrepareRules, HoldForSoundPrograms) {
  EXPECT_EQ(verify_text(kPredictedText), "");
  EXPECT_EQ(verify_text(kGatheredText), "");
}
}  // namespace
}  // namespace lacuna

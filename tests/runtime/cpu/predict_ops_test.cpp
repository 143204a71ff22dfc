// Whole Programs on the CPU: ops, attend, ops. The output equals dense attention under the
// mask that the launch reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/runtime/cpu/predict_problem.hpp"

namespace lacuna {
namespace {

constexpr double kStagesScale = 0.25;

/// Pairs of reported tiles that the attention mask leaves visible.
PairMask reported(const PredictProblem& problem, int tile_q, int tile_k,
                  std::function<bool(int q, int k)> visible) {
  return [&problem, tile_q, tile_k, visible](int b, int h, int q, int k) {
    return problem.report(b, h, q / tile_q, k / tile_k) == 1 && visible(q, k);
  };
}

std::function<bool(int, int)> causal(const PredictProblem& problem) {
  const int offset = problem.shape.n_k - problem.shape.n_q;
  return [offset](int q, int k) { return k <= q + offset; };
}

/// Sum of one of the three counts over all work tiles.
int total(const PredictProblem& problem, std::size_t which) {
  int sum = 0;
  for (std::size_t x = which; x < problem.counts.size(); x += 3) sum += problem.counts[x];
  return sum;
}

void expect_some_tiles(const PredictProblem& problem) {
  EXPECT_GT(total(problem, 1), 0);
  EXPECT_LT(total(problem, 1), total(problem, 0));
}

const std::string kMask = "mask=\"k <= q + n_k - n_q\"";

const std::string kPooled =
    "  %k_mean = smooth %k : [batch, heads_kv, d] f32\n"
    "  %q_summary = summarise %q, tile=32 : [batch, heads, keep_q_tiles, d] f32\n"
    "  %k_summary = summarise %k, mean=%k_mean, tile=32 : [batch, heads_kv, keep_k_tiles, d] f32\n"
    "  %q_similarity = similarity %q, tile=32 : [batch, heads, keep_q_tiles] f32\n"
    "  %k_similarity = similarity %k, mean=%k_mean, tile=32 : [batch, heads_kv, keep_k_tiles] f32\n"
    "  %p, %score = estimate %q_summary, %k_summary, similar_k=%k_similarity, " +
    kMask +
    ", exclude=\"similar_k < theta\", scale=2, tile_q=32, tile_k=32"
    " : [batch, heads, keep_q_tiles, keep_k_tiles] f32,"
    " [batch, heads, keep_q_tiles, keep_k_tiles] f32\n"
    "  %kept = select p=%p, similar_q=%q_similarity, similar_k=%k_similarity, "
    "keep=\"mass_before + p <= tau or rank == 0 or similar_k < theta\", " +
    kMask +
    ", tile_q=32, tile_k=32 : [batch, heads, keep_q_tiles, keep_words] u32\n"
    "  %list_indices, %list_counts = compact %kept, " +
    kMask +
    ", keep_q=32, keep_k=32, tile_q=16, tile_k=16"
    " : [batch, heads, q_tiles, capacity] i32, [batch, heads, q_tiles] i32\n";

const std::string kAttendResults = " : [batch, heads, n_q, d] f32, [batch, heads, n_q] f32\n";
/// The end of a select of tiles of 32 by 16, and the attention over them.
const std::string kAttendKept =
    ", tile_q=32, tile_k=16 : [batch, heads, keep_q_tiles, keep_words] u32\n"
    "  %list_indices, %list_counts = compact %kept, " +
    kMask +
    ", keep_q=32, keep_k=16, tile_q=32, tile_k=16"
    " : [batch, heads, q_tiles, capacity] i32, [batch, heads, q_tiles] i32\n"
    "  %o, %lse = attend %q, %k, %v, list_indices=%list_indices, "
    "list_counts=%list_counts, " +
    kMask + ", scale=0.25, tile_q=32, tile_k=16" + kAttendResults;
const std::string kTau = "  param tau : f32, default=0.5\n";
const std::string kTauAndTheta = kTau + "  param theta : f32, default=0.5\n";

Program pooled_program() {
  return program_of_body(16,
                         kPooled +
                             "  %o, %lse = attend %q, %k, %v, list_indices=%list_indices, "
                             "list_counts=%list_counts, " +
                             kMask + ", scale=0.25, tile_q=16, tile_k=16" + kAttendResults,
                         kTauAndTheta);
}

TEST(PredictOps, PooledTopPEqualsDenseUnderItsMask) {
  PredictProblem problem({2, 4, 2, 150, 170, 16});
  problem.set_param(0.5F);
  problem.set_param(0.03F);
  problem.run(pooled_program());
  expect_some_tiles(problem);
  expect_attention(problem, kStagesScale, reported(problem, 16, 16, causal(problem)), 2e-5);
}

TEST(PredictOps, TauOneIsDenseAndTauZeroKeepsOneTile) {
  PredictProblem problem({1, 2, 1, 96, 96, 16});
  problem.set_param(2.0F);
  problem.set_param(-1.0F);
  problem.run(pooled_program());
  EXPECT_EQ(total(problem, 1), total(problem, 0));
  problem.params[0].value.f32 = 0.0F;
  problem.run(pooled_program());
  for (std::size_t row = 0; row < problem.counts.size(); row += 3) {
    EXPECT_GE(problem.counts[row + 1], 1);
    EXPECT_LE(problem.counts[row + 1], 2) << "one tile of the predictor is two of attend's";
  }
}

TEST(PredictOps, OneTokenAndShortSequences) {
  for (const auto& [n_q, n_k] : {std::pair{1, 1}, {1, 40}, {40, 1}, {5, 33}}) {
    PredictProblem problem({1, 2, 1, n_q, n_k, 16});
    problem.set_param(0.5F);
    problem.set_param(0.03F);
    problem.set_param(0.03F);
    problem.run(pooled_program());
    expect_attention(problem, kStagesScale, reported(problem, 16, 16, causal(problem)), 2e-5);
  }
}

TEST(PredictOps, QuantisedOperandsStayWithinTheirPrecision) {
  PredictProblem problem({1, 4, 2, 90, 110, 16});
  problem.set_param(0.5F);
  problem.set_param(0.03F);
  const std::string quantised =
      "  %q_values, %q_scale = quantise %q, tile=16 : [batch, heads, n_q, d] i8, "
      "[batch, heads, q_groups] f32\n"
      "  %k_values, %k_scale = quantise %k, mean=%k_mean, tile=16 : [batch, heads_kv, n_k, d] i8, "
      "[batch, heads_kv, k_groups] f32\n"
      "  %row_bias = project %q, onto=%k_mean : [batch, heads, n_q] f32\n"
      "  %v_values, %v_scale = quantise_values %v : [batch, heads_kv, n_k, d] e4m3, "
      "[batch, heads_kv, d] f32\n";
  const Program program = program_of_body(
      16,
      kPooled + quantised +
          "  %o, %lse = attend %q_values, %k_values, %v_values, list_indices=%list_indices, "
          "list_counts=%list_counts, q_scale=%q_scale, k_scale=%k_scale, v_scale=%v_scale, "
          "row_bias=%row_bias, qk_tile_q=16, qk_tile_k=16, " +
          kMask + ", scale=0.25, tile_q=16, tile_k=16" + kAttendResults,
      kTauAndTheta);
  problem.run(program);
  expect_some_tiles(problem);
  expect_attention(problem, kStagesScale, reported(problem, 16, 16, causal(problem)), 0.12);
  const std::vector<float> o = problem.o;
  problem.run(pooled_program());
  EXPECT_NE(o, problem.o) << "8 bits are not exact";
}

/// SALE: 4-bit integers of every pair, relative to the exact mass of first and latest keys.
Program reference_program() {
  return program_of_body(
      16,
      "  %q_mean = smooth %q : [batch, heads, d] f32\n"
      "  %k_mean = smooth %k : [batch, heads_kv, d] f32\n"
      "  %q4, %q4_scale = quantise %q, mean=%q_mean, bits=4, group=thread, tile=32 : "
      "[batch, heads, n_q, d] i8, [batch, heads, q_groups] f32\n"
      "  %k4, %k4_scale = quantise %k, mean=%k_mean, bits=4, group=thread, tile=32 : "
      "[batch, heads_kv, n_k, d] i8, [batch, heads_kv, k_groups] f32\n"
      "  %row_bias = project %q, onto=%k_mean : [batch, heads, n_q] f32\n"
      "  %column_bias = project %k, mean=%k_mean, onto=%q_mean : [batch, heads, n_k] f32\n"
      "  %p, %score = estimate %q4, %k4, q_scale=%q4_scale, k_scale=%k4_scale, "
      "row_bias=%row_bias, column_bias=%column_bias, exact_q=%q, exact_k=%k, rows=tokens, "
      "columns=tokens, bits=4, normalise=lse, " +
          kMask +
          ", reference=\"k < 8 or q + n_k - n_q - k < 8\", scale=0.25, tile_q=32, tile_k=16"
          " : [batch, heads, keep_q_tiles, keep_k_tiles] f32,"
          " [batch, heads, keep_q_tiles, keep_k_tiles] f32\n"
          "  %kept = select p=%p, keep=\"p > tau or k0 < 8 or q0 + n_k - n_q - k1 < 8\", " +
          kMask + kAttendKept,
      kTau);
}

TEST(PredictOps, FourBitsAgainstAReferenceEqualDenseUnderItsMask) {
  PredictProblem problem({1, 4, 2, 100, 130, 16});
  problem.set_param(0.45F);
  problem.run(reference_program());
  expect_some_tiles(problem);
  expect_attention(problem, kStagesScale, reported(problem, 32, 16, causal(problem)), 2e-5);
}

/// FG-Attn: single keys that one of the queries of a tile gives a probability above tau.
Program column_program(int keep_k, const std::string& select_extra = "") {
  const std::string columns = std::to_string(keep_k);
  return program_of_body(
      16,
      "  %p, %score = estimate %q, %k, rows=tokens, columns=tokens, bits=16, scale=0.25, "
      "tile_q=32, tile_k=" +
          columns +
          " : [batch, heads, keep_q_tiles, keep_k_tiles] f32,"
          " [batch, heads, keep_q_tiles, keep_k_tiles] f32\n"
          "  %kept = select p=%p, keep=\"p > tau\", tile_q=32, tile_k=" +
          columns + select_extra +
          " : [batch, heads, keep_q_tiles, keep_words] u32\n"
          "  %o, %lse = attend %q, %k, %v, columns=%kept, keep_k=" +
          columns + ", scale=0.25, tile_q=32, tile_k=64" + kAttendResults,
      kTau);
}

TEST(PredictOps, GatheredColumnsEqualDenseUnderTheExactProbabilities) {
  const auto always = [](int, int) { return true; };
  PredictProblem problem({1, 4, 2, 70, 201, 16});
  problem.set_param(0.02F);
  problem.run(column_program(1));
  expect_some_tiles(problem);
  expect_attention(problem, kStagesScale, reported(problem, 32, 1, always), 2e-5);
  for (int h = 0; h < 4; ++h) {
    const DenseHead dense =
        dense_attention(problem, 0, h, kStagesScale, [](int, int, int, int) { return true; });
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < 201; ++k) {
        double largest = 0;
        for (int q = i * 32; q < std::min(i * 32 + 32, 70); ++q) {
          const double logit = kStagesScale * dot(problem.query(0, h, q), problem.key(0, h, k), 16);
          largest = std::max(largest, std::exp(logit - dense.lse[static_cast<std::size_t>(q)]));
        }
        EXPECT_EQ(problem.report(0, h, i, k), largest > 0.02 ? 1 : 0) << h << i << k;
      }
    }
  }
}

TEST(PredictOps, ColumnsOfEightKeysWithUnitedHeads) {
  PredictProblem problem({2, 4, 2, 70, 203, 16});
  problem.set_param(0.06F);
  problem.run(column_program(8, ", shared_heads=true"));
  expect_some_tiles(problem);
  expect_attention(problem, kStagesScale, reported(problem, 32, 8, [](int, int) { return true; }),
                   2e-5);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 26; ++j) {
      EXPECT_EQ(problem.report(1, 0, i, j), problem.report(1, 1, i, j));
    }
  }
}

TEST(PredictOps, NoColumnAtAllIsAnEmptyRow) {
  PredictProblem problem({1, 2, 1, 40, 50, 16});
  problem.set_param(7.0F);
  problem.run(column_program(1));
  EXPECT_EQ(total(problem, 1), 0);
  expect_attention(
      problem, kStagesScale, [](int, int, int, int) { return false; }, 0);
}

TEST(PredictOps, AntidiagonalsEqualDenseUnderTheirMask) {
  PredictProblem problem({1, 2, 1, 120, 120, 16});
  problem.set_param(0.6F);
  const Program program = program_of_body(
      16,
      "  %p, %score = estimate %q, %k, rows=antidiagonal(8), columns=antidiagonal(8), bits=16, "
      "reduce=sum, " +
          kMask +
          ", scale=0.25, tile_q=32, tile_k=16"
          " : [batch, heads, keep_q_tiles, keep_k_tiles] f32,"
          " [batch, heads, keep_q_tiles, keep_k_tiles] f32\n"
          "  %kept = select p=%p, keep=\"mass_before < tau\", " +
          kMask + kAttendKept,
      kTau);
  problem.run(program);
  expect_some_tiles(problem);
  expect_attention(problem, kStagesScale, reported(problem, 32, 16, causal(problem)), 2e-5);
}

/// Tokens in another order, of which every query keeps the tiles near its own.
Program ordered_program() {
  return program_of_body(
      16,
      "  %order = input name=\"order\" : [n_q] i32\n"
      "  %q_ordered = permute %q, %order : [batch, heads, n_q, d] f32\n"
      "  %k_ordered = permute %k, %order : [batch, heads_kv, n_k, d] f32\n"
      "  %v_ordered = permute %v, %order : [batch, heads_kv, n_k, d] f32\n"
      "  %kept = select keep=\"abs(i - j) < 2\", tile_q=16, tile_k=16"
      " : [batch, heads, keep_q_tiles, keep_words] u32\n"
      "  %list_indices, %list_counts = compact %kept, keep_q=16, keep_k=16, tile_q=16, tile_k=16"
      " : [batch, heads, q_tiles, capacity] i32, [batch, heads, q_tiles] i32\n"
      "  %o_ordered, %lse_ordered = attend %q_ordered, %k_ordered, %v_ordered, "
      "list_indices=%list_indices, list_counts=%list_counts, scale=0.25, tile_q=16, tile_k=16" +
          kAttendResults +
          "  %o = unpermute %o_ordered, %order : [batch, heads, n_q, d] f32\n"
          "  %lse = unpermute %lse_ordered, %order : [batch, heads, n_q] f32\n");
}

TEST(PredictOps, PermutedTokensComeBackInTheCallersOrder) {
  PredictProblem problem({2, 4, 2, 75, 75, 16});
  problem.run(ordered_program());
  expect_some_tiles(problem);
  std::vector<int> place(75);
  for (std::size_t n = 0; n < 75; ++n) place[static_cast<std::size_t>(problem.order[n])] = int(n);
  expect_attention(
      problem, kStagesScale,
      [&](int, int, int q, int k) {
        const int i = place[static_cast<std::size_t>(q)] / 16;
        return std::abs(i - place[static_cast<std::size_t>(k)] / 16) < 2;
      },
      2e-5);
}

TEST(PredictOps, KeptBitsAreGivenOutAndUsedAgain) {
  const Program program = column_program(1);
  PredictProblem first({1, 4, 2, 70, 201, 16}), second({1, 4, 2, 70, 201, 16}, 99);
  first.set_param(0.02F);
  second.set_param(0.02F);
  std::vector<std::uint32_t> bits(kept_words(program, first.args), 0xdeadbeefU);
  ASSERT_EQ(bits.size(), 4U * 3U * 7U);
  first.run(program, {bits.data(), false});
  const std::vector<std::uint32_t> decided = bits;
  second.run(program);
  EXPECT_NE(second.tile_mask, first.tile_mask) << "other tensors decide otherwise";
  second.run(program, {bits.data(), true});
  EXPECT_EQ(second.tile_mask, first.tile_mask);
  EXPECT_EQ(bits, decided);
  expect_attention(second, kStagesScale, reported(second, 32, 1, [](int, int) { return true; }),
                   2e-5);
}

TEST(PredictOps, KeptBitsCountATileInPart) {
  // 33 tiles of 8 keys, the last of one key, need a second word.
  const PredictProblem problem({1, 2, 1, 33, 257, 16});
  EXPECT_EQ(kept_words(column_program(8), problem.args), 2U * 2U * 2U);
}

TEST(PredictOps, ThreadsDoNotChangeABit) {
  PredictProblem one({2, 4, 2, 100, 130, 16}), many({2, 4, 2, 100, 130, 16});
  for (PredictProblem* problem : {&one, &many}) problem->set_param(0.45F);
  one.args.threads = 1;
  many.args.threads = 7;
  one.run(reference_program());
  many.run(reference_program());
  EXPECT_EQ(one.tile_mask, many.tile_mask);
  EXPECT_EQ(one.o, many.o);
}

TEST(PredictOps, ProgramsOfAttendAloneHaveNone) {
  const Program dense = program_of_body(
      16, "  %o, %lse = attend %q, %k, %v, scale=0.25, tile_q=16, tile_k=16" + kAttendResults);
  EXPECT_FALSE(has_other_ops(dense));
  EXPECT_TRUE(has_other_ops(ordered_program()));
  EXPECT_EQ(kept_words(dense, {}), 0U);
}

}  // namespace
}  // namespace lacuna

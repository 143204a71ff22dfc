// Attend on quantised operands and on gathered columns: what its arguments say is what it computes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/fp8.hpp"
#include "runtime/cpu/interpreter/interpreter.hpp"
#include "tests/runtime/cpu/predict_problem.hpp"

namespace lacuna {
namespace {

constexpr double kScale = 0.25;
const std::string kResults = " : [batch, heads, n_q, d] f32, [batch, heads, n_q] f32\n";

HostTensor rows_of(std::vector<float>& x, int heads, int n) {
  return {x.data(), {std::int64_t{heads} * n, n, 1, 0}};
}

TEST(InterpreterOperands, ScalesAndBiasesAreAppliedToTheDotProduct) {
  PredictProblem problem({2, 4, 2, 40, 50, 16}), plain({2, 4, 2, 40, 50, 16});
  std::vector<float> q_scale(2 * 4 * 40), k_scale(2 * 2 * 50), row_bias(2 * 4 * 40),
      column_bias(2 * 4 * 50);
  for (std::size_t x = 0; x < q_scale.size(); ++x) {
    q_scale[x] = 0.5F + static_cast<float>(x % 7) / 8;
    row_bias[x] = static_cast<float>(x % 5);
  }
  for (std::size_t x = 0; x < k_scale.size(); ++x)
    k_scale[x] = 1.5F - static_cast<float>(x % 9) / 8;
  for (std::size_t x = 0; x < column_bias.size(); ++x) column_bias[x] = static_cast<float>(x % 3);
  problem.args.q_scale = rows_of(q_scale, 4, 40);
  problem.args.k_scale = rows_of(k_scale, 2, 50);
  problem.args.row_bias = rows_of(row_bias, 4, 40);
  problem.args.column_bias = rows_of(column_bias, 4, 50);
  const Program program = program_of_body(
      16,
      "  %o, %lse = attend %q, %k, %v, mask=\"k <= q + n_k - n_q\", scale=0.25, tile_q=32, "
      "tile_k=16" +
          kResults);
  problem.run(program);
  for (int b = 0; b < 2; ++b) {
    for (int h = 0; h < 4; ++h) {
      for (int q = 0; q < 40; ++q) {
        const auto row = static_cast<std::size_t>((b * 4 + h) * 40 + q);
        double sum = 0;
        for (int k = 0; k <= q + 10; ++k) {
          const auto key = static_cast<std::size_t>((b * 2 + h / 2) * 50 + k);
          const auto bias = static_cast<std::size_t>((b * 4 + h) * 50 + k);
          const double product = dot(problem.query(b, h, q), problem.key(b, h, k), 16);
          sum += std::exp(kScale * (product * double{q_scale[row]} * double{k_scale[key]} +
                                    double{row_bias[row]} + double{column_bias[bias]}));
        }
        EXPECT_NEAR(problem.lse[row], std::log(sum), 2e-5) << row;
      }
    }
  }
  plain.run(program);
  EXPECT_NE(plain.o, problem.o);
}

TEST(InterpreterOperands, E4M3WeightsAreRoundedAndTheDenominatorIsNot) {
  PredictProblem problem({1, 2, 1, 1, 16, 16});  // one tile: one maximum, one sum
  std::vector<float> v_scale(16);
  for (std::size_t c = 0; c < 16; ++c) v_scale[c] = 0.25F * static_cast<float>(c + 1);
  for (float& value : problem.v) value = round_to_e4m3(100 * value);
  problem.args.v_scale = rows_of(v_scale, 1, 16);
  problem.run(program_of_body(
      16, "  %o, %lse = attend %q, %k, %v, scale=0.25, tile_q=16, tile_k=16" + kResults));
  for (int h = 0; h < 2; ++h) {
    std::vector<double> logits;
    for (int k = 0; k < 16; ++k) {
      logits.push_back(kScale * dot(problem.query(0, h, 0), problem.key(0, h, k), 16));
    }
    const double largest = *std::max_element(logits.begin(), logits.end());
    double denominator = 0;
    std::vector<double> sum(16);
    for (std::size_t k = 0; k < 16; ++k) {
      const double weight = std::exp(logits[k] - largest);
      denominator += weight;
      const double rounded = double{round_to_e4m3(static_cast<float>(448 * weight))};
      for (std::size_t c = 0; c < 16; ++c) {
        sum[c] += rounded * double{problem.value(0, h, static_cast<int>(k))[c]};
      }
    }
    for (std::size_t c = 0; c < 16; ++c) {
      const double expected = sum[c] / 448 * double{v_scale[c]} / denominator;
      EXPECT_NEAR(problem.o[static_cast<std::size_t>(h) * 16 + c], expected,
                  1e-5 * (1 + std::abs(expected)));
    }
  }
}

/// Bits that the test wrote, handed to attend by a selection that was decided before.
Program gathering_program(int keep_k, const std::string& mask) {
  const std::string columns = std::to_string(keep_k);
  return program_of_body(
      16, "  %kept = select keep=\"true\", " + mask + "tile_q=32, tile_k=" + columns +
              " : [batch, heads, keep_q_tiles, keep_words] u32\n"
              "  %o, %lse = attend %q, %k, %v, columns=%kept, keep_k=" +
              columns + ", " + mask + "scale=0.25, tile_q=32, tile_k=16" + kResults);
}

TEST(InterpreterOperands, GatheredKeysAreMaskedByTheirOwnIndex) {
  const std::string mask = "mask=\"k <= q + n_k - n_q and (q + k) % 3 != 0\", ";
  for (const int keep_k : {1, 8}) {
    PredictProblem problem({1, 2, 1, 70, 90, 16});
    const Program program = gathering_program(keep_k, mask);
    std::vector<std::uint32_t> bits(kept_words(program, problem.args));
    for (std::size_t word = 0; word < bits.size(); ++word) {
      bits[word] = 0x9e3779b9U * static_cast<std::uint32_t>(word + 1);
    }
    const int columns = (90 + keep_k - 1) / keep_k, words = (columns + 31) / 32;
    for (std::size_t row = 0; row < bits.size() / static_cast<std::size_t>(words); ++row) {
      bits[(row + 1) * static_cast<std::size_t>(words) - 1] &= (1U << (columns % 32)) - 1;
    }
    problem.run(program, {bits.data(), true});
    const auto kept = [&](int h, int i, int j) {
      const auto word = static_cast<std::size_t>((h * 3 + i) * words + j / 32);
      return (bits[word] >> (static_cast<unsigned>(j) % 32U)) & 1U;
    };
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < 3; ++i) {
        int visited = 0;
        for (int j = 0; j < columns; ++j) {
          EXPECT_EQ(problem.report(0, h, i, j), kept(h, i, j)) << h << i << j;
          visited += problem.report(0, h, i, j);
        }
        const auto row = static_cast<std::size_t>(h * 3 + i) * 3;
        const int last_key = std::min(i * 32 + 31, 69) + 20;
        EXPECT_EQ(problem.counts[row], std::min(last_key / keep_k + 1, columns)) << "visible";
        EXPECT_EQ(problem.counts[row + 1], visited);
        EXPECT_EQ(problem.counts[row + 2], 0);
      }
    }
    expect_attention(
        problem, kScale,
        [&](int, int h, int q, int k) {
          return kept(h, q / 32, k / keep_k) != 0 && k <= q + 20 && (q + k) % 3 != 0;
        },
        2e-5);
  }
}

TEST(InterpreterOperands, ScoresSeeTheIndexOfAGatheredKey) {
  PredictProblem problem({1, 1, 1, 33, 64, 16});
  Program program = gathering_program(1, "");
  attend_of(program).score = expr_of("select(k == 40, 50, s)", Site::kScore);
  std::vector<std::uint32_t> bits = {0, 1U << 8U, 0xffffffffU, 0xffffffffU};  // key 40; all
  problem.run(program, {bits.data(), true});
  for (int q = 0; q < 33; ++q) {
    EXPECT_NEAR(problem.lse[static_cast<std::size_t>(q)], 50, 1e-4);
    EXPECT_NEAR(problem.o[static_cast<std::size_t>(q) * 16 + 3], problem.value(0, 0, 40)[3], 1e-4);
  }
}

}  // namespace
}  // namespace lacuna

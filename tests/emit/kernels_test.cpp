// Which kernels a program has, in which order, and how they are configured.
#include <gtest/gtest.h>

#include "compiler/lower/prepare.hpp"
#include "tests/emit/plans.hpp"
#include "tests/ir/programs.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

using Names = std::vector<std::string>;

/// The declarations of a kernel's Config.
std::string config_of(const Plan& plan, const std::string& name) {
  std::string text;
  for (const Kernel& kernel : lower_plan(plan).kernels) {
    if (kernel.name != name) continue;
    for (const ConfigField& field : kernel.config) text += declaration(field) + ";\n";
  }
  return text;
}

bool says(const std::string& config, const std::string& line) {
  return config.find(line + ";\n") != std::string::npos;
}

TEST(Kernels, AttendAloneIsOneKernel) {
  EXPECT_EQ(kernel_names(plan_of_text(kGatedText)), Names{"attend"});
}

TEST(Kernels, EveryOpHasItsKernel) {
  EXPECT_EQ(kernel_names(plan_of_text(kPredictedText)),
            (Names{"permute_q", "permute_k", "permute_v", "mean_q", "finish_mean_q", "mean_k",
                   "finish_mean_k", "largest_v", "finish_largest_v", "prepare_q", "prepare_k",
                   "prepare_v", "estimate", "compact", "order_rows", "attend", "unpermute"}));
}

TEST(Kernels, AGatheringAttendReadsTheBitsItself) {
  EXPECT_EQ(kernel_names(plan_of_text(kGatheredText)), (Names{"prepare_q", "estimate", "attend"}));
}

TEST(Kernels, StaticPatternsOnlySelect) {
  std::string text = kGatheredText;
  for (const char* name : {"  %q_summary", "  %p, %score"}) {
    const std::size_t begin = text.find(name);
    text.erase(begin, text.find('\n', begin) + 1 - begin);
  }
  text = with(text, "select p=%p, keep=\"p > 0.5 / n_k\"", "select keep=\"k0 < 64\"");
  const Plan plan = plan_of_text(text);
  EXPECT_EQ(kernel_names(plan), (Names{"select", "attend"}));
  EXPECT_TRUE(says(config_of(plan, "select"), "static constexpr bool kHasEstimate = false"));
}

TEST(Kernels, TheLastRowsAreSelectedFromAfterwards) {
  const Plan plan =
      plan_of_text(with(kGatheredText, "%p, %score = estimate %q_summary, %k, columns=tokens, ",
                        "%p, %score = estimate %q, %k, rows=last(40), columns=tokens, bits=16, "));
  EXPECT_EQ(kernel_names(plan), (Names{"prepare_q", "sums", "estimate", "select", "attend"}));
  const std::string config = config_of(plan, "estimate");
  EXPECT_TRUE(says(config, "static constexpr int kLastRows = 40")) << config;
  EXPECT_TRUE(says(config, "static constexpr int kRows = 48")) << config;
  EXPECT_TRUE(says(config_of(plan, "select"), "static constexpr bool kHasEstimate = true"));
}

TEST(Kernels, OnlyWhatServesTheDecisionIsLeftOutLater) {
  EXPECT_EQ(kernel_names(plan_of_text(kGatheredText), true), (Names{"prepare_q", "estimate"}));
  EXPECT_EQ(kernel_names(plan_of_text(kPredictedText), true), Names{"estimate"})
      << "attend reads what prepare makes";
}

TEST(Kernels, PrepareIsToldEachPieceOfItsWork) {
  const Plan plan = plan_of_text(kPredictedText);
  EXPECT_EQ(config_of(plan, "prepare_k"),
            "static constexpr bool kIsQuery = false;\n"
            "static constexpr int kTokens = 64;\n"
            "static constexpr bool kSmooth = true;\n"
            "static constexpr int kSummaryTile = 64;\n"
            "static constexpr bool kRoundsSummary = false;\n"
            "static constexpr bool kSmoothSummary = true;\n"
            "static constexpr int kSimilarityTile = 64;\n"
            "static constexpr bool kGramMax = true;\n"
            "static constexpr int kBits = 8;\n"
            "static constexpr lacuna::QuantGroup kGroup = lacuna::QuantGroup::kWarp;\n"
            "static constexpr int kTile = 32;\n"
            "static constexpr int kEstimateBits = 4;\n"
            "static constexpr lacuna::QuantGroup kEstimateGroup = lacuna::QuantGroup::kThread;\n"
            "static constexpr int kEstimateTile = 64;\n"
            "static constexpr bool kBias = true;\n");
  EXPECT_TRUE(says(config_of(plan, "finish_largest_v"), "static constexpr float kRange = 2.25f"));
}

TEST(Kernels, APrepareBlockHoldsWholeTiles) {
  const TokenOps none;
  EXPECT_EQ(prepare_tokens(none, 64).value, 256);
  EXPECT_EQ(prepare_tokens(none, 96).value, 128);
  EXPECT_EQ(prepare_tokens(none, 256).value, 64);
  const Summarise large{.tile = 256};
  TokenOps ops;
  ops.summary = &large;
  EXPECT_EQ(prepare_tokens(ops, 128).value, 256);
  const Smooth smooth;
  ops = {.smooth = &smooth};
  EXPECT_EQ(prepare_tokens(ops, 128).value, 64);
}

TEST(Kernels, SmoothedRowsTakeTheRoomOfTwo) {
  const std::string text = source_text(emit_cuda(plan_of_text(kPredictedText), make_document()));
  EXPECT_NE(text.find("__launch_bounds__(128, 4)\nlacuna_prepare_k_predicted("), std::string::npos);
  EXPECT_NE(text.find("__launch_bounds__(256, 1)\nlacuna_estimate_predicted("), std::string::npos);
  EXPECT_NE(text.find("__launch_bounds__(128, 1)\nlacuna_attend_predicted("), std::string::npos);
}

TEST(Kernels, TheEstimateKnowsWhatKeepReads) {
  const std::string config = config_of(plan_of_text(kPredictedText), "estimate");
  for (const char* line :
       {"static constexpr int kRows = 128", "static constexpr int kBits = 4",
        "static constexpr lacuna::Normalise kNormalise = lacuna::Normalise::kLse",
        "static constexpr bool kSums = false", "static constexpr bool kHasRowBias = true",
        "static constexpr bool kHasExclude = true", "static constexpr bool kUsesScore = true",
        "static constexpr bool kUsesMass = true", "static constexpr bool kOrdersTiles = true",
        "static constexpr bool kUsesSimilarQ = true",
        "static constexpr bool kUsesSimilarK = true"}) {  // of exclude alone
    EXPECT_TRUE(says(config, line)) << line << "\n" << config;
  }
}

TEST(Kernels, RowsKeepTheirFirstTilesWhereOnlyRanksAndPlacesCount) {
  const std::string text = with(kGatheredText, "p > 0.5 / n_k", "KEEP");
  const auto plan = [&](const char* keep) { return plan_of_text(with(text, "KEEP", keep)); };
  const auto keeps_first = [](const Plan& plan) {
    return says(config_of(plan, "estimate"), "static constexpr bool kKeepsFirst = true");
  };
  const auto asks_for_places = [](const Plan& plan) {
    return says(config_of(plan, "estimate"), "static constexpr bool kKeepsByPlace = true");
  };
  for (const char* keep : {"rank < 3", "rank == 0", "rank < visible / 2 or i == 0 or rank == 0"}) {
    EXPECT_TRUE(keeps_first(plan(keep))) << keep;
    EXPECT_FALSE(asks_for_places(plan(keep))) << keep;
  }
  for (const char* keep : {"rank < 3 or k0 < 64", "j == 0 or k1 > q0 or rank < 3 and j % 2 == 0",
                           "(rank < i or k1 > q1) and not (k0 == 0)"}) {
    EXPECT_TRUE(keeps_first(plan(keep))) << keep;
    EXPECT_TRUE(asks_for_places(plan(keep))) << keep;
  }
  for (const char* keep :
       {"rank >= 3", "rank == 1", "rank < 3 or p > 0.5", "rank < j",
        "rank < 3 and k0 < 64 or rank < 2", "not (rank >= 3 and k0 < 64)",
        "rank < 3 or k0 < 64 and mass_before < 0.5", "mass_before < 0.5", "p > 0.5", "visible < 3"})
    EXPECT_FALSE(keeps_first(plan(keep))) << keep;
  EXPECT_FALSE(keeps_first(plan_of_text(
      with(with(text, "KEEP", "rank < 3"), "%p, %score = estimate %q_summary, %k, columns=tokens, ",
           "%p, %score = estimate %q, %k, rows=last(40), columns=tokens, bits=16, "))))
      << "one order serves all rows of a head";
}

TEST(Kernels, PooledRowsAreFewWhereColumnsAreMany) {
  const Plan columns = plan_of_text(kGatheredText);
  EXPECT_TRUE(says(config_of(columns, "estimate"), "static constexpr int kRows = 2"));
  EXPECT_TRUE(
      says(config_of(columns, "estimate"), "static constexpr bool kColumnsAreTokens = true"));
}

TEST(Kernels, AttendKnowsItsOperands) {
  const std::string quantised = config_of(plan_of_text(kPredictedText), "attend");
  for (const char* line :
       {"static constexpr int kQkBits = 8", "static constexpr int kVBits = 8",
        "static constexpr lacuna::QuantGroup kQkGroup = lacuna::QuantGroup::kWarp",
        "static constexpr int kQkTileK = 32", "static constexpr bool kHasColumnBias = true",
        "static constexpr bool kGathers = false", "static constexpr int kKeepK = 1"}) {
    EXPECT_TRUE(says(quantised, line)) << line << "\n" << quantised;
  }
  const std::string gathering = config_of(plan_of_text(kGatheredText), "attend");
  for (const char* line :
       {"static constexpr int kQkBits = 16", "static constexpr bool kGathers = true",
        "static constexpr int kKeepK = 8", "static constexpr bool kUsesLists = false"}) {
    EXPECT_TRUE(says(gathering, line)) << line << "\n" << gathering;
  }
}

TEST(Kernels, OneSourceHasAllEntriesInLaunchOrder) {
  const Plan plan = plan_of_text(kPredictedText);
  SpecDocument document = make_document();
  const CudaSource source = emit_cuda(plan, document);
  const LaunchProgram launch = emit_launch_program(plan);
  ASSERT_EQ(source.kernels.size(), launch.launches.size());
  std::string text = source.head;
  for (std::size_t i = 0; i < source.kernels.size(); ++i) {
    const CudaKernel& kernel = source.kernels[i];
    EXPECT_EQ(kernel.name, launch.launches[i].name);
    EXPECT_EQ(kernel.entry, launch.launches[i].entry);
    EXPECT_NE(kernel.text.find("\n" + kernel.entry + "(const __grid_constant__ Args args) {\n"),
              std::string::npos);
    EXPECT_EQ(source.head.find(kernel.entry), std::string::npos);
    text += kernel.text;
  }
  EXPECT_EQ(source_text(source), text);
  EXPECT_EQ(source.kernels.front().entry, "lacuna_permute_q_predicted");
  EXPECT_NE(text.find("  lacuna::prepare_tokens<PrepareQConfig, Hooks>(args);\n"),
            std::string::npos);
}

TEST(Kernels, HooksOfThePredictorSpeakOfItsTiles) {
  const Plan plan =
      plan_of_text(with(kPredictedText, "score > 9.0", "j >= n_j - 1 or score > 9.0"));
  const std::string text = source_text(emit_cuda(plan, make_document()));
  // What all tiles of a row share is computed once.
  EXPECT_NE(text.find("    return {lacuna::at(args.param_tau, h), args.predict.keep_k_tiles - 1};"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("mass_before + p <= row.keep_0"), std::string::npos) << text;
  EXPECT_NE(text.find("j >= row.keep_1"), std::string::npos) << text;
  EXPECT_NE(
      text.find("bool exclude(const Args& args, float similar_q, float similar_k, int i, int "
                "j, int q0, int q1, int k0, int k1, int h, int b) {\n    return similar_k < "),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("reference_full(const Args& args, int q0, int q1, int k0, int k1) {\n    "
                      "return k1 < 32 || q1 - k0 < 128;"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace lacuna

// The generated kernel of specs that are attend alone.
#include "compiler/emit/emit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

Plan plan_of(const SpecDocument& document, const char* target_name = "sm_90a") {
  Diagnostics diagnostics;
  Plan plan = make_plan(document, {}, target(target_name), diagnostics);
  EXPECT_EQ(text_of(diagnostics), "");
  return plan;
}

TEST(Cuda, LaunchTakesThreadsAndMemoryFromThePlan) {
  for (const auto& [target, threads] : {std::pair{"sm_80", 256}, std::pair{"sm_90a", 384}}) {
    const Plan plan = plan_of(make_document(true), target);
    const LaunchProgram program = emit_launch_program(plan);
    ASSERT_EQ(program.launches.size(), 1u);
    EXPECT_EQ(program.launches[0].entry, "lacuna_attend_made");
    EXPECT_EQ(program.launches[0].threads, threads);
    EXPECT_EQ(program.launches[0].smem_bytes, plan.attend.smem_bytes.value);
    EXPECT_EQ(program.slots.size(), threads == 256 ? 0U : 1U) << "the counter of rows";
  }
}

TEST(Cuda, TheWgmmaFamilyHasItsKernelItsFieldsAndItsMaps) {
  const std::string text = source_text(emit_cuda(plan_of(make_document()), make_document()));
  for (const char* line :
       {"#include \"attend/wgmma/attend_wgmma.cuh\"\n", "static constexpr int kWarpgroups = 2;\n",
        "static constexpr int kStepKeys = 128;\n", "static constexpr int kQueryBuffers = 2;\n",
        "struct Args {\n  lacuna::AttendMaps maps;\n  lacuna::AttendSchedule schedule;\n",
        "static_assert(__INTADDR__(&((Args*)0)->maps.o) == 384);\n",
        "static_assert(__INTADDR__(&((Args*)0)->attend) == 576);\n", "__launch_bounds__(384, 1)\n",
        "lacuna::attend_wgmma<Config, Hooks>(args);\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
  const std::string mma =
      source_text(emit_cuda(plan_of(make_document(), "sm_80"), make_document()));
  for (const char* word : {"wgmma", "kWarpgroups", "AttendMaps", "maps", "schedule"})
    EXPECT_EQ(mma.find(word), std::string::npos) << word;
}

TEST(Cuda, NamesThePlaceOfEveryField) {
  SpecDocument document = make_document(true);
  document.source.path = "dir \"x\"/made.json";
  document.spec.tile.q.values = {64};
  document.spans["/tile/q"] = {12, 3, 2};
  document.spans["/gate/skip"] = {9, 3, 2};
  const std::string text = source_text(emit_cuda(plan_of(document), document));
  EXPECT_NE(
      text.find("#line 12 \"dir \\\"x\\\"/made.json\"\n  static constexpr int kTileQ = 64;\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("#line 1 \"<default>\"\n  static constexpr int kTileK = 64;\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("#line 9 \"dir \\\"x\\\"/made.json\"\n    return "), std::string::npos)
      << text;
}

TEST(Cuda, NoNameOfAFileBecomesCode) {
  SpecDocument document = make_document(true);
  document.spans["/gate/skip"] = {9, 3, 2};
  const auto lines_without_directives = [&] {
    std::istringstream text(source_text(emit_cuda(plan_of(document), document)));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);)
      if (!line.starts_with("#line")) lines.push_back(line);
    return lines;
  };
  const auto expected = lines_without_directives();
  document.source.path = "\"\n#define true false\r\n?\?/\xE9\t";
  EXPECT_EQ(lines_without_directives(), expected);
  const std::string text = source_text(emit_cuda(plan_of(document), document));
  EXPECT_NE(text.find("#line 9 \"\\\"\\012#define true false\\015\\012\\077\\077/\\351\\011\"\n"),
            std::string::npos)
      << text;
}

TEST(Cuda, GateRespectsTheExemption) {
  SpecDocument document = make_document(true);
  document.spec.gate->exempt =
      parse_expr("k1 >= q0", Site::kGate, document.spec.param_symbols()).expr;
  const std::string text = source_text(emit_cuda(plan_of(document), document));
  EXPECT_NE(text.find(") && !(k1 >= q0);"), std::string::npos) << text;
}

TEST(Cuda, PreparesDivisorsAndParametersThatStayTheSame) {
  const SpecDocument document = read_document(
      R"("params": {"width": {"type": "i32", "default": 7, "doc": "a divisor"},
                    "far": {"type": "i32", "shape": "[heads]", "default": 9, "doc": "of each head"}},
         "attention": {"mask": "k // width == q // width and k <= q + far[h]", "score": "(k % (width + q)) * s"})");
  const std::string text = source_text(emit_cuda(plan_of(document), document));
  for (const char* piece : {"struct MaskParts { lacuna::IntegerDivisor part_0; int part_1; };",
                            "return {lacuna::divisor_of(lacuna::at(args.param_width)), "
                            "lacuna::at(args.param_far, h)};",
                            "lacuna::floor_divide(k, parts.part_0) == "
                            "lacuna::floor_divide(q, parts.part_0) && k <= q + parts.part_1",
                            "lacuna::IntegerDivisor core_0;", "lacuna::modulo(k, row.core_0)"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
}

TEST(Cuda, AMaskWithoutDivisorsHasNone) {
  const SpecDocument document = read_document(R"("attention": {"mask": "k // 64 <= q // 64"})");
  const std::string text = source_text(emit_cuda(plan_of(document), document));
  EXPECT_EQ(text.find("MaskParts mask_parts"), std::string::npos);
  EXPECT_NE(text.find("bool mask(const Args& args, int q, int k, int h, int b)"),
            std::string::npos);
}

TEST(Cuda, ALaneOpensAGateOfOneStatisticThatStaysOpen) {
  struct Case {
    const char *skip, *exempt, *expected;
  };
  for (const Case& c : {Case{"gap < -3", "k1 >= q0", "GateByTileVotes"},
                        {"tile_max < 2", "k1 >= q0", "GateByTileVotes"},
                        {"gap < -3 and j != 0", "k1 >= q0", "GateByTileVotes"},
                        {"tile_max > 2", "k1 >= q0", "GateByStatistics"},
                        {"gap < -3 and gap > -9", "k1 >= q0", "GateByStatistics"},
                        {"gap < -3 or tile_max < 2", "k1 >= q0", "GateByStatistics"},
                        {"j != 0", "k1 >= q0", "GateByStatistics"},
                        {"tile_max < 2", "tile_max > 5", "GateByTileVotes"},
                        {"tile_max < 2", "tile_max < -9", "GateByStatistics"},
                        {"gap < -3", "gap > -9 and gap < -6", "GateByStatistics"}}) {
    SpecDocument document = make_document(true);
    const auto parsed = [&](const char* text) {
      return parse_expr(text, Site::kGate, document.spec.param_symbols()).expr;
    };
    document.spec.gate->skip = parsed(c.skip);
    document.spec.gate->exempt = parsed(c.exempt);
    document.spec.gate->skips_exp = false;  // or it would be decided ahead
    const std::string text = source_text(emit_cuda(plan_of(document), document));
    const std::string line = std::string("using GatePolicy = lacuna::") + c.expected + ";\n";
    EXPECT_NE(text.find(line), std::string::npos) << c.skip << ", exempt " << c.exempt;
  }
}

TEST(Cuda, TheFileNamesThePartsThatThePlanChose) {
  const SpecDocument document = make_document(true);
  for (const char* target : {"sm_80", "sm_90a"}) {
    const Plan plan = plan_of(document, target);
    const std::string text = source_text(emit_cuda(plan, document));
    const AttendPlan& chosen = plan.attend;
    for (const std::string& type :
         {device_type(chosen.walk.value, chosen.split_kv.value > 1),
          device_type(chosen.producer.value, chosen.keys.value, chosen.values.value),
          std::string(device_type(chosen.consumer.value))})
      EXPECT_NE(text.find(type + ";\n"), std::string::npos) << type;
  }
  const std::string text = source_text(emit_cuda(plan_of(document, "sm_90a"), document));
  EXPECT_NE(text.find("  using GatePolicy = lacuna::GateAhead;\n"), std::string::npos) << text;
}

/// What the source for `keep` after integers of pairs says of its threshold.
std::string threshold_text(const std::string& keep, const char* target_name = "sm_90a") {
  const SpecDocument document = read_document(
      R"("predictor": {"tile": {"q": 64, "k": 32},
          "estimate": {"q": "tokens", "k": "tokens", "bits": 4, "reduce": "max",
                       "reference": "k < 32"}, "keep": ")" +
      keep + "\"}");
  const std::string text = source_text(emit_cuda(plan_of(document, target_name), document));
  const std::size_t hook = text.find("bool keep_p(");
  const bool has = text.find("static constexpr bool kHasThreshold = true;") != std::string::npos;
  EXPECT_EQ(has, hook != std::string::npos) << keep;
  if (!has) return "";
  const std::size_t begin = text.find("return ", hook) + 7;
  return text.substr(begin, text.find(';', begin) - begin);
}

TEST(Cuda, PairsKnowTheThresholdThatAllTilesOfARowHave) {
  EXPECT_EQ(threshold_text("p > 0.25 or k0 < 32"), "p > 0.25f");
  EXPECT_EQ(threshold_text("i == j or not (p <= 0.5) and k1 > q0"), "!(p <= 0.5f)");
  EXPECT_EQ(threshold_text("0.5 > p or p < 0.25"), "0.5f > p || p < 0.25f");
  EXPECT_EQ(threshold_text("p > 0.5 * h or h == 0"), "p > 0.5f * float(h)");
  for (const char* keep : {"p > 1.0 / visible", "p * j > 0.5", "p > 0.5 or p > 0.25 and j > 3"})
    EXPECT_EQ(threshold_text(keep), "") << keep;
  EXPECT_EQ(threshold_text("p > 0.25", "sm_80"), "") << "which finds weights, not bounds";
}

TEST(Cuda, OptionsAndEntry) {
  SpecDocument document = make_document();
  document.spec.name = "two-words";
  const CudaSource source = emit_cuda(plan_of(document, "sm_120a"), document);
  EXPECT_EQ(source.options, (std::vector<std::string>{"--gpu-architecture=sm_120a", "-std=c++17",
                                                      "-default-device"}));
  ASSERT_EQ(source.kernels.size(), 1u);
  EXPECT_EQ(source.kernels[0].name, "attend");
  EXPECT_EQ(source.kernels[0].entry, "lacuna_attend_two_words");
  EXPECT_NE(source.kernels[0].text.find(
                "\nlacuna_attend_two_words(const __grid_constant__ Args args) {\n"),
            std::string::npos);
}

TEST(Cuda, HeadersAreEmbedded) {
  const auto& headers = embedded_headers();
  EXPECT_TRUE(std::ranges::any_of(headers, [](const EmbeddedHeader& header) {
    return std::string_view(header.name) == "attend/mma/attend_mma.cuh" &&
           std::string_view(header.text).find("attend_mma") != std::string_view::npos;
  }));
}

}  // namespace
}  // namespace lacuna

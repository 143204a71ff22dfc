// The last stages: the argument block, the launch program, the generated kernel.
#include "compiler/emit/emit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/emit/attend_block.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

Plan plan_of(const SpecDocument& document, const char* target_name = "sm_90a") {
  Diagnostics diagnostics;
  Plan plan = make_plan(document, {}, target(target_name), diagnostics);
  EXPECT_EQ(text_of(diagnostics), "");
  return plan;
}

TEST(AttendBlock, HoldsTheDeviceStructThenTheParameters) {
  const Program program = plan_of(make_document(true)).program;
  const auto fields = attend_block(program);
  EXPECT_EQ(attend_args_bytes(), 224u);
  EXPECT_EQ(attend_block_bytes(program), 224u + 48u);
  std::uint32_t end = 0;
  for (const ArgField& field : fields) {
    EXPECT_GE(field.offset, end) << field.name << " overlaps";
    const std::uint32_t bytes = field.kind == FieldKind::kParam ? 48
                                : field.kind == FieldKind::kI32 || field.kind == FieldKind::kF32
                                    ? 4
                                    : 8;
    EXPECT_EQ(field.offset % std::min(bytes, 8u), 0u) << field.name;
    end = field.offset + bytes;
  }
  EXPECT_EQ(end, attend_block_bytes(program));
  EXPECT_EQ(fields.back().name, "param_threshold");
}

TEST(Launch, ValuesFollowFromTheShape) {
  const LaunchProgram program = emit_launch_program(plan_of(make_document()));
  ASSERT_EQ(program.values.size(), static_cast<std::size_t>(kAttendValueCount));
  std::int32_t values[kAttendValueCount];
  evaluate_launch_values(program, {.n_b = 2, .n_h = 8, .n_h_kv = 2, .n_q = 129, .n_k = 64}, values);
  EXPECT_EQ(values[static_cast<int>(AttendValue::kQTiles)], 2);
  EXPECT_EQ(values[static_cast<int>(AttendValue::kKTiles)], 1);
  EXPECT_EQ(values[static_cast<int>(AttendValue::kHeadsPerKv)], 4);
  EXPECT_EQ(values[static_cast<int>(AttendValue::kGrid)], 2 * 8 * 2);
  evaluate_launch_values(program, {.n_b = 1, .n_h = 1, .n_h_kv = 1, .n_q = 1, .n_k = 0}, values);
  EXPECT_EQ(values[static_cast<int>(AttendValue::kQTiles)], 1);
  EXPECT_EQ(values[static_cast<int>(AttendValue::kKTiles)], 0);
}

TEST(Launch, TakesThreadsAndMemoryFromThePlan) {
  const Plan plan = plan_of(make_document(true));
  const LaunchProgram program = emit_launch_program(plan);
  ASSERT_EQ(program.launches.size(), 1u);
  EXPECT_EQ(program.launches[0].entry, "lacuna_attend_made");
  EXPECT_EQ(program.launches[0].threads, 256);
  EXPECT_EQ(program.launches[0].smem_bytes, plan.attend.smem_bytes.value);
  EXPECT_EQ(program.workspace_value, -1);
}

TEST(Cuda, NamesThePlaceOfEveryField) {
  SpecDocument document = make_document(true);
  document.source.path = "dir \"x\"/made.json";
  document.spec.tile.q.values = {64};
  document.spans["/tile/q"] = {12, 3, 2};
  document.spans["/gate/skip"] = {9, 3, 2};
  const std::string text = emit_cuda(plan_of(document), document).text;
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

TEST(Cuda, GateRespectsTheExemption) {
  SpecDocument document = make_document(true);
  document.spec.gate->exempt =
      parse_expr("k1 >= q0", Site::kGate, document.spec.param_symbols()).expr;
  const std::string text = emit_cuda(plan_of(document), document).text;
  EXPECT_NE(text.find(") && !(k1 >= q0);"), std::string::npos) << text;
}

TEST(Cuda, OptionsAndEntry) {
  SpecDocument document = make_document();
  document.spec.name = "two-words";
  const CudaSource source = emit_cuda(plan_of(document, "sm_120a"), document);
  EXPECT_EQ(source.options, (std::vector<std::string>{"--gpu-architecture=sm_120a", "-std=c++17",
                                                      "-default-device"}));
  EXPECT_EQ(source.entries, std::vector<std::string>{"lacuna_attend_two_words"});
  EXPECT_NE(source.text.find("\nlacuna_attend_two_words(const __grid_constant__ Args args) {\n"),
            std::string::npos);
}

TEST(Cuda, HeadersAreEmbedded) {
  const auto& headers = embedded_headers();
  EXPECT_TRUE(std::ranges::any_of(headers, [](const EmbeddedHeader& header) {
    return std::string_view(header.name) == "kernel/attend_mma.cuh" &&
           std::string_view(header.text).find("attend_mma") != std::string_view::npos;
  }));
}

}  // namespace
}  // namespace lacuna

// The pass manager: order, observation, verification around each pass.
#include "compiler/passes/pass.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

TEST(Manager, ShowsEveryPassToTheObserver) {
  Diagnostics diagnostics;
  std::string trace;
  const Plan plan =
      make_plan(make_document(), {.head_dim = 64}, target("sm_90a"), diagnostics,
                [&](std::string_view pass, const Program& before, const Program& after) {
                  trace += describe_pass(pass, before, after);
                });
  EXPECT_EQ(trace,
            R"(fold_expressions (unchanged)
drop_trivial (unchanged)
eliminate_dead_ops (unchanged)
classify_tiles (unchanged)
ask_pairs (unchanged)
legalize_for_target (unchanged)
choose_tiles
-  %o, %lse = attend %q, %k, %v, mask="k <= q + n_k - n_q", scale=0.125 : [batch, heads, n_q, d] bf16, [batch, heads, n_q] f32
+  %o, %lse = attend %q, %k, %v, mask="k <= q + n_k - n_q", scale=0.125, tile_q=192, tile_k=128 : [batch, heads, n_q, d] bf16, [batch, heads, n_q] f32
place_smem (unchanged)
)");
}

TEST(Manager, StopsAtTheFirstPassThatRejects) {
  Diagnostics diagnostics;
  std::vector<std::string> seen;
  (void)make_plan(
      make_document(), {.head_dim = 64, .dtype = DType::kF32}, target("sm_90a"), diagnostics,
      [&](std::string_view pass, const Program&, const Program&) { seen.emplace_back(pass); });
  EXPECT_EQ(seen.back(), "legalize_for_target");
}

Program break_scale(Program program, const PassContext&) {
  attend_of(program).scale = -1;
  return program;
}

TEST(Manager, BlamesThePassThatBreaksARule) {
  Diagnostics diagnostics;
  const SpecDocument document = make_document();
  const Target sm_90a = target("sm_90a");
  AttendPlan attend;
  const Pass broken{"break_scale", break_scale};
  (void)run_passes(build_program(document, {}, diagnostics), {&broken, 1},
                   {sm_90a, document, attend, diagnostics});
  EXPECT_EQ(text_of(diagnostics),
            "error : attend %o: scale is a positive finite number\n"
            "note: internal error: pass break_scale broke this rule\n");
}

TEST(Manager, VerifiesWhatItIsGiven) {
  Diagnostics diagnostics;
  const SpecDocument document = make_document();
  const Target sm_90a = target("sm_90a");
  AttendPlan attend;
  Program program = build_program(document, {}, diagnostics);
  attend_of(program).scale = 0;
  (void)run_passes(std::move(program), pipeline(), {sm_90a, document, attend, diagnostics});
  EXPECT_EQ(text_of(diagnostics), "error : attend %o: scale is a positive finite number\n");
}

TEST(FoldExpressions, FoldsWhatNobodyFoldedYet) {
  Diagnostics diagnostics;
  const SpecDocument document = make_document();
  Program program = build_program(document, {}, diagnostics);
  Expr& mask = attend_of(program).mask;
  const Expr causal = mask;
  const auto last = static_cast<std::int32_t>(mask.nodes.size()) - 1;
  ExprNode yes{.op = ExprOp::kLiteral, .type = ExprType::kBool, .literal = 1};
  ExprNode both{.op = ExprOp::kAnd, .type = ExprType::kBool, .children = {last, last + 1, -1}};
  mask.nodes.push_back(yes);
  mask.nodes.push_back(both);
  ASSERT_FALSE(mask == causal);
  const Target sm_90a = target("sm_90a");
  AttendPlan attend;
  program = run_passes(std::move(program), {find_pass("fold_expressions"), 1},
                       {sm_90a, document, attend, diagnostics});
  EXPECT_EQ(text_of(diagnostics), "");
  EXPECT_EQ(attend_of(program).mask, causal);
}

TEST(BuildProgram, ChecksWhatTheSpecAdmits) {
  Diagnostics diagnostics;
  SpecDocument document = make_document();
  document.spec.attention.head_dim.values = {64, 128};
  document.spec.attention.dtype.values = {DType::kF16};
  document.spans["/attention/head_dim"] = {3, 5, 7};
  (void)build_program(document, {.head_dim = 96, .dtype = DType::kBF16}, diagnostics);
  EXPECT_EQ(text_of(diagnostics),
            "error /attention/head_dim: head_dim: the spec admits 64, 128, the caller asks for 96\n"
            "help: compile for 64, 128, or extend the spec's list\n"
            "error : dtype: the spec admits f16, the caller asks for bf16\n"
            "help: compile for f16, or extend the spec's list\n");
  EXPECT_EQ(diagnostics.items[0].span, (Span{3, 5, 7}));
}

TEST(LegalizeForTarget, NamesWhatTheTargetCannotDo) {
  Diagnostics diagnostics;
  (void)make_plan(make_document(), {.head_dim = 72, .dtype = DType::kF32}, target("sm_89"),
                  diagnostics);
  EXPECT_EQ(
      text_of(diagnostics),
      "error : dtype: expected bf16 or f16 on sm_89, got f32\n"
      "note: the mma family multiplies 16-bit elements\n"
      "help: f32 runs on the target cpu\n"
      "error : head_dim: expected 64, 80, 96, 112, 128, 192, 256, 512 or 576 on sm_89, got 72\n"
      "note: kernels are laid out and tested for these head dimensions\n"
      "help: nearest legal values: 64, 80\n");
  Diagnostics none;
  (void)make_plan(make_document(), {.head_dim = 72, .dtype = DType::kF32}, target("cpu"), none);
  EXPECT_EQ(text_of(none), "");
}

}  // namespace
}  // namespace lacuna

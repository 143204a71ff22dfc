// Formulas of a rank of a group: what they read of the whole, and that kernels keep their loops.
#include "compiler/ir/shift_positions.hpp"
#include "compiler/target/plan_values.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

Plan plan_of(const SpecDocument& document, bool positions, Diagnostics& diagnostics) {
  return make_plan(document, {.positions = positions}, target("sm_90a"), diagnostics);
}

Program program_of(const std::string& fields) {
  Diagnostics diagnostics;
  Program program = plan_of(read_document(fields), true, diagnostics).program;
  EXPECT_EQ(text_of(diagnostics), "");
  Diagnostics reread;
  EXPECT_EQ(parse_program({"again.ir", print_program(program)}, reread), program);
  return program;
}

std::vector<std::string> param_names(const Program& program) {
  std::vector<std::string> names;
  for (const ParamSpec& param : program.params) names.push_back(param.symbol.name);
  return names;
}

TEST(ShiftPositions, MasksAndScoresSeeTheWhole) {
  const Program program = program_of(
      R"("params": {"first": {"type": "i32", "shape": "[n_q]", "default": 0, "doc": ""},
                    "slope": {"shape": "[heads]", "default": 1, "doc": ""}},
         "attention": {"mask": "k <= q + n_k - n_q and k >= first[q]",
                       "score": "s + slope * (q - k) + h"})");
  const Attend& attend = attend_of(program);
  EXPECT_EQ(print_expr(attend.mask),
            "k <= q + group_first_q + n_k - group_n_q and k >= first[q + group_first_q]");
  EXPECT_EQ(print_expr(attend.score), "s + slope * (q + group_first_q - k) + (h + group_first_h)");
  EXPECT_EQ(param_names(program), (std::vector<std::string>{"first", "slope", "group_first_q",
                                                            "group_n_q", "group_first_h"}));
}

/// Their queries stay together, and begin where a launch says.
TEST(ShiftPositions, OfSequencesHeadsAloneSeeTheWhole) {
  Diagnostics diagnostics;
  const SpecDocument document =
      read_document(R"("attention": {"mask": "k <= q + n_k - n_q", "score": "s + n_q * h / n_h"})");
  const Program program = make_plan(document, {.batch = BatchLayout::kSequences, .positions = true},
                                    target("sm_90a"), diagnostics)
                              .program;
  EXPECT_EQ(text_of(diagnostics), "");
  EXPECT_EQ(print_expr(attend_of(program).mask), "k <= q + n_k - n_q");
  EXPECT_EQ(param_names(program), (std::vector<std::string>{"group_first_h", "group_n_h"}));
}

TEST(ShiftPositions, TilesAreThoseOfTheirSite) {
  const Program program = program_of(
      R"("params": {"t": {"shape": "[heads, q_tiles]", "default": 0, "doc": ""}},
         "gate": {"skip": "tile_max < t and i + 1 < n_i", "skips": ["pv"]},
         "predictor": {"tile": {"q": 128, "k": 64}, "keep": "i - j < 4 or q1 < 64 or n_i < 3"}, "tile": {"q": 64, "k": 64})");
  EXPECT_EQ(print_expr(attend_of(program).gate->skip),
            "tile_max < t and i + group_first_gate_tile + 1 < group_gate_tiles");
  EXPECT_EQ(print_expr(find_op<Select>(program)->keep),
            "i + group_first_keep_tile - j < 4 or q1 + group_first_q < 64 or group_keep_tiles < 3");
}

/// The plan without the formulas.
std::vector<std::string> decisions(const Plan& plan) {
  std::vector<std::string> lines;
  for (const PlanValue& value : plan_values(plan)) {
    if (!value.name.starts_with("attention."))
      lines.push_back(value.name + " = " + value.value + ": " + value.reason);
  }
  return lines;
}

TEST(ShiftPositions, KernelsKeepTheirFamilyTilesAndLoops) {
  for (const char* mask :
       {"k <= q + n_k - n_q", "k <= q and (k < 4 or q - k < 256)", "q % 3 != k % 3"}) {
    const SpecDocument document =
        read_document(R"("attention": {"mask": ")" + std::string(mask) + R"("})");
    Diagnostics diagnostics;
    const Plan alone = plan_of(document, false, diagnostics);
    const Plan ranks = plan_of(document, true, diagnostics);
    EXPECT_EQ(text_of(diagnostics), "");
    EXPECT_EQ(decisions(ranks), decisions(alone)) << mask;
  }
}

TEST(ShiftPositions, ANameThatGroupsPassIsRefused) {
  Diagnostics diagnostics;
  plan_of(read_document(
              R"("params": {"group_n_q": {"type": "i32", "default": 0, "doc": ""}},
                 "attention": {"mask": "k < group_n_q"})"),
          true, diagnostics);
  EXPECT_NE(text_of(diagnostics).find("a group passes a parameter of this name"),
            std::string::npos);
}

}  // namespace
}  // namespace lacuna

// Each pass alone: ir/<pass>.<case>.in.ir -> ir/<pass>.<case>.out.ir, on sm_89 (or as the first
// line says, "# on sm_80") with a spec that leaves everything to the compiler.
#include <algorithm>
#include <filesystem>

#include "compiler/passes/pass.hpp"
#include "tests/passes/spec_documents.hpp"
#include "tests/spec/golden_file.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(LACUNA_SOURCE_DIR "/tests/passes/ir")) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(".in.ir")) names.push_back(file.substr(0, file.size() - 6));
  }
  std::ranges::sort(names);
  return names;
}

Target target_of(const std::string& text) {
  const std::string head = "# on ";
  if (!text.starts_with(head)) return target("sm_89");
  return target(text.substr(head.size(), text.find('\n') - head.size()).c_str());
}

class PassCase : public testing::TestWithParam<std::string> {};

TEST_P(PassCase, TurnsInIntoOut) {
  const fs::path base = fs::path(LACUNA_SOURCE_DIR "/tests/passes/ir") / GetParam();
  const Pass* pass = find_pass(GetParam().substr(0, GetParam().find('.')));
  ASSERT_NE(pass, nullptr) << "file = function = registry name";
  Diagnostics diagnostics;
  const std::string text = test::read_file(base.string() + ".in.ir");
  Program program = parse_program({base.string() + ".in.ir", text}, diagnostics);
  AttendPlan attend;
  const Target machine = target_of(text);
  const SpecDocument document;
  program = run_passes(std::move(program), {pass, 1}, {machine, document, attend, diagnostics});
  EXPECT_EQ(text_of(diagnostics), "");
  EXPECT_EQ(print_program(program), test::read_file(base.string() + ".out.ir"));
}

INSTANTIATE_TEST_SUITE_P(Files, PassCase, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

TEST(PassCases, CoverTheTransformingPasses) {
  const auto names = cases();
  for (const Pass& pass : pipeline()) {
    // The text of a program is folded when it is read, and place_smem leaves it as it is: see
    // manager_test.cpp and budget_test.cpp.
    if (pass.name == "fold_expressions" || pass.name == "place_smem") continue;
    const bool covered = std::ranges::any_of(names, [&](const std::string& name) {
      return name.starts_with(std::string(pass.name) + ".");
    });
    EXPECT_TRUE(covered) << pass.name;
  }
}

}  // namespace
}  // namespace lacuna

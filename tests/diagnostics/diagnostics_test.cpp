// Bad specs and the exact text they draw: NAME.json -> NAME.txt in this folder. A spec that only
// some machine or caller finds fault with has a NAME.target beside it: "sm_89 256 bf16".
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/ir/names.hpp"
#include "compiler/target/plan.hpp"
#include "tests/spec/golden_file.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return test::source_dir() / "tests/diagnostics"; }

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder()))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// What a caller compiles for: target, head dimension, element type.
struct Request {
  Target target;
  BuildOptions options;
};

Request read_request(const fs::path& path) {
  std::istringstream words(test::read_file(path));
  std::string target, dtype;
  Request request;
  words >> target >> request.options.head_dim >> dtype;
  EXPECT_TRUE(words) << path << ": expected a target, a head dimension and an element type";
  const std::optional<Target> found = find_target(target);
  const std::optional<DType> type = find_by_name<DType>(dtype);
  EXPECT_TRUE(found && type) << path;
  request.target = found.value_or(Target{});
  request.options.dtype = type.value_or(DType::kBF16);
  return request;
}

class BadSpec : public testing::TestWithParam<std::string> {};

TEST_P(BadSpec, DrawsExactText) {
  const std::string name = GetParam() + ".json";
  const SourceText source{name, test::read_file(folder() / name)};
  Diagnostics diagnostics;
  const SpecDocument document = read_spec(source, diagnostics);
  if (const fs::path request = folder() / (GetParam() + ".target"); fs::exists(request)) {
    ASSERT_FALSE(diagnostics.has_errors()) << render(diagnostics, source);
    const auto [target, options] = read_request(request);
    for (const SpecDocument& attend : branch_documents(document))
      make_plan(attend, options, target, diagnostics);
  }
  ASSERT_FALSE(diagnostics.items.empty());
  test::expect_golden(folder() / (GetParam() + ".txt"), render(diagnostics, source));
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Files, BadSpec, testing::ValuesIn(cases()), test_name);

TEST(BadSpecs, EveryTextAndTargetHasItsSpec) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
    const fs::path extension = entry.path().extension();
    if (extension != ".txt" && extension != ".target") continue;
    EXPECT_TRUE(fs::exists(fs::path(entry.path()).replace_extension(".json"))) << entry.path();
  }
}

struct CodeEntry {
  int number;
  std::string name;
};

std::vector<CodeEntry> all_codes() {
  return {
#define LACUNA_CODE(name, number, summary) {number, #name},
#include "compiler/diag/codes.def"
#undef LACUNA_CODE
  };
}

/// The text of all files with one of the extensions below a folder.
std::string all_text(const fs::path& root, const std::vector<std::string>& extensions) {
  std::string text;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    const bool wanted =
        std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
    if (entry.is_regular_file() && wanted) text += test::read_file(entry.path());
  }
  return text;
}

// Codes of specs are shown here as users see them; the others, in tests of what reports them.
TEST(Codes, EveryOneHasACase) {
  const std::string here = all_text(folder(), {".txt"});
  const std::string anywhere = all_text(test::source_dir() / "tests", {".txt", ".cpp", ".hpp"});
  for (const CodeEntry& code : all_codes()) {
    const std::string shown = code_name(static_cast<Code>(code.number));
    const bool of_specs = code.number < 400;
    const bool has_case = of_specs ? here.find("[" + shown + "]") != std::string::npos
                                   : anywhere.find(shown) != std::string::npos ||
                                         anywhere.find("Code::" + code.name) != std::string::npos;
    EXPECT_TRUE(has_case) << shown << " " << code.name;
  }
}

}  // namespace
}  // namespace lacuna

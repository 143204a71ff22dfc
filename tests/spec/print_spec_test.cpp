// Printing specs: what was said survives a round trip, in all that are shipped and field by field.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/spec.hpp"
#include "compiler/spec/table/fields.hpp"
#include "tests/spec/golden_file.hpp"
#include "tests/spec/spec_text.hpp"

namespace lacuna {
namespace {

using test::kEverything, test::read, test::read_members;

/// "sparge.json" and "examples/dilated-union.json"
class ShippedSpec : public testing::TestWithParam<std::string> {};

TEST_P(ShippedSpec, IsReadWithoutAnyComplaint) {
  const SpecDocument document = read(test::read_file(test::source_dir() / "specs" / GetParam()));
  const std::filesystem::path path = GetParam();
  EXPECT_EQ(document.spec.name, path.stem().string());
  EXPECT_FALSE(document.spec.doc.empty());
  EXPECT_FALSE(document.spec.source.empty());
  for (const ParamSpec& param : document.spec.params)
    EXPECT_FALSE(param.doc.empty()) << param.symbol.name;
  const std::string schema = path.has_parent_path() ? "../schema.json" : "schema.json";
  EXPECT_EQ(document.source.text.find("{\n  \"$schema\": \"" + schema + "\",\n"), 0U);
}

TEST_P(ShippedSpec, SurvivesARoundTrip) {
  const VariantSpec spec = read(test::read_file(test::source_dir() / "specs" / GetParam())).spec;
  const std::string printed = print_spec(spec);
  const VariantSpec again = read(printed).spec;
  EXPECT_TRUE(again == spec) << printed;
  EXPECT_EQ(print_spec(again), printed);
}

std::vector<std::string> shipped() {
  std::vector<std::string> names;
  for (const std::string folder : {"", "examples/"})
    for (const auto& entry :
         std::filesystem::directory_iterator(test::source_dir() / "specs" / folder)) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() == ".json" && name != "schema.json")
        names.push_back(folder + name);
    }
  std::sort(names.begin(), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Files, ShippedSpec, testing::ValuesIn(shipped()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.find('.'));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
  return name;
});

TEST(PrintSpec, KeepsTheSteps) {
  const VariantSpec spec = read_members(
      R"("predictor": [{"keep": "j == 0"}, {"keep": "p > 0.5", "within": true, "estimate": {}}])");
  ASSERT_EQ(spec.steps().size(), 2U);
  EXPECT_FALSE(spec.steps()[0]->within || spec.steps()[0]->estimate.has_value());
  EXPECT_TRUE(spec.steps()[1]->within && spec.steps()[1]->estimate.has_value());
  Diagnostics diagnostics;
  EXPECT_EQ(read_spec({"x", print_spec(spec)}, diagnostics).spec, spec);
}

TEST(PrintSpec, KeepsWhatIsSaidInFewSpecs) {
  const auto estimate = [](const char* says) {
    return std::string(R"("predictor": {"keep": "p > 0.5 * p_max", "estimate": )") + says + "}";
  };
  for (const std::string& members :
       {estimate(R"({"temperature": 1.5})"),
        estimate(R"x({"q": "stride(16)", "k": "tokens", "dims": "0:32"})x"),
        estimate(R"({"k": "min_max", "normalise": "none"})"),
        estimate(R"x({"from": "1.0 / (1 + i - j)"})x"),
        std::string(R"("attention": {"normalise": "sigmoid"})"),
        std::string(R"x("attention": {"normalise": "none", "score": "max(s, 0)"})x")}) {
    const VariantSpec spec = read_members(members);
    EXPECT_EQ(spec.attention.lse, spec.attention.normalise == Weights::kSoftmax);
    Diagnostics diagnostics;
    EXPECT_EQ(read_spec({"x", print_spec(spec)}, diagnostics).spec, spec) << members;
  }
}

TEST(PrintSpec, PrintsOnlyWhatWasSaid) {
  EXPECT_EQ(print_spec(read_members(R"("tile": {"q": "auto"}, "attention": {"lse": true})")),
            "{\n  \"version\": 1,\n  \"name\": \"x\"\n}\n");
}

TEST(PrintSpec, EveryFieldSurvivesARoundTrip) {
  Diagnostics diagnostics;
  const VariantSpec spec = read_spec({"x", kEverything}, diagnostics).spec;
  const std::string printed = print_spec(spec);
  for (const SpecField& field : spec_fields()) {
    const std::string key = "\"" + std::string(key_of(field)) + "\":";
    // A log-sum-exp, which the text asks for, has no temperature and no bands, what is compared is
    // not given and has no index, and an only step has no step before.
    constexpr std::array<std::string_view, 6> kNotSaid{
        "tile.stages",      "predictor.estimate.temperature", "predictor.estimate.dims",
        "predictor.within", "predictor.estimate.from",        "predictor.union"};
    const bool values_kept =
        field.slot != nullptr && std::ranges::count(kNotSaid, field.path) == 0 &&
        !field.path.starts_with("predictor.estimate.index") && !field.path.starts_with("branches");
    if (values_kept) {
      EXPECT_NE(printed.find(key), std::string::npos) << field.path;
    }
  }
  Diagnostics second;
  const VariantSpec again = read_spec({"y", printed}, second).spec;
  EXPECT_TRUE(again == spec) << printed;
}

TEST(PrintSpec, ABranchSaysWhatDiffersFromTheSpec) {
  const VariantSpec spec = read_members(R"x("attention": {"mask": "k <= q"},
    "branches": [{"name": "a", "weight": "0.5", "means": 16, "tile": {"q": 64}},
                 {"name": "b", "weight": "h * 1.0", "attention": {"mask": "k <= q + 1", "score": "s * 2"},
                  "predictor": [{"keep": "j == 0"}, {"union": true, "keep": "j == 1"}],
                  "quantise": {"qk": {"bits": 8}}, "loader": "cp_async",
                  "gate": {"skip": "gap < -9", "skips": ["pv"]}}])x");
  ASSERT_EQ(spec.branches.size(), 2U);
  EXPECT_EQ(spec.branches[0].attention.mask, spec.attention.mask);
  EXPECT_EQ(spec.branches[1].steps().size(), 2U);
  EXPECT_EQ(spec.branches[1].name, "x-b");
  EXPECT_FALSE(spec.attention.lse);
  const std::string printed = print_spec(spec);
  EXPECT_EQ(printed.find("k <= q"), printed.rfind("k <= q\"")) << "a's mask is the spec's";
  Diagnostics diagnostics;
  EXPECT_EQ(read_spec({"x", printed}, diagnostics).spec, spec) << printed;
}

TEST(PrintSpec, KeepsAnEstimateThatSaysNothing) {
  const std::string printed =
      print_spec(read_members(R"("predictor": {"keep": "p > 0.5", "estimate": {}})"));
  EXPECT_NE(printed.find(R"("estimate": {})"), std::string::npos) << printed;
}

TEST(PrintSpec, PermutationsSurviveARoundTrip) {
  for (const char* permute : {R"("external")", R"({"row_major": [1, 2, 3]})"}) {
    const VariantSpec spec = read_members(std::string(R"("permute": )") + permute);
    EXPECT_EQ(read(print_spec(spec)).spec.permute, spec.permute) << permute;
  }
}

}  // namespace
}  // namespace lacuna

// What `lacuna run` says of rows whose output is 0, and of what made them so.
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"

namespace lacuna::tests {
namespace {

/// The warnings of a run on 2 heads of 96 tokens.
std::string warnings_of(const std::string& fields) {
  const ScratchDirectory scratch;
  const std::string spec =
      scratch.write("rows.json", R"({"version": 1, "name": "rows", )" + fields + "}");
  const std::string input = scratch.write(
      "x.safetensors", tools::print_safetensors(small_problem(2, 96, 64, tools::ArrayType::kF32)));
  const CommandResult result =
      run_lacuna({"run", spec, "--input", input, "--device", "cpu", "--json"});
  EXPECT_EQ(result.status, 0) << result.err;
  return parse_document(result)["warnings"].dump();
}

TEST(RunWarnings, RowsThatTheMaskHidesAllKeysFrom) {
  const std::string warnings = warnings_of(R"("attention": {"mask": "k <= q and q != 0"})");
  EXPECT_NE(warnings.find("\"2 of 192 queries see no key, and o of them is 0: attention.mask hides "
                          "all keys from them\""),
            std::string::npos)
      << warnings;
}

TEST(RunWarnings, RowsThatAScoreLeavesNoWeight) {
  const std::string softmax = R"s("attention": {"score": "select(q == 5, -inf, s)"})s";
  const std::string none = R"s("attention": {"normalise": "none", "score": "s * min(q, 1)"})s";
  for (const std::string& fields : {softmax, none})
    EXPECT_EQ(warnings_of(fields),
              R"(["o of 2 of 192 queries is 0: attention.score leaves no key any weight"])")
        << fields;
  const std::string both =
      warnings_of(R"s("attention": {"mask": "k <= q", "score": "select(q == 5, -inf, s)"})s");
  EXPECT_NE(both.find("attention.mask hides all keys from them, or attention.score leaves no key "
                      "any weight"),
            std::string::npos)
      << both;
}

}  // namespace
}  // namespace lacuna::tests

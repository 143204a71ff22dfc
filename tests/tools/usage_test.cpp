// The command line itself: help, misspellings, exit codes.
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

constexpr const char* kVerbs[] = {"run",  "check", "explain", "emit", "build", "bench",
                                  "tune", "viz",   "cache",   "list", "doctor"};

TEST(Usage, HelpListsEveryVerbAndLeadsWithExamples) {
  const CommandResult help = run_lacuna({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_EQ(help.err, "");
  for (const char* verb : kVerbs) {
    EXPECT_NE(help.out.find("  " + std::string(verb) + " "), std::string::npos) << verb;
  }
  EXPECT_LT(help.out.find("Examples:"), help.out.find("Options:"));
}

TEST(Usage, EveryVerbHasHelpWithExamplesFirstAndTheCommonOptions) {
  for (const char* verb : kVerbs) {
    const CommandResult help = run_lacuna({verb, "--help"});
    EXPECT_EQ(help.status, 0) << verb;
    const std::size_t examples = help.out.find("Examples:\n  lacuna " + std::string(verb));
    ASSERT_NE(examples, std::string::npos) << help.out;
    EXPECT_LT(examples, help.out.find("Options:"));
    for (const char* option : {"--json", "--color", "See also:"}) {
      EXPECT_NE(help.out.find(option), std::string::npos) << verb << option;
    }
  }
}

TEST(Usage, VersionIsOneLine) {
  const CommandResult version = run_lacuna({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, std::string(LACUNA_VERSION) + "\n");
}

/// Status 2, nothing on stdout, and this first line on stderr.
TEST(Usage, IsJsonWhereJsonIsAskedFor) {
  const CommandResult result = run_lacuna({"check", "--jsn", "--json", "x.json"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(parse_document(result)["diagnostics"][0]["message"],
            "unknown flag \"--jsn\"; did you mean \"--json\"?");
}

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& line) {
  const CommandResult result = run_lacuna(arguments);
  EXPECT_EQ(result.status, 2) << line;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.substr(0, result.err.find('\n')), line);
}

TEST(Usage, SuggestsTheNearestVerb) {
  expect_usage_error({"chekc", "x.json"},
                     "lacuna: error: unknown verb \"chekc\"; did you mean \"check\"?");
  expect_usage_error({"frobnicate"}, "lacuna: error: unknown verb \"frobnicate\"");
}

TEST(Usage, HelpIsAVerb) {
  EXPECT_EQ(run_lacuna({"help"}).out, run_lacuna({"--help"}).out);
  const CommandResult help = run_lacuna({"help", "check"});
  EXPECT_EQ(help.status, 0);
  EXPECT_EQ(help.out, run_lacuna({"check", "--help"}).out);
  expect_usage_error({"help", "chekc"},
                     "lacuna: error: unknown verb \"chekc\"; did you mean \"check\"?");
}

TEST(Usage, SuggestsTheNearestFlag) {
  expect_usage_error({"check", "--jsn", "x.json"},
                     "lacuna check: error: unknown flag \"--jsn\"; did you mean \"--json\"?");
  expect_usage_error({"run", "x.json", "--devise=cpu"},
                     "lacuna run: error: unknown flag \"--devise\"; did you mean \"--device\"?");
  expect_usage_error({"cache", "ls", "--jason"},
                     "lacuna cache: error: unknown flag \"--jason\"; did you mean \"--json\"?");
}

TEST(Usage, SuggestsTheNearestValue) {
  expect_usage_error(
      {"check", "x.json", "--arch", "sm_90"},
      "lacuna check: error: --arch: expected one of cpu, sm_80, sm_86, sm_89, sm_90a, sm_100a, "
      "sm_120a, got sm_90; did you mean \"sm_90a\"?");
  expect_usage_error({"check", "x.json", "--dtype", "bf61"},
                     "lacuna check: error: --dtype: expected one of bf16, f16, f32, got bf61; did "
                     "you mean \"bf16\"?");
  expect_usage_error({"emit", "--form", "cudda", "x.json"},
                     "lacuna emit: error: --form: expected one of spec, program, plan, cuda, ptx, "
                     "cubin, launch, llvm, got cudda; did you mean \"cuda\"?");
  expect_usage_error(
      {"build", "x.json", "--arch", "H100"},
      "lacuna build: error: --arch: expected one of sm_80, sm_86, sm_89, sm_90a, sm_100a, "
      "sm_120a, got H100; did you mean \"sm_90a\"?");
  expect_usage_error({"cache", "clean"},
                     "lacuna cache: error: expected one of ls, verify, clear, path, prune, got "
                     "\"clean\"; did you mean \"clear\"?");
  expect_usage_error({"run", "x.json", "--tolerance", "5%"},
                     "lacuna run: error: --tolerance: expected a number, got \"5%\"");
}

TEST(Usage, BoundsAreWrittenAsPeopleWriteThem) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"bench", "x.json", "--seconds", "-1"},
       "bench: error: --seconds: expected a number above 0, got -1"},
      {{"bench", "x.json", "--density", "1.5"},
       "bench: error: --density: expected a number from 0 to 1, got 1.5"},
      {{"explain", "x.json", "--gpus", "65"},
       "explain: error: --gpus: expected a number from 1 to 64, got 65"},
      {{"bench", "x.json", "--seconds", "nan"},
       "bench: error: --seconds: expected a number, got \"nan\""},
      {{"run", "x.json", "--threads", "1", "--threads", "2"},
       "run: error: --threads is written more than once"},
      {{"bench", "x.json", "--shape", "n=4,h=2,n=5"}, "bench: error: --shape: n: is said twice"},
      {{"viz"}, "viz: error: expected one of mask, compare, calibration"}};
  for (const auto& [arguments, line] : cases) expect_usage_error(arguments, "lacuna " + line);
  EXPECT_EQ(run_lacuna({"cache", "prune", "--max-bytes", "-1"}).status, 2);
}

TEST(Usage, WhatWouldMakeNoDifferenceIsRefused) {
  const std::string spec = source_file("specs/dense.json"), nsa = source_file("specs/nsa.json");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"bench", spec, "--layout", "striped"}, " bench: error: --layout requires --gpus"},
      {{"bench", spec, "--sm-margin", "4"}, " bench: error: --sm-margin requires --gpus"},
      {{"explain", spec, "--scheme", "rows"}, " explain: error: --scheme requires --gpus"},
      {{"emit", "--form", "cuda", spec, "--kernel", "attend"},
       ": error: --kernel: form cuda has all kernels; ptx and cubin are of one"},
      {{"emit", "--form", "cuda", spec, "--branch", "near"},
       ": error: --branch: the spec has none"},
      {{"emit", "--form", "spec", nsa, "--branch", "window"},
       ": error: --branch: form spec is of the whole spec"},
      {{"emit", "--form", "plan", spec, "--arch", "sm_80,sm_90a"},
       ": error: --arch: a form is of one architecture"}};
  for (const auto& [arguments, line] : cases) expect_usage_error(arguments, "lacuna" + line);
  for (const char* verb : {"bench", "tune"}) {
    const CommandResult result =
        run_lacuna({verb, spec, "--shape", "h=1,n=32", "--density", "0.5"});
    EXPECT_EQ(result.status, 1);
    EXPECT_NE(result.err.find("--density is only for specs with \"mask\": \"external\""),
              std::string::npos)
        << verb << ": " << result.err;
  }
}

TEST(Usage, WhatIsReadIsNotReplaced) {
  const ScratchDirectory scratch;
  const std::string spec = scratch.write("dense.json", R"({"version": 1, "name": "dense"})");
  const std::string before = read_bytes(spec);
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"emit", "--form", "cuda", spec, "-o", spec},
                                             {"viz", "mask", spec, "-o", spec},
                                             {"run", spec, "--out", spec},
                                             {"calibrate", spec, "--samples", "x", "-o", spec}})
    expect_usage_error(arguments, "lacuna: error: " + spec +
                                      " is read by this command, and would be replaced: name "
                                      "another file");
  EXPECT_EQ(read_bytes(spec), before);
  const std::string out = scratch.file("o.npy");
  expect_usage_error({"run", spec, "--out", out, "--mask-out", out},
                     "lacuna: error: --out and --mask-out name one file, " + out);
}

TEST(Usage, ANameThatPromisesAnotherFormatIsRefused) {
  const std::string spec = source_file("specs/dense.json");
  for (const char* option : {"--out", "--mask-out"}) {
    const CommandResult result = run_lacuna({"run", spec, "--device", "cpu", option, "x.png"});
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err, std::string("lacuna: error: ") + option +
                              ": expected a name that ends in .npy, got x.png\n");
  }
}

TEST(Usage, MissingPartsAreUsageErrors) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"check"},
                                             {"emit", "x.json"},
                                             {"build", "x.json", "-o", "d"},
                                             {"cache"},
                                             {"cache", "prune"},
                                             {"run", "x.json", "--q", "q.npy"},
                                             {"run", "x.json", "--threads", "two"}}) {
    const CommandResult result = run_lacuna(arguments);
    EXPECT_EQ(result.status, 2) << (arguments.empty() ? "nothing" : arguments.front());
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find("error: "), std::string::npos);
  }
}

TEST(Usage, AnEmptyValueIsNoValue) {
  const std::string spec = source_file("specs/dense.json");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"check", ""},
                                                    {"calibrate", spec, "-o", ""},
                                                    {"tune", spec, "--shapes", ""},
                                                    {"viz", "mask", spec, "-o", ""},
                                                    {"run", spec, "--param", ""}}) {
    const CommandResult result = run_lacuna(arguments);
    EXPECT_EQ(result.status, 2) << arguments.front();
    EXPECT_NE(result.err.find("expected a value, got \"\""), std::string::npos) << result.err;
  }
}

TEST(Output, ThatCannotBeWrittenIsAnErrorOfEveryVerb) {
  const std::string spec = source_file("specs/dense.json");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--version"},
                                             {"--help"},
                                             {"tune", "--help"},
                                             {"list"},
                                             {"list", "--json"},
                                             {"check", spec},
                                             {"check", spec, "--json"},
                                             {"explain", spec},
                                             {"emit", "--form", "cuda", spec},
                                             {"cache", "ls"},
                                             {"doctor", "--json"}}) {
    const CommandResult result = run_lacuna(arguments, "", {}, "/dev/full");
    EXPECT_EQ(result.status, 1) << arguments.front();
    EXPECT_EQ(without_notes(result.err),
              "standard output: error: cannot be written: No space left on device [E0602]\n")
        << arguments.front();
  }
}

TEST(Output, ThatIsLargerThanItsBufferIsCheckedToo) {
  const CommandResult result =
      run_lacuna({"emit", "--form", "cuda", source_file("specs/sparge.json")}, "", {}, "/dev/full");
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("No space left on device"), std::string::npos) << result.err;
}

TEST(Output, KeepsTheStatusOfAnEarlierFailure) {
  EXPECT_EQ(run_lacuna({"check", "/no/such/spec.json", "--json"}, "", {}, "/dev/full").status, 1);
  EXPECT_EQ(run_lacuna({"explain", source_file("specs/dense.json"), "--arch", "sm_1"}, "", {},
                       "/dev/full")
                .status,
            2);
}

}  // namespace
}  // namespace lacuna::tests

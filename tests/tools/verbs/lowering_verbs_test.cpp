// check, explain, emit: text in, text out.
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

constexpr const char* kMinimal = R"({"version": 1, "name": "dense"})";

TEST(Check, AcceptsEveryShippedSpec) {
  std::vector<std::string> arguments = {"check"};
  std::string expected;
  for (const char* name :
       {"dense", "window", "document", "softcap", "alibi", "bsfa", "skip-softmax"}) {
    arguments.push_back(source_file("specs/" + std::string(name) + ".json"));
    expected += arguments.back() + ": good\n";
  }
  const CommandResult result = run_lacuna(arguments);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, expected);
  EXPECT_EQ(result.err, "");
}

TEST(Check, ReadsStandardInput) {
  const CommandResult result = run_lacuna({"check", "-"}, kMinimal);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "-: good\n");
}

TEST(Check, ShowsEveryErrorWithItsPlace) {
  const CommandResult result =
      run_lacuna({"check", "-"}, "{\"version\": 1, \"name\": \"x\", \"tyle\": {}, \"loader\": 3}");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("<stdin>:1:29: error: "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("<stdin>:1:"), result.err.rfind("<stdin>:1:"));
  EXPECT_EQ(result.err.find("\x1b["), std::string::npos);
}

TEST(Check, ColorsOnRequest) {
  const CommandResult result = run_lacuna({"check", "-", "--color", "always"}, "{");
  EXPECT_NE(result.err.find("\x1b["), std::string::npos);
}

TEST(Check, SaysThatAFileCannotBeRead) {
  const CommandResult result = run_lacuna({"check", "/no/such/spec.json"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            "/no/such/spec.json: error: cannot be read: No such file or directory [E0601]\n");
}

TEST(Check, JsonHasEverySpecAndEveryDiagnostic) {
  const CommandResult result =
      run_lacuna({"check", source_file("specs/dense.json"), "/no/such/spec.json", "--json"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "");
  const auto document = parse_document(result);
  ASSERT_EQ(document["specs"].size(), 2u);
  EXPECT_EQ(document["specs"][0]["good"], true);
  EXPECT_EQ(document["specs"][1]["good"], false);
  ASSERT_EQ(document["diagnostics"].size(), 1u);
  EXPECT_EQ(document["diagnostics"][0]["code"], "E0601");
  EXPECT_EQ(document["diagnostics"][0]["path"], "/no/such/spec.json");
}

TEST(Check, FindsTilesThatFitNoGpuOrNotTheOneAskedFor) {
  const std::string spec =
      R"({"version": 1, "name": "big", "tile": {"q": 64, "k": 64, "stages": 4}})";
  EXPECT_EQ(run_lacuna({"check", "-", "--head-dim", "128"}, spec).status, 0);
  const CommandResult small =
      run_lacuna({"check", "-", "--head-dim", "128", "--arch", "sm_86", "--json"}, spec);
  EXPECT_EQ(small.status, 1);
  EXPECT_EQ(parse_document(small)["diagnostics"][0]["code"], "E0405");
  const CommandResult none = run_lacuna({"check", "-", "--head-dim", "256", "--json"}, spec);
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(parse_document(none)["diagnostics"][0]["code"], "E0405");
}

TEST(Explain, ShowsEveryValueItsOriginAndWhatLimitsIt) {
  const CommandResult result =
      run_lacuna({"explain", source_file("specs/bsfa.json"), "--arch", "sm_90a"});
  EXPECT_EQ(result.status, 0);
  for (const char* text :
       {"tile.q", "tile.k", "tile.stages", "tile.warps", "tile.order", "loader", "registers",
        "spec", "default", "derived", "Shared memory  [", "Blocks per SM", "limited by",
        "gate.skip", "tile_max < threshold", "[heads, q_tiles]", "-inf"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << "\n" << result.out;
  }
}

TEST(Explain, ShowsNamesOfPartsAndFormulasWrittenOut) {
  const CommandResult result =
      run_lacuna({"explain", source_file("specs/t5-bias.json"), "--arch", "sm_90a"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* text :
       {"  name      stands for\n  distance  abs(q - k)\n", "  near      min(distance, 128)\n",
        "select(abs(q - k) < 8, abs(q - k), "})
    EXPECT_NE(result.out.find(text), std::string::npos) << text << "\n" << result.out;
}

TEST(Explain, JsonHasTheSameValues) {
  const auto document = parse_document(
      run_lacuna({"explain", source_file("specs/bsfa.json"), "--arch", "sm_80,sm_90a", "--json"}));
  ASSERT_EQ(document["plans"].size(), 2u);
  EXPECT_EQ(document["plans"][0]["target"], "sm_80");
  for (const auto& plan : document["plans"]) {
    EXPECT_GT(plan["smem_bytes"].get<int>(), 0);
    EXPECT_GE(plan["values"].size(), 9u);
    for (const auto& value : plan["values"]) {
      EXPECT_NE(value["origin"], "");
      EXPECT_NE(value["value"], "");
    }
  }
}

TEST(Explain, SaysOfEveryKernelWhyItsValuesAreWhatTheyAre) {
  const std::string spec = source_file("specs/sparge.json");
  const CommandResult result = run_lacuna({"explain", spec, "--arch", "sm_90a"});
  for (const char* text : {"prepare_q", "needed", "summaries of tiles", "smem_bytes",
                           "256 tokens * 20 + 8 warps * (4 + 2 * 128 * 4)", "order_rows",
                           "blocks of attend take the longest lists first"})
    EXPECT_NE(result.out.find(text), std::string::npos) << text << "\n" << result.out;
  const auto document = parse_document(run_lacuna({"explain", spec, "--arch", "sm_90a", "--json"}));
  const auto& kernels = document["plans"][0]["launch"]["kernels"];
  EXPECT_GE(kernels.size(), 9u);
  bool reads_spec = false;
  for (const auto& kernel : kernels) {
    EXPECT_NE(kernel["because"], "");
    for (const auto& value : kernel["values"]) EXPECT_NE(value["reason"], "") << kernel["kernel"];
    for (const auto& field : kernel["config"]) {
      EXPECT_NE(field["origin"], "") << kernel["kernel"];
      reads_spec |= field["origin"] == "spec" && field["field"] == "/predictor/tile/q";
    }
  }
  EXPECT_TRUE(reads_spec);
}

TEST(Explain, SaysThatATargetDecidesAGateByOtherRows) {
  const std::string spec = source_file("specs/sparge.json");
  const CommandResult wgmma = run_lacuna({"check", spec, "--arch", "sm_90a"});
  EXPECT_EQ(wgmma.status, 0);
  EXPECT_NE(wgmma.err.find("64 rows of a warpgroup decide together"), std::string::npos)
      << wgmma.err;
  EXPECT_NE(wgmma.err.find("\"scope\": \"warp\""), std::string::npos) << wgmma.err;
  EXPECT_EQ(run_lacuna({"check", spec, "--arch", "sm_80"}).err.find("warpgroup"),
            std::string::npos);
}

TEST(Explain, ExplainsACode) {
  const CommandResult result = run_lacuna({"explain", "e0301"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(
      result.out,
      "E0301 (expressions): an expression cannot be parsed\n"
      "  cause    Formulas have the operators of Python, without `x if c else y`, `**` and chained "
      "comparisons.\n"
      "  example  0 <= k < 64\n"
      "  cure     Write `0 <= k and k < 64`, `select(c, x, y)`, `x * x`.\n");
  const CommandResult unknown = run_lacuna({"explain", "E9999"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_EQ(unknown.err, "lacuna: error: there is no code E9999\n");
}

TEST(Explain, ShowsTheFieldsAndRulesThatRaiseACode) {
  const CommandResult range = run_lacuna({"explain", "E0203"});
  EXPECT_EQ(
      range.out.rfind("E0203 (spec fields): a field has a value outside its range\n  cause ", 0),
      0u);
  const std::size_t row = range.out.find("\n  tile.q ");
  ASSERT_NE(row, std::string::npos) << range.out;
  const std::string line = range.out.substr(row + 1, range.out.find('\n', row + 1) - row - 1);
  EXPECT_NE(line.find(" 16 to 256 in steps of 16; list; \"auto\" "), std::string::npos) << line;
  EXPECT_NE(line.find("  a warp owns the 16 query rows of one mma"), std::string::npos) << line;
  EXPECT_EQ(range.out.find("attention.mask"), std::string::npos) << "a formula has no range";
  EXPECT_EQ(range.out.back(), '\n');
  const auto missing = parse_document(run_lacuna({"explain", "E0204", "--json"}));
  EXPECT_EQ(missing["code"], "E0204");
  EXPECT_EQ(missing["subject"], "spec fields");
  EXPECT_EQ(missing["summary"], "a required field is missing");
  EXPECT_EQ(missing["fields"][0]["path"], "version");
  const CommandResult rules = run_lacuna({"explain", "E0402"});
  EXPECT_NE(rules.out.find("\n  a program has exactly one attend\n"), std::string::npos)
      << rules.out;
}

TEST(Emit, EveryTextFormHasItsText) {
  const std::string spec = source_file("specs/bsfa.json");
  const std::pair<const char*, const char*> forms[] = {{"spec", "\"name\": \"bsfa\""},
                                                       {"program", "program @bsfa("},
                                                       {"plan", "128"},
                                                       {"cuda", "extern \"C\" __global__"},
                                                       {"launch", "lacuna_attend"}};
  for (const auto& [form, text] : forms) {
    const CommandResult result = run_lacuna({"emit", "--form", form, spec});
    EXPECT_EQ(result.status, 0) << form << result.err;
    EXPECT_NE(result.out.find(text), std::string::npos) << form;
    EXPECT_EQ(result.err, "");
  }
}

TEST(Emit, TheSpecFormReadsBackAsItself) {
  const CommandResult first =
      run_lacuna({"emit", "--form", "spec", source_file("specs/skip-softmax.json")});
  const CommandResult second = run_lacuna({"emit", "--form", "spec", "-"}, first.out);
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
}

TEST(Emit, PlansForFewerRegistersAreAsked) {
  const auto plan = [](const char* relief) {
    return run_lacuna({"emit", "--form", "plan", source_file("specs/dense.json"), "--arch",
                       "sm_90a", "--relief", relief})
        .out;
  };
  const char* const reason = "registers spill in three warpgroups";
  EXPECT_EQ(plan("0").find(reason), std::string::npos);
  EXPECT_NE(plan("1").find(reason), std::string::npos);
  EXPECT_NE(plan("5").find("family = mma"), std::string::npos);
}

TEST(Emit, PassesAreShownBesideTheText) {
  const CommandResult result =
      run_lacuna({"emit", "--form", "plan", "--passes", source_file("specs/dense.json")});
  EXPECT_EQ(result.status, 0);
  for (const char* pass : {"fold_expressions", "choose_tiles", "place_smem"}) {
    EXPECT_NE(result.err.find(pass), std::string::npos) << result.err;
    EXPECT_EQ(result.out.find(pass), std::string::npos);
  }
}

TEST(Emit, WritesAFileWholeOrNotAtAll) {
  const ScratchDirectory scratch;
  const std::string out = scratch.file("kernel.cu");
  EXPECT_EQ(run_lacuna({"emit", "--form", "cuda", "-", "-o", out}, kMinimal).status, 0);
  EXPECT_NE(read_bytes(out).find("extern \"C\""), std::string::npos);
  EXPECT_EQ(
      run_lacuna({"emit", "--form", "cuda", "-", "-o", scratch.file("no/x.cu")}, kMinimal).status,
      1);
  EXPECT_EQ(run_lacuna({"emit", "--form", "cuda", "-", "-o", scratch.file("bad.cu")}, "{").status,
            1);
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"kernel.cu"});
}

TEST(Emit, TheCpuHasNoCuda) {
  const CommandResult result =
      run_lacuna({"emit", "--form", "cuda", "-", "--arch", "cpu"}, kMinimal);
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, "lacuna: error: form cuda needs a GPU architecture, got --arch cpu\n");
}

}  // namespace
}  // namespace lacuna::tests

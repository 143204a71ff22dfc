// Specs with branches on the command line: what shows all of them, and what is of one attend alone.
#include <gtest/gtest.h>

#include "tests/spec/golden_file.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"

namespace lacuna::tests {
namespace {

const std::string kNsa = source_file("specs/nsa.json");

std::vector<std::string> names_of(const nlohmann::json& branches) {
  std::vector<std::string> names;
  for (const auto& branch : branches) names.push_back(branch["name"]);
  return names;
}

TEST(BranchesVerbs, ExplainShowsAPlanForEach) {
  const CommandResult result =
      run_lacuna({"explain", kNsa, "--json", "--shape", "b=1,h=4,h_kv=1,n=4096"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto plans = parse_document(result)["plans"];
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0]["branch"], "compressed");
  EXPECT_EQ(plans[1]["branch"], "selected");
  EXPECT_EQ(plans[2]["branch"], "window");
  EXPECT_EQ(plans[0]["launch"]["shape"],
            "b=1, h=4, h_kv=1, n_q=4096, n_k=4096 (128 means of 32 keys)");
  EXPECT_EQ(plans[1]["launch"]["shape"], "b=1, h=4, h_kv=1, n_q=4096, n_k=4096");
}

TEST(BranchesVerbs, EmitPrintsAllOrTheOneAskedFor) {
  const CommandResult all = run_lacuna({"emit", "--form", "program", kNsa});
  ASSERT_EQ(all.status, 0) << all.err;
  for (const char* program : {"@nsa-compressed(", "@nsa-selected(", "@nsa-window("})
    EXPECT_NE(all.out.find(program), std::string::npos) << program;
  const CommandResult one = run_lacuna({"emit", "--form", "program", kNsa, "--branch", "window"});
  EXPECT_EQ(one.out.find("program @nsa-window("), 0U) << one.out;
  const CommandResult none = run_lacuna({"emit", "--form", "ptx", kNsa});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("--branch: "), std::string::npos) << none.err;
  EXPECT_NE(none.err.find("compressed"), std::string::npos) << none.err;
}

TEST(BranchesVerbs, RunMeasuresAllAndCountsTheTilesOfEach) {
  const ScratchDirectory scratch;
  const std::string input =
      scratch.write("x.safetensors",
                    tools::print_safetensors(small_problem(2, 300, 64, tools::ArrayType::kBF16)));
  const std::vector<std::string> run = {"run", kNsa, "--device", "cpu", "--input", input, "--json"};
  const CommandResult result = run_lacuna(run);
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  EXPECT_EQ(names_of(document["branches"]),
            (std::vector<std::string>{"compressed", "selected", "window"}));
  EXPECT_FALSE(document.contains("tiles"));
  EXPECT_EQ(document["branches"][0]["means"], 32);
  for (const auto& branch : document["branches"]) {
    EXPECT_GT(branch["tiles"]["visible"], 0) << branch;
    EXPECT_LE(branch["tiles"]["visited"], branch["tiles"]["visible"]) << branch;
  }
  EXPECT_EQ(document["o_not_finite"], 0);
  EXPECT_GT(document["kernel"]["compile_ms"], 0) << "that of all branches";
}

TEST(BranchesVerbs, RunWritesTheMaskOfEach) {
  const ScratchDirectory scratch;
  const std::string input =
      scratch.write("x.safetensors",
                    tools::print_safetensors(small_problem(2, 300, 64, tools::ArrayType::kBF16)));
  const auto run = [&](const std::string& name) {
    return run_lacuna({"run", kNsa, "--device", "cpu", "--input", input, "--json", "--param",
                       "blocks=1", "--mask-out", name});
  };
  const std::string path = scratch.file("masks.safetensors");
  const CommandResult result = run(path);
  ASSERT_EQ(result.status, 0) << result.err;
  Diagnostics diagnostics;
  const auto masks = tools::parse_safetensors(test::read_file(path), diagnostics);
  ASSERT_TRUE(masks);
  for (const auto& branch : parse_document(result)["branches"]) {
    const auto found = masks->tensors.find(branch["name"].get<std::string>());
    ASSERT_NE(found, masks->tensors.end()) << branch;
    const tools::Array& mask = found->second;
    const auto tiles = [](int tokens, int tile) { return (tokens + tile - 1) / tile; };
    const int means = branch.value("means", 1);
    EXPECT_EQ(mask.shape,
              (std::vector<std::int64_t>{1, 2, tiles(300, branch["tile"]["q"]),
                                         tiles(tiles(300, means), branch["tile"]["k"])}));
    EXPECT_EQ(std::ranges::count_if(mask.bytes, [](char tile) { return tile != 0; }),
              branch["tiles"]["visited"].get<int>());
  }
  EXPECT_EQ(masks->tensors.size(), 3U);
  const CommandResult refused = run(scratch.file("mask.npy"));
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.out.find("mask.npy; nsa has branches, each with a mask of its own tiles"),
            std::string::npos)
      << refused.out << refused.err;
}

TEST(BranchesVerbs, RunChecksBranchesAgainstThemselvesWithAllTiles) {
  const ScratchDirectory scratch;
  const std::string input =
      scratch.write("x.safetensors",
                    tools::print_safetensors(small_problem(2, 300, 64, tools::ArrayType::kBF16)));
  const auto run = [&](const std::string& blocks) {
    return run_lacuna({"run", kNsa, "--device", "cpu", "--input", input, "--check", "--tolerance",
                       "1e-6", "--param", "blocks=" + blocks, "--json"});
  };
  const CommandResult all = run("100");
  ASSERT_EQ(all.status, 0) << all.err << all.out;
  EXPECT_EQ(parse_document(all)["error"]["against"],
            "its branches with all tiles that their masks leave");
  EXPECT_EQ(parse_document(all)["error"]["rel_l1"], 0);
  const CommandResult few = run("0");
  EXPECT_EQ(few.status, 4) << few.err;
  EXPECT_NE(few.out.find("relative L1 error against its branches with all tiles that their masks "
                         "leave: expected at most"),
            std::string::npos)
      << few.out;
}

TEST(BranchesVerbs, RunWarnsOfABranchThatLeavesNothingOut) {
  const ScratchDirectory scratch;
  const std::string input =
      scratch.write("x.safetensors",
                    tools::print_safetensors(small_problem(2, 300, 64, tools::ArrayType::kBF16)));
  const CommandResult result = run_lacuna(
      {"run", kNsa, "--device", "cpu", "--input", input, "--param", "blocks=100", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(parse_document(result)["warnings"],
            nlohmann::json({"branch selected: predictor.keep holds for every visible tile: nothing "
                            "is left out"}));
}

TEST(BranchesVerbs, ABandIsNoSpecByItself) {
  const std::string spec = source_file("specs/differential.json");
  const CommandResult tune = run_lacuna({"tune", spec, "--device", "cpu", "--branch", "noise"});
  EXPECT_NE(tune.status, 0);
  EXPECT_NE(tune.err.find("branch noise compares dims 64:128: its rows are not those of the "
                          "tensors"),
            std::string::npos)
      << tune.err;
}

TEST(BranchesVerbs, BenchTimesAllBranchesNextToDenseAttention) {
  const CommandResult result = run_lacuna({"bench", kNsa, "--device", "cpu", "--shape",
                                           "h=1,h_kv=1,n=256", "--seconds", "0.05", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  EXPECT_EQ(names_of(document["branches"]),
            (std::vector<std::string>{"compressed", "selected", "window"}));
  EXPECT_FALSE(document.contains("tiles"));
  ASSERT_EQ(document["launches"].size(), 2U);
  EXPECT_EQ(document["launches"][0]["name"], "nsa");
  EXPECT_GT(document["launches"][0]["median_us"], 0);
  EXPECT_FALSE(document["launches"][0].contains("effective_tflops"));
  EXPECT_EQ(document["launches"][1]["name"], "dense");
  EXPECT_GT(document["launches"][1]["effective_tflops"], 0);
}

TEST(BranchesVerbs, VizDrawsABranchByItsName) {
  const ScratchDirectory scratch;
  const std::string out = scratch.file("mask.svg");
  const auto draw = [&](const std::string& branch) {
    return run_lacuna({"viz", "mask", kNsa, "--branch", branch, "--param", "blocks=2", "--device",
                       "cpu", "-o", out, "--json"});
  };
  const CommandResult selected = draw("selected");
  ASSERT_EQ(selected.status, 0) << selected.err;
  const auto heads = parse_document(selected)["heads"];
  ASSERT_FALSE(heads.empty());
  EXPECT_LT(heads[0]["kept"], heads[0]["visible"]);
  const CommandResult means = draw("compressed");
  EXPECT_EQ(means.status, 1);
  EXPECT_NE(means.out.find("branch compressed attends to means"), std::string::npos) << means.out;
  const CommandResult unknown = draw("slected");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(
      unknown.out.find("nsa has no branch slected; branches over whole tokens: selected, window"),
      std::string::npos)
      << unknown.out;
}

TEST(BranchesVerbs, WhatIsOfOneAttendIsRefusedByThePlace) {
  const CommandResult calibrate = run_lacuna({"calibrate", kNsa, "--device", "cpu"});
  EXPECT_NE(calibrate.status, 0);
  EXPECT_NE(
      calibrate.err.find("nsa.json:22:15: error: branches: expected a spec of one attend here"),
      std::string::npos)
      << calibrate.err;
  const CommandResult tune = run_lacuna({"tune", kNsa, "--device", "cpu", "--branch", "nope"});
  EXPECT_NE(tune.status, 0);
  EXPECT_NE(tune.err.find("nsa has no branch nope; branches over whole tokens: selected, window"),
            std::string::npos)
      << tune.err;
  const CommandResult batch = run_lacuna({"emit", "--form", "plan", kNsa, "--arch", "sm_90a",
                                          "--batch", "pages", "--branch", "window"});
  EXPECT_EQ(batch.status, 0) << batch.err;
  EXPECT_NE(
      batch.out.find("family = wgmma                (default: the tensor cores of sm_90a by TMA)"),
      std::string::npos)
      << batch.out;
}

}  // namespace
}  // namespace lacuna::tests

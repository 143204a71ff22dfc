// build, cache, doctor: what the machine has to offer decides what they can show.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cache/bundle.hpp"
#include "runtime/engine/probe.hpp"
#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

nlohmann::json doctor() { return parse_document(run_lacuna({"doctor", "--json"})); }

TEST(Doctor, ReportsEveryPartAndNeverFails) {
  const CommandResult text = run_lacuna({"doctor"});
  EXPECT_EQ(text.status, 0);
  for (const char* part : {"lacuna", "NVRTC", "CPU", "cache", "LACUNA_CACHE_DIR"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
  }
  const auto document = doctor();
  for (const char* part : {"lacuna", "nvrtc", "driver", "cpu", "cache", "variables"}) {
    EXPECT_TRUE(document.contains(part)) << part;
  }
}

TEST(Doctor, SaysWhatNvrtcIsThere) {
  const auto nvrtc = doctor()["nvrtc"];
  const NvrtcProbe probe = probe_environment().nvrtc;
  ASSERT_EQ(nvrtc["found"], probe.info.has_value()) << nvrtc;
  if (probe.info) {
    EXPECT_EQ(nvrtc["path"], probe.info->path);
  } else {
    EXPECT_EQ(nvrtc["missing"], probe.missing);
  }
}

TEST(Cache, AnEmptyStoreListsVerifiesAndClears) {
  EXPECT_EQ(run_lacuna({"cache", "ls"}).out, "0 entries, 0 B\n");
  EXPECT_EQ(run_lacuna({"cache", "verify"}).out, "0 intact, 0 damaged\n");
  EXPECT_EQ(run_lacuna({"cache", "clear"}).out, "freed 0 B\n");
  EXPECT_EQ(run_lacuna({"cache", "prune", "--max-bytes", "1M"}).out, "freed 0 B\n");
  const CommandResult path = run_lacuna({"cache", "path", "--json"});
  EXPECT_EQ(path.status, 0);
  EXPECT_TRUE(parse_document(path)["directory"].get<std::string>().ends_with("/cache"));
}

class Build : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = doctor()["nvrtc"];
    if (nvrtc["found"] == false) {
      GTEST_SKIP() << "no NVRTC on this machine: " << nvrtc["missing"];
    }
  }
  ScratchDirectory scratch_;
};

TEST_F(Build, WritesACubinForEachArchitectureAndReportsItsResources) {
  const std::string out = scratch_.file("kernels");
  const CommandResult result = run_lacuna(
      {"build", source_file("specs/bsfa.json"), "--arch", "sm_80,sm_90a", "-o", out, "--json"});
  ASSERT_EQ(result.status, 0) << result.out << result.err;
  const auto kernels = parse_document(result)["kernels"];
  ASSERT_EQ(kernels.size(), 2u);
  for (const auto& kernel : kernels) {
    EXPECT_EQ(kernel["spec"], "bsfa");
    EXPECT_GT(kernel["registers"].get<int>(), 0);
    EXPECT_EQ(kernel["spill_bytes"], 0);
    EXPECT_GT(kernel["smem_bytes"].get<int>(), 0);
    EXPECT_GT(kernel["compile_ms"].get<double>(), 0.0);
    const std::string cubin = read_bytes(out + "/" + kernel["file"].get<std::string>());
    EXPECT_EQ(cubin.substr(1, 3), "ELF");
  }
  EXPECT_NE(read_bytes(out + "/bsfa-d128-bf16.sm_90a.cu").find("extern \"C\""), std::string::npos);
}

TEST_F(Build, WritesNothingIfOneSpecIsBad) {
  const std::string bad = scratch_.write("bad.json", "{\"version\": 1, \"name\": 3}");
  const CommandResult result = run_lacuna({"build", source_file("specs/dense.json"), bad, "--arch",
                                           "sm_80", "-o", scratch_.file("kernels")});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(scratch_.names(), std::vector<std::string>{"bad.json"});
}

TEST_F(Build, WritesNothingIfAFileCannotTakeItsPlace) {
  const std::string blocked = "dense-d128-bf16.sm_80.attend.cubin";
  std::filesystem::create_directories(scratch_.file(blocked));
  const CommandResult result = run_lacuna(
      {"build", source_file("specs/dense.json"), "--arch", "sm_80", "-o", scratch_.path()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            scratch_.file(blocked) + ": error: cannot be written: Is a directory [E0602]\n");
  EXPECT_EQ(scratch_.names(), std::vector<std::string>{blocked});
}

TEST_F(Build, OfNoSpecWritesNothing) {
  const CommandResult result = run_lacuna({"build", source_file("specs/schema.json"), "--arch",
                                           "sm_80", "-o", scratch_.file("kernels")});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(scratch_.names(), std::vector<std::string>{});
}

TEST_F(Build, SpecsOfOneNameWouldWriteTheSameFiles) {
  const std::string spec = R"({"version": 1, "name": "dense"})";
  const std::string a = scratch_.write("a.json", spec), b = scratch_.write("b.json", spec);
  const CommandResult result =
      run_lacuna({"build", a, b, "--arch", "sm_80", "-o", scratch_.file("kernels")});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "lacuna: error: " + a + " and " + b +
                            " have the same name, dense, and would write the same files\n");
}

TEST_F(Build, ATemplatePathWithoutHeadersIsReportedOnce) {
  const std::string missing = scratch_.file("headers");
  const std::string spec = source_file("specs/dense.json");
  const std::vector<std::string> build = {"build",       spec, "--arch",
                                          "sm_80,sm_89", "-o", scratch_.file("kernels")};
  ::setenv("LACUNA_TEMPLATE_PATH", missing.c_str(), 1);
  const CommandResult by_variable = run_lacuna(build);
  ::unsetenv("LACUNA_TEMPLATE_PATH");
  std::vector<std::string> with_option = build;
  with_option.insert(with_option.end(), {"--template-path", missing});
  const CommandResult emit =
      run_lacuna({"emit", "--form", "ptx", spec, "--template-path", missing});
  const std::string message =
      ": error: template path: expected a directory with .cuh headers, got " + missing +
      " (No such file or directory) [E0709]\n";
  for (const CommandResult& result : {by_variable, run_lacuna(with_option)}) {
    EXPECT_EQ(result.status, 3);
    EXPECT_EQ(result.err, "lacuna" + message);
  }
  EXPECT_NE(emit.status, 0);
  EXPECT_EQ(emit.err, spec + message);
  EXPECT_EQ(scratch_.names(), std::vector<std::string>{});
}

TEST_F(Build, ABundleHoldsEveryVariantOnce) {
  const std::string spec = source_file("specs/dense.json"), out = scratch_.file("k.lacuna");
  const std::vector<std::string> build = {"build",      spec,       "--arch",  "sm_80",
                                          "--dtype",    "bf16,f16", "--batch", "uniform,pages",
                                          "--head-dim", "64",       "--json"};
  std::vector<std::string> with_bundle = build;
  with_bundle.insert(with_bundle.end(), {"--bundle", out});
  const CommandResult result = run_lacuna(with_bundle);
  ASSERT_EQ(result.status, 0) << result.out << result.err;
  const auto kernels = parse_document(result)["kernels"];
  ASSERT_EQ(kernels.size(), 4u);
  const std::string bytes = read_bytes(out);
  const cache::ReadBundle read = cache::read_bundle(bytes);
  ASSERT_EQ(read.damage, "");
  ASSERT_EQ(read.bundle.items.size(), 4u);
  for (const auto& kernel : kernels) {
    EXPECT_FALSE(kernel.contains("file")) << kernel;
    const bool is_in = std::ranges::any_of(read.bundle.items, [&](const cache::Bundle::Item& item) {
      return item.sha256 == kernel["key"].get<std::string>();
    });
    EXPECT_TRUE(is_in) << kernel;
  }
  const CommandResult nowhere = run_lacuna(build);
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_NE(nowhere.out.find("expected -o DIR, --bundle FILE or both"), std::string::npos);
}

TEST_F(Build, EmitsPtxAndCubin) {
  const std::string spec = source_file("specs/dense.json");
  const CommandResult ptx = run_lacuna({"emit", "--form", "ptx", spec, "--arch", "sm_80"});
  EXPECT_EQ(ptx.status, 0) << ptx.err;
  EXPECT_NE(ptx.out.find(".target sm_80"), std::string::npos);
  const CommandResult cubin = run_lacuna({"emit", "--form", "cubin", spec, "--arch", "sm_80"});
  EXPECT_EQ(cubin.status, 0) << cubin.err;
  EXPECT_EQ(cubin.out.substr(1, 3), "ELF");
}

TEST_F(Build, EachKernelOfASpecHasItsOwnCode) {
  const std::string spec = source_file("specs/topk-blocks.json");
  const CommandResult estimate =
      run_lacuna({"emit", "--form", "ptx", spec, "--arch", "sm_80", "--kernel", "estimate"});
  EXPECT_EQ(estimate.status, 0) << estimate.err;
  EXPECT_NE(estimate.out.find(".visible .entry lacuna_estimate_topk_blocks("), std::string::npos);
  EXPECT_EQ(estimate.out.find("lacuna_attend_topk_blocks"), std::string::npos);
  const std::string dumped = scratch_.file("dumped");
  ::setenv("LACUNA_DUMP", dumped.c_str(), 1);
  const CommandResult cubin =
      run_lacuna({"emit", "--form", "cubin", spec, "--arch", "sm_80", "--kernel", "estimate"});
  ::unsetenv("LACUNA_DUMP");
  std::vector<std::string> compiled;
  for (const auto& file : std::filesystem::directory_iterator(dumped))
    if (file.path().extension() == ".cubin") compiled.push_back(file.path().stem().extension());
  std::ranges::sort(compiled);
  EXPECT_EQ(compiled, (std::vector<std::string>{".attend", ".estimate"}));  // of six
  const CommandResult wrong = run_lacuna({"emit", "--form", "ptx", spec, "--kernel", "estimat"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("got estimat; did you mean \"estimate\"?"), std::string::npos)
      << wrong.err;
  const std::string out = scratch_.file("kernels");
  const CommandResult built = run_lacuna({"build", spec, "--arch", "sm_80", "-o", out, "--json"});
  ASSERT_EQ(built.status, 0) << built.err;
  const auto document = parse_document(built);
  for (const auto& kernel : document["kernels"]) {
    const std::string code = read_bytes(out + "/" + kernel["file"].get<std::string>());
    EXPECT_NE(code.find(kernel["name"].get<std::string>()), std::string::npos) << kernel;
    if (kernel["name"] == "lacuna_estimate_topk_blocks") {
      EXPECT_TRUE(code == cubin.out);
    }
  }
}

}  // namespace
}  // namespace lacuna::tests

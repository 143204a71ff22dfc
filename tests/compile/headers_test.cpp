// The device headers stand alone: each compiles by itself, includes nothing but the others, and
// all of them are in use.
#include <set>
#include <sstream>

#include "compiler/target/plan.hpp"
#include "runtime/cuda/device_headers.hpp"
#include "tests/compile/nvrtc.hpp"

namespace lacuna {
namespace {

/// What a generated kernel.cu includes.
constexpr const char* kIncludedByKernels[] = {"\"arch/launch.cuh\"",
                                              "\"args/branch_args.cuh\"",
                                              "\"args/expr.cuh\"",
                                              "\"args/kv_scale_args.cuh\"",
                                              "\"args/pair_args.cuh\"",
                                              "\"args/summary_args.cuh\"",
                                              "\"attend/mma/attend_mma.cuh\"",
                                              "\"attend/wgmma/attend_wgmma.cuh\"",
                                              "\"attend/combine.cuh\"",
                                              "\"attend/merge_branch.cuh\"",
                                              "\"prepare/bounds.cuh\"",
                                              "\"prepare/means.cuh\"",
                                              "\"prepare/permute.cuh\"",
                                              "\"prepare/prepare.cuh\"",
                                              "\"prepare/prepare_values.cuh\"",
                                              "\"prepare/statistics.cuh\"",
                                              "\"select/cells/cell_shares.cuh\"",
                                              "\"select/cells/cells.cuh\"",
                                              "\"select/compact.cuh\"",
                                              "\"select/exact/exact_largest.cuh\"",
                                              "\"select/exact/exact_sums.cuh\"",
                                              "\"select/given/given.cuh\"",
                                              "\"select/pairs.cuh\"",
                                              "\"select/pooled/pooled.cuh\"",
                                              "\"select/tokens/key_shares.cuh\"",
                                              "\"select/tokens/last_rows.cuh\"",
                                              "\"select/tokens/order_last_rows.cuh\"",
                                              "\"select/tokens/reference.cuh\"",
                                              "\"select/keep/select.cuh\"",
                                              "\"select/tokens/tokens.cuh\"",
                                              "\"select/token_pairs/tokens_wgmma.cuh\"",
                                              "\"select/token_softmax/token_softmax.cuh\""};

/// What a text includes, as written: "base/ints.cuh" or <cuda.h>, with its quotes or brackets.
std::vector<std::string> includes_of(const std::string& text) {
  std::vector<std::string> includes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    const std::size_t word = line.find("include", hash);
    if (word == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", word + 7);
    includes.push_back(line.substr(begin, line.find_first_of("\">", begin + 1) - begin + 1));
  }
  return includes;
}

std::vector<DeviceHeader> headers_here() {
  Diagnostics diagnostics;
  return device_headers("", diagnostics);
}

std::vector<std::string> nvrtc_options() {
  Diagnostics diagnostics;
  const SpecDocument document =
      read_spec({"made.json", R"({"version": 1, "name": "made"})"}, diagnostics);
  const Plan plan = make_plan(document, {}, find_target("sm_80").value(), diagnostics);
  return emit_cuda(plan, document).options;
}

TEST(Headers, IncludeNothingButEachOther) {
  std::set<std::string> names;
  for (const DeviceHeader& header : headers_here()) names.insert('"' + header.name + '"');
  ASSERT_GT(names.size(), 10u);
  for (const DeviceHeader& header : headers_here()) {
    EXPECT_NE(header.text.find("#pragma once"), std::string::npos) << header.name;
    for (const std::string& include : includes_of(header.text)) {
      EXPECT_TRUE(names.contains(include)) << header.name << " includes " << include;
    }
  }
}

TEST(Headers, AreAllInUse) {
  std::set<std::string> used;
  for (const char* root : kIncludedByKernels) used.insert(root);
  for (std::size_t before = 0; before != used.size();) {
    before = used.size();
    for (const DeviceHeader& header : headers_here()) {
      if (!used.contains('"' + header.name + '"')) continue;
      for (const std::string& include : includes_of(header.text)) used.insert(include);
    }
  }
  for (const DeviceHeader& header : headers_here()) {
    EXPECT_TRUE(used.contains('"' + header.name + '"')) << header.name;
  }
}

TEST(Headers, CompileAlone) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  std::vector<std::string> options = nvrtc_options();
  options.emplace_back("-fdevice-syntax-only");  // kernels show what becomes of them
  for (const DeviceHeader& header : headers_here()) {
    Diagnostics diagnostics;
    const std::string text = "#include \"" + header.name + "\"\n";
    const Compilation made =
        compile_cuda(*nvrtc, {"", {{"", "", text + text}}, options}, "sm_80", {}, diagnostics);
    EXPECT_FALSE(diagnostics.has_errors()) << header.name << "\n"
                                           << render(diagnostics, {}) << made.log;
    EXPECT_EQ(made.log.find("warning"), std::string::npos) << header.name << "\n" << made.log;
  }
}

}  // namespace
}  // namespace lacuna

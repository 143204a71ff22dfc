// The caller's workspace: as large and as aligned as the kernel asks for, or not used at all.
#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"
#include "runtime/engine/kernel.hpp"
#include "tests/runtime/dense_problem.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

using namespace dense_problem;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kNeeded = 2 * 256;

class Workspace : public testing::Test {
 protected:
  void SetUp() override {
    const ScopedVariable interpreted("LACUNA_HOST_PLUGIN", "off");
    const SourceText source{"a.json", R"({"version": 1, "name": "dense"})"};
    EngineSettings settings;
    settings.device = "cpu";
    kernel = compile_kernel(create_engine(settings, errors), source, {kDim, DType::kF32}, errors);
    ASSERT_NE(kernel, nullptr) << render(errors, source);
    // Shipped methods need none: this one asks for a unit of 256 bytes for each KV head.
    const ParsedExpr units = parse_expr("n_b * n_h_kv", Site::kLaunch, {});
    ASSERT_TRUE(units.ok());
    kernel->planned.launch.workspace_value = static_cast<int>(kernel->planned.launch.values.size());
    kernel->planned.launch.values.push_back({"workspace", units.expr});
  }

  /// What a launch with this workspace is told.
  std::string launch(void* workspace, std::size_t bytes) {
    Problem problem;
    LaunchArgs args = problem.arguments();
    args.workspace = workspace;
    args.workspace_bytes = bytes;
    Diagnostics diagnostics;
    bool launched = false;
    v1::detail::with_raw_args(args, [&](const lacuna_launch_args& raw) {
      launched = launch_kernel(*kernel, raw, diagnostics);
    });
    EXPECT_EQ(launched, !diagnostics.has_errors());
    if (launched) {
      EXPECT_LT(problem.error_against_dense(), 1e-5);
    } else {
      EXPECT_EQ(problem.o[0], -1) << "a refused launch must leave the output alone";
    }
    return render(diagnostics, {"a.json", ""});
  }

  Diagnostics errors;
  std::shared_ptr<KernelState> kernel;
  alignas(256) unsigned char memory[kNeeded + 256] = {};
};

TEST_F(Workspace, ItsSizeFollowsTheShape) {
  EXPECT_EQ(workspace_bytes(*kernel, {1, kHeads, kHeadsKv, kQueries, kKeys}, errors), kNeeded);
  EXPECT_EQ(workspace_bytes(*kernel, {3, kHeads, kHeadsKv, kQueries, kKeys}, errors), 3 * kNeeded);
}

TEST_F(Workspace, MoreThanCanBeCountedIsRefused) {
  EXPECT_EQ(workspace_bytes(*kernel, {1 << 20, 1 << 20, 1 << 20, 1, 1}, errors), std::nullopt);
  EXPECT_EQ(render(errors, {"a.json", ""}),
            "a.json: error: kernel dense, workspace: expected at most 2147483647 units of 256 "
            "bytes for a shape, got more [E0504]\n");
}

TEST_F(Workspace, IsAcceptedIfLargeEnoughAndAligned) {
  EXPECT_EQ(launch(memory, kNeeded), "");
  EXPECT_EQ(launch(memory, sizeof(memory)), "");
}

TEST_F(Workspace, Missing) {
  EXPECT_EQ(launch(nullptr, 0),
            "a.json: error: kernel dense, workspace: expected 512 bytes, got null [E0504]\n");
}

TEST_F(Workspace, TooSmall) {
  EXPECT_EQ(launch(memory, kNeeded - 1),
            "a.json: error: kernel dense, workspace: expected 512 bytes, got 511 [E0504]\n");
}

TEST_F(Workspace, Misaligned) {
  EXPECT_EQ(launch(memory + 16, kNeeded),
            "a.json: error: kernel dense, workspace: expected an address aligned to 256 bytes, got "
            "one 16 bytes past that [E0504]\n");
}

TEST_F(Workspace, BothAtOnce) {
  EXPECT_EQ(launch(memory + 255, 0),
            "a.json: error: kernel dense, workspace: expected 512 bytes, got 0 [E0504]\n"
            "a.json: error: kernel dense, workspace: expected an address aligned to 256 bytes, got "
            "one 255 bytes past that [E0504]\n");
}

TEST_F(Workspace, WithoutQueriesNoneIsNeeded) {
  lacuna_launch_args raw{};
  Problem problem;
  LaunchArgs args = problem.arguments();
  const DLTensor k = args.k.view(), v = args.v.view();
  const Tensor nothing(nullptr, f32, {1, kHeads, 0, kDim});
  const DLTensor none = nothing.view();
  raw.struct_size = sizeof(raw);
  raw.q = raw.o = &none;
  raw.k = &k;
  raw.v = &v;
  Diagnostics diagnostics;
  EXPECT_TRUE(launch_kernel(*kernel, raw, diagnostics)) << render(diagnostics, {"a.json", ""});
}

}  // namespace
}  // namespace lacuna

// The CPU plugin as a stranger: one of another version, one that is none, one that fails.
#include "runtime/cpu/host_plugin.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/dense_problem.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

using namespace dense_problem;  // NOLINT(google-build-using-namespace)

std::string missing(const char* plugin) {
  const ScopedVariable named("LACUNA_HOST_PLUGIN", plugin);
  const HostPlugin loaded = load_host_plugin();
  EXPECT_EQ(loaded.backend == nullptr, !loaded.missing.empty());
  return loaded.missing;
}

/// What comes of compiling and launching with the fake plugin: its errors, or its backend.
std::string outcome(const char* failing_step) {
  const ScopedVariable plugin("LACUNA_HOST_PLUGIN", LACUNA_FAKE_HOST);
  const ScopedVariable step("FAKE_HOST_FAILS", failing_step);
  try {
    Problem problem;
    Kernel kernel = cpu_engine().compile(
        Spec::parse(R"({"version": 1, "name": "dense"})", "a.json"), {kDim, f32});
    kernel.launch(problem.arguments());
    return kernel.info_json();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERROR_INTERNAL);
    return e.what();
  }
}

TEST(HostPlugin, OfAnotherVersionIsNotUsed) {
  const ScopedVariable other("FAKE_HOST_FAILS", "abi");
  EXPECT_EQ(missing(LACUNA_FAKE_HOST),
            "no CPU compiler: " LACUNA_FAKE_HOST " belongs to another version of lacuna");
}

TEST(HostPlugin, MustBeAPluginOfLacuna) {
  EXPECT_EQ(missing("libm.so.6"), "no CPU compiler: libm.so.6 is not a plugin of lacuna");
}

TEST(HostPlugin, IsNamedAsTheBackend) {
  EXPECT_NE(outcome(nullptr).find("\"backend\":\"fake\""), std::string::npos) << outcome(nullptr);
}

TEST(HostPlugin, FailuresToCompileAreErrorsOfTheSpec) {
  EXPECT_EQ(outcome("compile"),
            "a.json: error: the CPU compiler cannot compile kernel dense: no register is left "
            "[E0708]\n");
}

TEST(HostPlugin, FailuresToRunAreErrorsOfTheLaunch) {
  EXPECT_EQ(outcome("run"),
            "a.json: error: kernel dense failed on the CPU: out of memory [E0708]\n");
}

}  // namespace
}  // namespace lacuna

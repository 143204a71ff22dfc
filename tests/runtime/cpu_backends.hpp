// Tests that run once for each way a CPU kernel can be executed: interpreted, and compiled by the
// plugin (skipped where it is not built). LACUNA_TEST_PLUGIN names one of another build: under
// sanitizers that of the release, as LLVM is not instrumented.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {

/// The parameter is "interpreted" or "compiled".
class CpuBackends : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* named = std::getenv("LACUNA_TEST_PLUGIN");
    const std::string plugin = named ? named : LACUNA_BINARY_DIR "/bin/liblacuna_host.so";
    if (std::string(GetParam()) == "compiled" && !std::filesystem::exists(plugin)) {
      GTEST_SKIP() << plugin << " is not built";
    }
    const bool off = std::string(GetParam()) == "interpreted";
    variable.emplace("LACUNA_HOST_PLUGIN", off ? "off" : plugin.c_str());
  }
  std::optional<ScopedVariable> variable;
};

inline auto cpu_backends() { return testing::Values("interpreted", "compiled"); }
inline std::string backend_name(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace lacuna

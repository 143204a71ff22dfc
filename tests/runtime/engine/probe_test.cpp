// What `lacuna doctor` reports: every probe answers with a finding or with one sentence.
#include "runtime/engine/probe.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/scoped_variable.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

TEST(Probe, EachPartIsFoundOrExplained) {
  const EnvironmentReport report = probe_environment();
  EXPECT_EQ(report.version, LACUNA_VERSION);
  EXPECT_NE(report.nvrtc.info.has_value(), !report.nvrtc.missing.empty());
  EXPECT_EQ(report.driver.devices.empty(), !report.driver.missing.empty());
  EXPECT_EQ(report.host.version.empty(), !report.host.missing.empty());
  EXPECT_EQ(report.variables.size(), 10U);
}

TEST(Probe, AMissingDriverIsOneSentence) {
  const DriverProbe probe = probe_driver();
  if (probe.missing.empty()) GTEST_SKIP() << "this machine has a GPU";
  if (probe.cuda_version == 0) {
    EXPECT_EQ(probe.missing.find('\n'), std::string::npos);
    EXPECT_TRUE(probe.devices.empty());
  }
}

TEST(Probe, VariablesShowTheirValues) {
  const ScopedVariable set("LACUNA_DUMP", "/somewhere");
  const ScopedVariable unset("LACUNA_NVRTC_PATH", nullptr);
  const EnvironmentReport report = probe_environment();
  for (const VariableProbe& variable : report.variables) {
    if (variable.name == "LACUNA_DUMP") {
      EXPECT_EQ(variable.value, "/somewhere");
    }
    if (variable.name == "LACUNA_NVRTC_PATH") {
      EXPECT_EQ(variable.value, std::nullopt);
    }
  }
}

TEST(Probe, TheCacheDirectoryIsTheOneInUse) {
  const TemporaryDirectory directory;
  const ScopedVariable set("LACUNA_CACHE_DIR", directory.text().c_str());
  const CacheProbe probe = probe_cache();
  EXPECT_EQ(probe.directory, directory.text());
  EXPECT_TRUE(probe.on_disk);
  EXPECT_EQ(probe.entries, 0U);
}

TEST(Probe, TheHostPluginCanBeTurnedOff) {
  const ScopedVariable off("LACUNA_HOST_PLUGIN", "off");
  const HostProbe probe = probe_host();
  EXPECT_EQ(probe.missing, "no CPU compiler: LACUNA_HOST_PLUGIN is off");
  EXPECT_EQ(probe.version, "");
}

}  // namespace
}  // namespace lacuna

// The table of environment variables is complete, unique and documented.
#include "runtime/base/environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace lacuna {
namespace {

TEST(Environment, EveryVariableIsNamedOnceAndDocumented) {
  std::set<std::string> names;
  for (const EnvironmentEntry& entry : environment_table()) {
    EXPECT_EQ(std::string(entry.name).rfind("LACUNA_", 0), 0U) << entry.name;
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_GT(std::string(entry.doc).size(), 20U) << entry.name;
  }
  EXPECT_EQ(names.size(), 10U);
}

TEST(Environment, UnsetAndEmptyAreTheSame) {
  unsetenv("LACUNA_DUMP");
  EXPECT_EQ(environment(EnvironmentVariable::kDump), "");
  setenv("LACUNA_DUMP", "", 1);
  EXPECT_EQ(environment(EnvironmentVariable::kDump), "");
  setenv("LACUNA_DUMP", "/somewhere", 1);
  EXPECT_EQ(environment(EnvironmentVariable::kDump), "/somewhere");
  unsetenv("LACUNA_DUMP");
}

}  // namespace
}  // namespace lacuna

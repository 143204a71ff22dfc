#include "runtime/base/environment.hpp"

#include <cstdlib>

namespace lacuna {

const std::vector<EnvironmentEntry>& environment_table() {
  static const std::vector<EnvironmentEntry> table = {
#define LACUNA_VARIABLE(name, text, doc) {EnvironmentVariable::name, text, doc},
#include "runtime/base/env.def"
#undef LACUNA_VARIABLE
  };
  return table;
}

const char* name_of(EnvironmentVariable variable) {
  return environment_table()[static_cast<std::size_t>(variable)].name;
}

std::string environment(EnvironmentVariable variable) {
  const char* value = system_variable(name_of(variable));
  return value != nullptr ? value : "";
}

const char* system_variable(const char* name) { return std::getenv(name); }

}  // namespace lacuna

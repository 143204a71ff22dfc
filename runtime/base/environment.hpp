// The process environment. env.def is the table; this is the only place of the library that reads
// it, besides the well-known directories (HOME, CUDA_HOME, ...) asked for by name.
#pragma once

#include <string>
#include <vector>

namespace lacuna {

enum class EnvironmentVariable : unsigned char {
#define LACUNA_VARIABLE(name, text, doc) name,
#include "runtime/base/env.def"
#undef LACUNA_VARIABLE
};

struct EnvironmentEntry {
  EnvironmentVariable variable;
  const char* name;
  const char* doc;
};
const std::vector<EnvironmentEntry>& environment_table();

const char* name_of(EnvironmentVariable variable);

/// The value, or "" if the variable is not set; an empty value counts as not set.
std::string environment(EnvironmentVariable variable);

/// A variable of the system (HOME, XDG_CACHE_HOME, CUDA_HOME, ...); null: not set.
const char* system_variable(const char* name);

}  // namespace lacuna

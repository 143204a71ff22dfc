// What the store holds under a key: the kernels of one build, and what is known of them.
#pragma once

#include <string>
#include <vector>

namespace lacuna::cache {

struct Entry {
  std::string key_text;
  std::string metadata;  ///< JSON: entry names, registers, spills, smem, compile_ms, tool versions
  std::string log;
  std::vector<std::string> cubins;  ///< one for each kernel; at least one
};

}  // namespace lacuna::cache

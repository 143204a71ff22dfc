#include "compiler/emit/kernel_names.hpp"

namespace lacuna {

std::string entry_name(const Kernel& kernel, const Program& program) {
  std::string name = "lacuna_" + kernel.name + "_" + program.name;
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

std::string config_name(const Kernel& kernel) {
  if (kernel.name == kAttendName) return "Config";
  std::string name;
  bool begins_word = true;
  for (const char c : kernel.name) {
    if (c != '_') name += begins_word ? static_cast<char>(c - 'a' + 'A') : c;
    begins_word = c == '_';
  }
  return name + "Config";
}

std::string grid_name(const Kernel& kernel) {
  return kernel.name == kAttendName ? "grid" : "grid." + kernel.name;
}

}  // namespace lacuna

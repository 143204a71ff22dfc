// Text files of the repository as expected values. LACUNA_UPDATE_GOLDENS=1 rewrites them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace lacuna::test {

inline std::filesystem::path source_dir() { return LACUNA_SOURCE_DIR; }

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline bool is_updating_goldens() {
  const char* value = std::getenv("LACUNA_UPDATE_GOLDENS");
  return value != nullptr && std::string_view(value) == "1";
}

/// Compares with the file, or rewrites it if asked to.
inline void expect_golden(const std::filesystem::path& path, const std::string& text) {
  if (is_updating_goldens()) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(read_file(path), text) << "LACUNA_UPDATE_GOLDENS=1 rewrites " << path;
}

}  // namespace lacuna::test

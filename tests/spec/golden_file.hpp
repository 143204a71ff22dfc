// Text files of the repository as expected values. LACUNA_UPDATE_GOLDENS=1 rewrites them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace lacuna::test {

inline std::filesystem::path source_dir() { return LACUNA_SOURCE_DIR; }

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Compares with the file, or rewrites it if asked to.
inline void expect_golden(const std::filesystem::path& path, const std::string& text) {
  const char* update = std::getenv("LACUNA_UPDATE_GOLDENS");
  if (update != nullptr && std::string(update) == "1")
    std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(read_file(path), text) << "LACUNA_UPDATE_GOLDENS=1 rewrites " << path;
}

}  // namespace lacuna::test

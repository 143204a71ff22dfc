// Commands as a shell runs them, with what they print.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace lacuna {

inline const std::string kLibrary = LACUNA_BINARY_DIR "/bin/liblacuna.so";

struct Outcome {
  int status = -1;
  std::string output;
};

inline Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.output += buffer.data();
  outcome.status = pclose(pipe);
  return outcome;
}

inline void expect_success(const std::string& command) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.output;
}

}  // namespace lacuna

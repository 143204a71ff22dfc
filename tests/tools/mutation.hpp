// Damage to files that a reader has to survive.
#pragma once

#include <random>
#include <string>

namespace lacuna::tests {

/// `bytes` with one to four of them overwritten, and every third time cut off.
inline std::string mutated(std::string bytes, std::mt19937& random) {
  for (int edits = static_cast<int>(random() % 4); edits >= 0; --edits) {
    bytes[random() % bytes.size()] = static_cast<char>(random());
  }
  if (random() % 3 == 0) bytes.resize(random() % bytes.size());
  return bytes;
}

}  // namespace lacuna::tests

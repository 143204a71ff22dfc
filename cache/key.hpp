// The key of a kernel: canonical text, and its SHA-256 as the name of the entry.
#pragma once

#include <string>
#include <vector>

namespace lacuna::cache {

/// What a kernel is compiled from, as canonical text, and its SHA-256. Not by which compiler: a
/// kernel that another one has made, on another machine, serves as well (metadata names it).
struct Key {
  std::string target;  ///< "sm_90a": a folder of its own
  std::string text;    ///< compared byte for byte on a hit
  std::string sha256;  ///< 64 hex digits of `text`
};

struct KeyParts {
  std::string source_sha256;         ///< of the generated source and all headers it can include
  std::vector<std::string> options;  ///< code-affecting options, in order
  std::string target;
};
Key make_key(const KeyParts& parts);

std::string sha256_hex(const std::string& bytes);

}  // namespace lacuna::cache

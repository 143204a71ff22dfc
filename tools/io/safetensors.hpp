// safetensors: named tensors with string metadata in one file. Eight bytes of header length, a JSON
// header {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {...}}, then raw bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"
#include "tools/io/array.hpp"

namespace lacuna::tools {

struct Safetensors {
  std::map<std::string, Array> tensors;
  std::map<std::string, std::string> metadata;
  bool operator==(const Safetensors&) const = default;
};

/// Every error of the file is reported: kFileTruncated, kFileFormat, kTensorDType, kTensorShape.
/// Nothing is assumed about the bytes.
std::optional<Safetensors> parse_safetensors(std::string_view bytes, Diagnostics& diagnostics);

/// The file's bytes; tensors lie in order of their names.
std::string print_safetensors(const Safetensors& file);

}  // namespace lacuna::tools

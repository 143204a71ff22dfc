// .npy: one numpy array. Magic, version, a Python dictionary {'descr', 'fortran_order', 'shape'},
// raw bytes. There is no bf16 in it: write f32.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"
#include "tools/io/array.hpp"

namespace lacuna::tools {

/// Little-endian C-order arrays of f64, f32, f16, i64, i32, u8 (bool counts as u8). Errors:
/// kFileTruncated, kFileFormat, kTensorDType. Nothing is assumed about the bytes.
std::optional<Array> parse_npy(std::string_view bytes, Diagnostics& diagnostics);

/// The file's bytes, format version 1.0. A bf16 array is written as f32.
std::string print_npy(const Array& array);

}  // namespace lacuna::tools

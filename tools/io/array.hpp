// Array: a dense tensor as read from a file: element type, shape, bytes (row-major, little-endian).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna::tools {

enum class ArrayType : std::uint8_t { kF64, kF32, kF16, kBF16, kI32, kI64, kU8 };

struct Array {
  ArrayType type = ArrayType::kF32;
  std::vector<std::int64_t> shape;
  std::string bytes;
  bool operator==(const Array&) const = default;
};

int size_bytes(ArrayType type);
std::string_view name_of(ArrayType type);  ///< "f32", "bf16", ...

/// Elements of a shape; nullopt if an extent is negative or the bytes would overflow.
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape);
std::string print_shape(std::span<const std::int64_t> shape);  ///< "[4, 4096, 128]"

/// Conversions of the numeric types, rounding to nearest even; f32 in between.
std::vector<float> to_f32(const Array& array);
/// Rows (of the last dimension) of a float type that hold a NaN or an infinity.
std::int64_t count_not_finite_rows(const Array& array);
/// Integers of an i32, i64 or u8 array as i32; what does not fit becomes -1.
Array to_i32(const Array& array);
Array from_f32(std::span<const float> values, std::vector<std::int64_t> shape, ArrayType type);

}  // namespace lacuna::tools

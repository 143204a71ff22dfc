#include "tools/io/array.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace lacuna::tools {
namespace {

struct TypeFacts {
  ArrayType type;
  int bytes;
  std::string_view name;
};
constexpr TypeFacts kTypeFacts[] = {
    {ArrayType::kF64, 8, "f64"},   {ArrayType::kF32, 4, "f32"}, {ArrayType::kF16, 2, "f16"},
    {ArrayType::kBF16, 2, "bf16"}, {ArrayType::kI32, 4, "i32"}, {ArrayType::kI64, 8, "i64"},
    {ArrayType::kU8, 1, "u8"},
};

const TypeFacts& facts(ArrayType type) { return kTypeFacts[static_cast<std::size_t>(type)]; }

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float from_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) {
    if (mantissa != 0) return std::numeric_limits<float>::quiet_NaN();
    return sign * std::numeric_limits<float>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa | 0x400), exponent - 25);
}

std::uint16_t to_f16(float value) {
  const auto sign =
      static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) >> 16) & 0x8000u);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);
  // Subnormals and normals alike: a whole number of units of 2^(e - 10), rounded to nearest even.
  const int exponent = magnitude < 0x1p-14f ? -14 : std::ilogb(magnitude);
  const auto units =
      static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // A normal number has units in [1024, 2048]; the hidden bit and a carry add themselves to the
  // exponent field.
  return static_cast<std::uint16_t>(sign + ((static_cast<std::uint32_t>(exponent + 14)) << 10) +
                                    units);
}

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float load_f32(ArrayType type, const char* at) {
  switch (type) {
    case ArrayType::kF64:
      return static_cast<float>(load<double>(at));
    case ArrayType::kF32:
      return load<float>(at);
    case ArrayType::kF16:
      return from_f16(load<std::uint16_t>(at));
    case ArrayType::kBF16:
      return from_bf16(load<std::uint16_t>(at));
    case ArrayType::kI32:
      return static_cast<float>(load<std::int32_t>(at));
    case ArrayType::kI64:
      return static_cast<float>(load<std::int64_t>(at));
    case ArrayType::kU8:
      return static_cast<float>(load<std::uint8_t>(at));
  }
  return 0;
}

template <class T>
void store(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void store_f32(ArrayType type, char* at, float value) {
  switch (type) {
    case ArrayType::kF64:
      return store(at, static_cast<double>(value));
    case ArrayType::kF32:
      return store(at, value);
    case ArrayType::kF16:
      return store(at, to_f16(value));
    case ArrayType::kBF16:
      return store(at, to_bf16(value));
    case ArrayType::kI32:
      return store(at, static_cast<std::int32_t>(value));
    case ArrayType::kI64:
      return store(at, static_cast<std::int64_t>(value));
    case ArrayType::kU8:
      return store(at, static_cast<std::uint8_t>(value));
  }
}

}  // namespace

int size_bytes(ArrayType type) { return facts(type).bytes; }
std::string_view name_of(ArrayType type) { return facts(type).name; }

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  constexpr std::int64_t kMostElements = std::numeric_limits<std::int64_t>::max() / 8;
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty |= extent == 0;
    if (extent != 0 && count > kMostElements / extent) return std::nullopt;
    if (extent != 0) count *= extent;
  }
  return empty ? 0 : count;
}

std::string print_shape(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

std::vector<float> to_f32(const Array& array) {
  const auto step = static_cast<std::size_t>(size_bytes(array.type));
  std::vector<float> values(array.bytes.size() / step);
  const char* at = array.bytes.data();
  for (float& value : values) {
    value = load_f32(array.type, at);
    at += step;
  }
  return values;
}

std::int64_t count_not_finite_rows(const Array& array) {
  const std::vector<float> values = to_f32(array);
  const auto width = static_cast<std::size_t>(array.shape.back());
  std::int64_t rows = 0;
  for (std::size_t first = 0; first < values.size(); first += width) {
    const std::span row = std::span(values).subspan(first, width);
    if (!std::ranges::all_of(row, [](float x) { return std::isfinite(x); })) ++rows;
  }
  return rows;
}

Array to_i32(const Array& array) {
  const auto step = static_cast<std::size_t>(size_bytes(array.type));
  Array result{ArrayType::kI32, array.shape, {}};
  result.bytes.reserve(array.bytes.size() / step * sizeof(std::int32_t));
  for (std::size_t at = 0; at + step <= array.bytes.size(); at += step) {
    std::int64_t value = 0;
    std::memcpy(&value, array.bytes.data() + at, step);
    if (array.type == ArrayType::kI32) value = static_cast<std::int32_t>(value);
    const auto narrow = static_cast<std::int32_t>(value);
    const std::int32_t kept = narrow == value ? narrow : -1;
    result.bytes.append(reinterpret_cast<const char*>(&kept), sizeof kept);
  }
  return result;
}

Array from_f32(std::span<const float> values, std::vector<std::int64_t> shape, ArrayType type) {
  const auto step = static_cast<std::size_t>(size_bytes(type));
  Array array{type, std::move(shape), std::string(values.size() * step, '\0')};
  char* at = array.bytes.data();
  for (const float value : values) {
    store_f32(type, at, value);
    at += step;
  }
  return array;
}

}  // namespace lacuna::tools

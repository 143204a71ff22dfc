#include "tests/fuzz/targets/targets.hpp"
#include "tools/io/npy.hpp"
#include "tools/io/safetensors.hpp"

namespace lacuna::fuzz {
namespace {

using namespace tools;  // NOLINT(google-build-using-namespace)

void check_array(const Array& array) {
  const auto count = element_count(array.shape);
  require(count.has_value(), "a shape without a number of elements");
  const auto bytes =
      static_cast<std::size_t>(*count) * static_cast<std::size_t>(size_bytes(array.type));
  require(array.bytes.size() == bytes, "a shape of other bytes");
  print_shape(array.shape);
  const std::vector<float> values = to_f32(array);
  require(values.size() == static_cast<std::size_t>(*count), "a value is missing");
  require(from_f32(values, array.shape, array.type).bytes.size() == bytes, "a value is lost");
  if (!array.shape.empty() && array.shape.back() > 0) count_not_finite_rows(array);
  to_i32(array);
}

bool check_npy(std::string_view bytes) {
  Diagnostics diagnostics;
  const auto array = parse_npy(bytes, diagnostics);
  require(array.has_value() != diagnostics.has_errors(), "npy: no array and no error, or both");
  if (!array) return false;
  check_array(*array);
  Diagnostics again;
  require(parse_npy(print_npy(*array), again) == array, "npy: read again as another");
  return true;
}

bool check_safetensors(std::string_view bytes) {
  Diagnostics diagnostics;
  const auto file = parse_safetensors(bytes, diagnostics);
  require(file.has_value() != diagnostics.has_errors(),
          "safetensors: no file and no error, or both");
  if (!file) return false;
  for (const auto& [name, array] : file->tensors) check_array(array);
  Diagnostics again;
  require(parse_safetensors(print_safetensors(*file), again) == file,
          "safetensors: read again as another");
  return true;
}

}  // namespace

bool run_tensors(std::string_view bytes) {
  const bool is_npy = check_npy(bytes);
  return check_safetensors(bytes) || is_npy;
}

}  // namespace lacuna::fuzz

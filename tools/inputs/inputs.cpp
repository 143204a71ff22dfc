#include "tools/inputs/inputs.hpp"

namespace lacuna::tools {

ArrayType array_type(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return ArrayType::kBF16;
    case DType::kF16:
      return ArrayType::kF16;
    case DType::kF32:
      return ArrayType::kF32;
  }
  return ArrayType::kF32;
}

Array first_elements(const Array& rows, std::int64_t width) {
  const std::int64_t whole = rows.shape.back();
  if (width >= whole) return rows;
  Array first{rows.type, rows.shape, {}};
  first.shape.back() = width;
  const auto size = static_cast<std::size_t>(size_bytes(rows.type));
  const std::size_t row_bytes = size * static_cast<std::size_t>(whole);
  for (std::size_t at = 0; at < rows.bytes.size(); at += row_bytes)
    first.bytes.append(rows.bytes, at, size * static_cast<std::size_t>(width));
  return first;
}

void take_v_of_k(const VariantSpec& spec, int head_dim_v, Inputs& inputs) {
  if (spec.attention.v != ValuesOf::kKeys) return;
  const std::int64_t width = head_dim_v > 0 ? head_dim_v : inputs.k.shape.back();
  inputs.v = first_elements(inputs.k, width);
  inputs.v_of_k = true;
}

}  // namespace lacuna::tools

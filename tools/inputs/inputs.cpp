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

}  // namespace lacuna::tools

// A load that takes place only where there is an address, without a branch.
#pragma once

namespace lacuna {

/// data[offset], or `otherwise` if data is null. No kernel of the launch may write that memory. The
/// compiler may merge two loads of the same element.
__device__ __forceinline__ int read_or(const int* data, long long offset, int otherwise) {
  int x;
  asm("{\n.reg .pred is_there;\nsetp.ne.u64 is_there, %1, 0;\nmov.b32 %0, %3;\n"
      "@is_there ld.global.nc.b32 %0, [%2];\n}"
      : "=&r"(x)
      : "l"(data), "l"(data + offset), "r"(otherwise));
  return x;
}
__device__ __forceinline__ float read_or(const float* data, long long offset, float otherwise) {
  return __int_as_float(
      read_or(reinterpret_cast<const int*>(data), offset, __float_as_int(otherwise)));
}

}  // namespace lacuna

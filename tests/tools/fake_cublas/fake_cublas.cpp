// A cuBLAS for tests without a GPU: it looks at what it is asked for and computes nothing. With
// FAKE_CUBLAS_STATUS in the environment every product fails with that status.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalidValue = 7, kNotInitialized = 1;
constexpr int kSize = 8192, kBf16 = 14, kComputeF32 = 68;

struct Handle {
  void* stream = nullptr;
} handle;

/// Values that vary, as those of real tensors do.
bool varies(const void* matrix) {
  const auto* values = static_cast<const std::uint16_t*>(matrix);
  return std::set<std::uint16_t>(values, values + 64).size() > 16;
}

bool is_f32(const void* scalar, float expected) {
  return scalar != nullptr && *static_cast<const float*>(scalar) == expected;
}

}  // namespace

FAKE int cublasGetProperty(int property, int* value) {
  *value = property == 0 ? 13 : 0;
  return 0;
}
FAKE int cublasCreate_v2(void** created) {
  *created = &handle;
  return 0;
}
FAKE int cublasDestroy_v2(void* destroyed) { return destroyed == &handle ? 0 : kNotInitialized; }
FAKE int cublasSetStream_v2(void* used, void* stream) {
  handle.stream = stream;
  return used == &handle ? 0 : kNotInitialized;
}
FAKE int cublasGemmEx(void* used, int operation_a, int operation_b, int m, int n, int k,
                      const void* alpha, const void* a, int type_a, int stride_a, const void* b,
                      int type_b, int stride_b, const void* beta, void* c, int type_c, int stride_c,
                      int compute_type, int algorithm) {
  if (used != &handle || handle.stream == nullptr) return kNotInitialized;
  if (const char* status = std::getenv("FAKE_CUBLAS_STATUS")) return std::atoi(status);
  const int sizes[] = {m, n, k, stride_a, stride_b, stride_c};
  const int types[] = {type_a, type_b, type_c};
  const bool is_expected = std::ranges::all_of(sizes, [](int size) { return size == kSize; }) &&
                           std::ranges::all_of(types, [](int type) { return type == kBf16; }) &&
                           operation_a == 1 && operation_b == 0 && is_f32(alpha, 1) &&
                           is_f32(beta, 0) && compute_type == kComputeF32 && algorithm == -1 &&
                           c != nullptr && a != b && varies(a) && varies(b);
  return is_expected ? 0 : kInvalidValue;
}

#include "tools/measure/gemm_rate.hpp"

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/library_search.hpp"
#include "tools/common/spread.hpp"
#include "tools/measure/random_problem.hpp"

namespace lacuna::tools {
namespace {

// The part of the cuBLAS ABI that is in use. Names and values are those of cublas_api.h,
// library_types.h: the build needs no CUDA toolkit.
using CublasStatus = int;
using CublasHandle = struct cublasContext*;
constexpr CublasStatus kCublasSuccess = 0;
constexpr int kMajorVersion = 0;                    // libraryPropertyType: MAJOR_VERSION
constexpr int kNotTransposed = 0, kTransposed = 1;  // cublasOperation_t: CUBLAS_OP_N, CUBLAS_OP_T
constexpr int kBf16 = 14;                           // cudaDataType_t: CUDA_R_16BF
constexpr int kComputeF32 = 68;                     // cublasComputeType_t: CUBLAS_COMPUTE_32F
constexpr int kDefaultAlgorithm = -1;               // cublasGemmAlgo_t: CUBLAS_GEMM_DEFAULT

constexpr int kSize = 8192;  ///< of the matrices: 3 of 128 MiB, beyond any L2 cache

constexpr std::string_view kNoRate = "rates are not compared with GEMM: ";

struct Cublas {
  std::string path;
  CublasStatus (*get_property)(int property, int* value) = nullptr;
  CublasStatus (*create)(CublasHandle*) = nullptr;
  CublasStatus (*destroy)(CublasHandle) = nullptr;
  CublasStatus (*set_stream)(CublasHandle, CUstream) = nullptr;
  CublasStatus (*gemm)(CublasHandle, int operation_a, int operation_b, int m, int n, int k,
                       const void* alpha, const void* a, int type_a, int stride_a, const void* b,
                       int type_b, int stride_b, const void* beta, void* c, int type_c,
                       int stride_c, int compute_type, int algorithm) = nullptr;
};

template <class Function>
bool resolve(const DynamicLibrary& library, const char* name, Function& slot) {
  slot = reinterpret_cast<Function>(library.symbol(name));
  return slot != nullptr;
}

/// False with the reason in `why` if the library is no cuBLAS that the driver can serve.
bool adopt(const DynamicLibrary& library, int max_major, Cublas& cublas, std::string& why) {
  if (!resolve(library, "cublasGetProperty", cublas.get_property) ||
      !resolve(library, "cublasCreate_v2", cublas.create) ||
      !resolve(library, "cublasDestroy_v2", cublas.destroy) ||
      !resolve(library, "cublasSetStream_v2", cublas.set_stream) ||
      !resolve(library, "cublasGemmEx", cublas.gemm)) {
    why = "it lacks entry points of cuBLAS 12";
    return false;
  }
  int major = 0;
  cublas.get_property(kMajorVersion, &major);
  if (major > max_major) {
    why = "version " + std::to_string(major) + " is newer than the driver's CUDA " +
          std::to_string(max_major);
    return false;
  }
  cublas.path = library_path_of(reinterpret_cast<const void*>(cublas.gemm));
  return true;
}

/// nullopt with the reason in `missing`.
std::optional<Cublas> load_cublas(int max_major, std::string& missing) {
  constexpr CudaLibrary kCublas{"cublas", "cublas", EnvironmentVariable::kCublasPath};
  Cublas cublas;
  std::vector<std::string> searched;
  const auto take = [&](const DynamicLibrary& library, std::string& why) {
    return adopt(library, max_major, cublas, why);
  };
  if (find_library(kCublas, take, searched)) return cublas;
  // One place is one that the user named.
  missing = std::string(kNoRate) + (searched.size() == 1
                                        ? searched.front()
                                        : "libcublas.so.13 or libcublas.so.12 was not found; "
                                          "LACUNA_CUBLAS_PATH names it");
  return std::nullopt;
}

/// One cuBLAS handle on the stream of a place, and what it multiplies.
class Product {
 public:
  /// `cublas` outlives it, and a context is current as long as it lives.
  Product(const Cublas& cublas, const Place& place, Diagnostics& diagnostics) : cublas_(cublas) {
    check("cublasCreate", cublas_.create(&handle_));
    if (failed()) return;
    check("cublasSetStream", cublas_.set_stream(handle_, place.stream->handle()));
    Inputs random = random_inputs({1, 1, 1, kSize, kSize}, kSize, DType::kBF16, /*seed=*/1);
    a_ = place_array(std::move(random.q), place, diagnostics);
    b_ = place_array(std::move(random.k), place, diagnostics);
    c_ = place_array(std::move(random.v), place, diagnostics);
  }
  ~Product() {
    if (handle_ != nullptr) cublas_.destroy(handle_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  /// Enqueues c = transposed(a) * b: in memory both run along the summed dimension, as q and k do.
  void enqueue() {
    constexpr float kOne = 1, kZero = 0;
    check("cublasGemmEx",
          cublas_.gemm(handle_, kTransposed, kNotTransposed, kSize, kSize, kSize, &kOne, a_.data(),
                       kBf16, kSize, b_.data(), kBf16, kSize, &kZero, c_.data(), kBf16, kSize,
                       kComputeF32, kDefaultAlgorithm));
  }

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  void check(const char* call, CublasStatus status) {
    if (status == kCublasSuccess || failed()) return;
    failure_ = std::string(call) + " failed with status " + std::to_string(status);
  }

  const Cublas& cublas_;
  CublasHandle handle_ = nullptr;
  std::string failure_;
  Buffer a_, b_, c_;
};

/// Times of single products, microseconds; those of a batch follow each other without a gap.
std::vector<double> time_products(Product& product, const Place& place, Diagnostics& diagnostics) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kSustained(500);
  constexpr std::size_t kBatch = 16, kMostTimes = 2000;
  const CUstream stream = place.stream->handle();
  DeviceEvents events(place.gpu, kBatch + 1, diagnostics);
  std::vector<double> times_us;
  product.enqueue();  // cuBLAS loads its kernel
  const auto begin = Clock::now();
  while (times_us.size() < kMostTimes && Clock::now() - begin < kSustained) {
    events.record(0, stream, diagnostics);
    for (std::size_t i = 1; i <= kBatch && !product.failed(); ++i) {
      product.enqueue();
      events.record(i, stream, diagnostics);
    }
    if (product.failed() || diagnostics.has_errors()) break;
    const std::vector<double> batch = events.elapsed_us(diagnostics);
    times_us.insert(times_us.end(), batch.begin(), batch.end());
  }
  return times_us;
}

}  // namespace

GemmRate measure_gemm_rate(const Place& place) {
  GemmRate rate;
  const auto cublas = load_cublas(place.gpu->driver->cuda_version / 1000, rate.missing);
  if (!cublas) return rate;
  Diagnostics diagnostics;
  const ContextScope scope(*place.gpu);
  Product product(*cublas, place, diagnostics);
  std::vector<double> times_us;
  if (!product.failed() && !diagnostics.has_errors())
    times_us = time_products(product, place, diagnostics);
  if (product.failed() || diagnostics.has_errors()) {
    rate.missing = std::string(kNoRate) + cublas->path + ": " +
                   (product.failed() ? product.failure() : diagnostics.items.front().message);
    return rate;
  }
  rate.tflops = 2.0 * kSize * kSize * kSize / spread_of(std::move(times_us)).median_us * 1e-6;
  return rate;
}

}  // namespace lacuna::tools

// The CUDA driver, opened when a GPU is asked for and not before. Thin: a function table, the
// devices, contexts, and the driver's errors as diagnostics.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "runtime/cuda/cuda_types.hpp"

namespace lacuna {

/// The function table; optional entries may be null. Immutable and never unloaded.
struct Driver {
  int cuda_version = 0;  ///< newest CUDA the driver supports: 13000
// NOLINTNEXTLINE(bugprone-macro-parentheses): the parameters are declarators
#define LACUNA_DRIVER(need, name, abi, parameters) CUresult(*name) parameters = nullptr;
#include "runtime/cuda/driver.def"
#undef LACUNA_DRIVER
};

/// Opens libcuda.so.1, resolves the table and calls cuInit. Null with one diagnostic that says what
/// is missing.
std::shared_ptr<const Driver> load_driver(Diagnostics& diagnostics);

/// A GPU with its primary context retained; the context is never released (handles may outlive
/// everything else at exit).
struct Device {
  std::shared_ptr<const Driver> driver;
  int index = 0;
  CUdevice handle = 0;
  CUcontext primary = nullptr;
  int sm_count = 0;
};

int device_count(const Driver& driver);
std::string device_name(const Driver& driver, int index);
int device_attribute(const Driver& driver, int index, int attribute);  ///< 0 on failure
int compute_capability(const Driver& driver, int index);               ///< 90; 0 on failure
std::uint64_t device_memory_bytes(const Driver& driver, int index);

/// Null with a diagnostic if there is no such device or its context cannot be made.
std::shared_ptr<const Device> open_device(std::shared_ptr<const Driver> driver, int index,
                                          Diagnostics& diagnostics);

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
std::string driver_error_text(const Driver& driver, CUresult result);

/// True on success; else adds kDriverCall: "<doing>: <error text>".
bool check_driver(const Driver& driver, CUresult result, const char* doing,
                  Diagnostics& diagnostics);

/// Is the stream being captured into a graph? False where the driver cannot say.
bool is_capturing(const Driver& driver, void* stream);

/// Makes a context of `device` current for this scope: the caller's own if it has one for this
/// device, else the primary one.
class ContextScope {
 public:
  explicit ContextScope(const Device& device);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  CUresult result() const { return result_; }

 private:
  const Driver& driver_;
  CUresult result_ = kCudaSuccess;
  bool pushed_ = false;
};

}  // namespace lacuna

// Engines and kernels of the C ABI as objects that Python owns.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/lacuna.h"

namespace lacuna_python {

namespace nb = nanobind;

/// Raises the exception of lacuna.errors for a status other than LACUNA_OK.
void check(lacuna_status status);

/// Raises lacuna.ArgumentError.
[[noreturn]] void refuse_argument(const std::string& text);

class Engine {
 public:
  Engine(std::optional<std::string> device, std::optional<std::string> cache_directory,
         std::optional<std::string> template_path, int threads, bool forbid_compiling);
  Engine(const Engine&) = delete;
  ~Engine();

  std::string device() const { return lacuna_engine_device(handle_); }
  std::string device_name() const { return lacuna_engine_device_name(handle_); }
  std::string target() const { return lacuna_engine_target(handle_); }
  std::string note() const { return lacuna_engine_note(handle_); }

  /// Of any object with a buffer, which is held as long as the engine: kernels that were compiled
  /// elsewhere (lacuna_engine_add_kernels).
  void add_kernels(nb::handle bundle);

  /// Warnings since the last call, as JSON documents: of specs that were accepted, of the cache.
  std::vector<std::string> take_warnings();

  lacuna_engine* handle() const { return handle_; }

 private:
  static void keep_warning(void* user, const char* event, const char* detail_json);

  lacuna_engine* handle_ = nullptr;
  std::vector<Py_buffer> bundles_;
  std::mutex mutex_;  ///< events may come from threads of the library, which know nothing of Python
  std::vector<std::string> warnings_;
};

using Shape = std::tuple<int, int, int, int, int>;  ///< batch, heads, heads_kv, n_q, n_k

/// Prepared from the beginning.
class Kernel {
 public:
  Kernel(std::shared_ptr<Engine> engine, const std::string& spec, const std::string& path,
         int head_dim, const std::string& dtype, std::optional<Shape> shape,
         const std::string& batch, int head_dim_v, const std::string& kv);
  Kernel(const Kernel&) = delete;
  ~Kernel();

  std::string info_json() const { return lacuna_kernel_info_json(handle_); }
  std::string signature_json() const { return lacuna_kernel_signature_json(handle_); }
  std::size_t workspace_bytes(const Shape& shape) const;
  std::size_t selection_bytes(const Shape& shape, const std::optional<std::string>& branch) const;
  /// Fills host memory: i32 [tokens].
  void token_order(std::uintptr_t order, std::size_t count) const;

  DLDevice device() const { return device_; }
  lacuna_kernel* handle() const { return handle_; }
  const std::shared_ptr<Engine>& engine() const { return engine_; }

 private:
  std::shared_ptr<Engine> engine_;
  lacuna_kernel* handle_ = nullptr;
  DLDevice device_{kDLCPU, 0};
};

lacuna_shape raw_shape(const Shape& shape);
/// Of "bf16", "f16" or "f32".
lacuna_dtype read_dtype(const std::string& name);
DLDevice read_device(const std::string& text);

}  // namespace lacuna_python

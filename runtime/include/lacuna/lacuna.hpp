// Lacuna for C++17 and newer: RAII and exceptions over the C ABI of lacuna.h, header-only.
//
//   auto engine = lacuna::Engine::create();                     // first GPU, else CPU
//   auto kernel = engine.compile(lacuna::Spec::load("specs/bsfa.json"), {.head_dim = 128});
//   kernel.prepare();
//   const auto bytes = kernel.workspace_bytes({.heads = 32, .heads_kv = 8, .n_q = n, .n_k = n});
//   kernel.launch({.q = q, .k = k, .v = v, .o = o, .params = {{"threshold", t}},
//                  .workspace = workspace, .workspace_bytes = bytes, .stream = s});
//
// Every failure is a lacuna::Error. Each call also comes with a Status& as its last argument, and
// then throws nothing but std::bad_alloc; without exceptions (-fno-exceptions) there are only
// these. An Engine or Kernel that was default-constructed, moved from or could not be made is
// false, and a call on it fails.
//
// on_event may do what lacuna.h says of callbacks. What it throws leaves the call that it was
// called from; from a thread of the library's own, or where a Status was passed, it is dropped. The
// inline namespace keeps two versions of this wrapper apart in one process.
#ifndef LACUNA_LACUNA_HPP_
#define LACUNA_LACUNA_HPP_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/lacuna.h"
#include "lacuna/launch.hpp"
#include "lacuna/spec.hpp"
#include "lacuna/status.hpp"
#include "lacuna/tensor.hpp"

namespace lacuna {
inline namespace LACUNA_ABI_NAMESPACE {

struct Tile {
  std::int32_t q = 0, k = 0;
};

/// The values are those of lacuna_batch.
enum class Batch : std::int32_t { kUniform, kSequences, kPages };

/// The values are those of lacuna_kv.
enum class Kv : std::int32_t { kSame, kE4M3 };

struct CompileOptions {
  std::int32_t head_dim = 128;
  DLDataType dtype = bf16;
  Shape shape = {};  ///< about the problems it is for, as in lacuna_compile_options; n_q 0: none
  Batch batch = Batch::kUniform;
  std::int32_t head_dim_v = 0;  ///< of v and o; 0: the spec's first, else head_dim
  Kv kv = Kv::kSame;
};

namespace detail {
inline lacuna_dtype to_dtype(DLDataType t) {
  if (t.code == kDLBfloat && t.bits == 16) return LACUNA_BF16;
  if (t.code == kDLFloat && t.bits == 16) return LACUNA_F16;
  if (t.code == kDLFloat && t.bits == 32) return LACUNA_F32;
  return static_cast<lacuna_dtype>(LACUNA_F32 + 1);  // which the call refuses
}

/// `shape`: that of the options, where the result may point at it.
inline lacuna_compile_options to_raw(const CompileOptions& options, const Spec& spec,
                                     const lacuna_shape& shape) {
  lacuna_compile_options raw;
  std::memset(&raw, 0, sizeof(raw));  // also what lies behind the last field
  raw.struct_size = sizeof(raw);
  raw.head_dim = options.head_dim;
  raw.dtype = to_dtype(options.dtype);
  raw.path = spec.path().c_str();
  raw.shape = options.shape.n_q > 0 ? &shape : nullptr;
  raw.batch = static_cast<lacuna_batch>(options.batch);
  raw.head_dim_v = options.head_dim_v;
  raw.kv = static_cast<lacuna_kv>(options.kv);
  return raw;
}
}  // namespace detail

class Kernel {
 public:
  Kernel() = default;  ///< none
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /// Compiles (or takes what was added, or is in the cache) and loads; launch() needs it.
  /// Idempotent.
  void prepare(Status& status) {
    const detail::CallingBack call;
    status = detail::status_of(lacuna_prepare(handle_.get()));
  }
  void launch(const LaunchArgs& args, Status& status) const {
    status = detail::status_of(enqueue(args));
  }
  /// Bytes that a launch of this shape needs in `workspace`; 0: none.
  std::size_t workspace_bytes(const Shape& shape, Status& status) const {
    return bytes_for(shape, lacuna_workspace_bytes, status);
  }
  /// Bytes of a Selection's data; 0: the spec keeps nothing.
  std::size_t selection_bytes(const Shape& shape, Status& status) const {
    return bytes_for(shape, lacuna_selection_bytes, status);
  }
  /// The same of a branch, by its name.
  std::size_t selection_bytes(const std::string& branch, const Shape& shape, Status& status) const {
    const lacuna_shape raw = detail::to_raw(shape);
    std::size_t bytes = 0;
    status = detail::status_of(
        lacuna_branch_selection_bytes(handle_.get(), branch.c_str(), &raw, &bytes));
    return bytes;
  }
  /// Extents of k_summaries for sequences of shape.n_k keys in shape.batch slots; all 0: none stay.
  std::array<std::int64_t, 4> summaries_extents(const Shape& shape, Status& status) const {
    const lacuna_shape raw = detail::to_raw(shape);
    std::array<std::int64_t, 4> extents = {};
    status = detail::status_of(lacuna_summaries_extents(handle_.get(), &raw, extents.data()));
    return extents;
  }
  /// Fills the order that the spec's "permute" generates, for `count` tokens.
  void token_order(std::int32_t* order, std::size_t count, Status& status) const {
    status = detail::status_of(lacuna_token_order(handle_.get(), order, count));
  }
  Tile tile(Status& status) const {
    Tile tile;
    status = detail::status_of(lacuna_kernel_tile(handle_.get(), &tile.q, &tile.k));
    return tile;
  }
  /// That of a branch, by its name.
  Tile tile(const std::string& branch, Status& status) const {
    Tile tile;
    status = detail::status_of(lacuna_branch_tile(handle_.get(), branch.c_str(), &tile.q, &tile.k));
    return tile;
  }

#if defined(__cpp_exceptions)
  void prepare() {
    const detail::CallingBack call;
    call.check(lacuna_prepare(handle_.get()));
  }
  void launch(const LaunchArgs& args) const { detail::check(enqueue(args)); }
  std::size_t workspace_bytes(const Shape& shape) const {
    return detail::checked([&](Status& status) { return workspace_bytes(shape, status); });
  }
  std::size_t selection_bytes(const Shape& shape) const {
    return detail::checked([&](Status& status) { return selection_bytes(shape, status); });
  }
  std::size_t selection_bytes(const std::string& branch, const Shape& shape) const {
    return detail::checked([&](Status& status) { return selection_bytes(branch, shape, status); });
  }
  std::array<std::int64_t, 4> summaries_extents(const Shape& shape) const {
    return detail::checked([&](Status& status) { return summaries_extents(shape, status); });
  }
  std::vector<std::int32_t> token_order(std::size_t count) const {
    std::vector<std::int32_t> order(count);
    std::int32_t none = 0;
    detail::check(lacuna_token_order(handle_.get(), count == 0 ? &none : order.data(), count));
    return order;
  }
  Tile tile() const {
    return detail::checked([&](Status& status) { return tile(status); });
  }
  Tile tile(const std::string& branch) const {
    return detail::checked([&](Status& status) { return tile(branch, status); });
  }
#endif

  /// Facts about the kernel, as documented at lacuna_kernel_info_json.
  std::string info_json() const {
    return detail::text_of(handle_.get(), lacuna_kernel_info_json(handle_.get()));
  }
  /// What a launch takes, as documented at lacuna_kernel_signature_json.
  std::string signature_json() const {
    return detail::text_of(handle_.get(), lacuna_kernel_signature_json(handle_.get()));
  }

  lacuna_kernel* handle() const { return handle_.get(); }

 private:
  friend class Engine;
  explicit Kernel(std::shared_ptr<lacuna_kernel> handle) : handle_(std::move(handle)) {}

  lacuna_status enqueue(const LaunchArgs& args) const {
    lacuna_status status = LACUNA_OK;
    detail::with_raw_args(
        args, [&](const lacuna_launch_args& raw) { status = lacuna_launch(handle_.get(), &raw); });
    return status;
  }

  std::size_t bytes_for(const Shape& shape,
                        lacuna_status (*count)(const lacuna_kernel*, const lacuna_shape*,
                                               std::size_t*),
                        Status& status) const {
    const lacuna_shape raw = detail::to_raw(shape);
    std::size_t bytes = 0;
    status = detail::status_of(count(handle_.get(), &raw, &bytes));
    return bytes;
  }

  std::shared_ptr<lacuna_kernel> handle_;
};

struct EngineOptions {
  std::string device = {};  ///< "cpu", "cuda:N"; empty: the first GPU, the CPU if there is none
  std::string cache_directory = {};  ///< empty: the user's
  std::string template_path = {};    ///< empty: the embedded device headers
  std::int32_t threads = 0;          ///< CPU threads; 0: all
  std::function<void(const char* event, const char* detail_json)> on_event = {};
  bool forbid_compiling = false;  ///< of kernels for a GPU, as in lacuna_engine_options
};

class Engine {
 public:
  Engine() = default;  ///< none
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  static Engine create(const EngineOptions& options, Status& status) {
    const detail::CallingBack call;
    lacuna_status code = LACUNA_OK;
    Engine engine = make(options, code);
    status = detail::status_of(code);
    return engine;
  }
  Kernel compile(const Spec& spec, const CompileOptions& options, Status& status) const {
    const detail::CallingBack call;
    lacuna_status code = LACUNA_OK;
    Kernel kernel = make_kernel(spec, options, code);
    status = detail::status_of(code);
    return kernel;
  }
  /// Kernels that were compiled elsewhere, as documented at lacuna_engine_add_kernels: the bytes
  /// stay where they are until the engine and its kernels are gone.
  void add_kernels(const void* data, std::size_t bytes, Status& status) const {
    status = detail::status_of(lacuna_engine_add_kernels(handle_.get(), data, bytes));
  }

#if defined(__cpp_exceptions)
  static Engine create(const EngineOptions& options = {}) {
    const detail::CallingBack call;
    lacuna_status code = LACUNA_OK;
    Engine engine = make(options, code);
    call.check(code);
    return engine;
  }
  Kernel compile(const Spec& spec, const CompileOptions& options = {}) const {
    const detail::CallingBack call;
    lacuna_status code = LACUNA_OK;
    Kernel kernel = make_kernel(spec, options, code);
    call.check(code);
    return kernel;
  }
  void add_kernels(const void* data, std::size_t bytes) const {
    detail::check(lacuna_engine_add_kernels(handle_.get(), data, bytes));
  }
#if defined(__cpp_lib_span)
  void add_kernels(std::span<const std::byte> bundle) const {
    add_kernels(bundle.data(), bundle.size());
  }
#endif
#endif

  std::string device() const { return text(lacuna_engine_device); }
  std::string device_name() const { return text(lacuna_engine_device_name); }
  std::string target() const { return text(lacuna_engine_target); }
  /// What is missing on this machine and what serves in its place; "" if nothing is.
  std::string note() const { return text(lacuna_engine_note); }

  lacuna_engine* handle() const { return handle_.get(); }

 private:
  using Callback = std::function<void(const char*, const char*)>;
  explicit Engine(std::shared_ptr<lacuna_engine> handle) : handle_(std::move(handle)) {}

  std::string text(const char* (*read)(const lacuna_engine*)) const {
    return detail::text_of(handle_.get(), read(handle_.get()));
  }

  static Engine make(const EngineOptions& options, lacuna_status& status) {
    auto callback = std::make_shared<Callback>(options.on_event);
    lacuna_engine_options raw{};
    raw.struct_size = sizeof(raw);
    raw.device = text_or_null(options.device);
    raw.cache_directory = text_or_null(options.cache_directory);
    raw.template_path = text_or_null(options.template_path);
    raw.threads = options.threads;
    raw.on_event = *callback ? &Engine::forward : nullptr;
    raw.user = callback.get();
    raw.forbid_compiling = options.forbid_compiling ? 1 : 0;
    lacuna_engine* handle = nullptr;
    status = lacuna_engine_create(&raw, &handle);
    if (handle == nullptr) return {};
    // Kernels outlive the wrapper but not the callback: the deleter holds it.
    return Engine({handle, [callback](lacuna_engine* e) { lacuna_engine_destroy(e); }});
  }

  Kernel make_kernel(const Spec& spec, const CompileOptions& options, lacuna_status& status) const {
    const lacuna_shape shape = detail::to_raw(options.shape);
    const lacuna_compile_options raw = detail::to_raw(options, spec, shape);
    lacuna_kernel* handle = nullptr;
    status = lacuna_compile(handle_.get(), spec.text().data(), spec.text().size(), &raw, &handle);
    if (handle == nullptr) return {};
    auto engine = handle_;
    return Kernel({handle, [engine](lacuna_kernel* k) { lacuna_kernel_destroy(k); }});
  }

  static void forward(void* user, const char* event, const char* detail_json) {
#if defined(__cpp_exceptions)
    try {
      (*static_cast<Callback*>(user))(event, detail_json);
    } catch (...) {
      detail::CallingBack::keep();
    }
#else
    (*static_cast<Callback*>(user))(event, detail_json);
#endif
  }
  static const char* text_or_null(const std::string& s) { return s.empty() ? nullptr : s.c_str(); }

  std::shared_ptr<lacuna_engine> handle_;
};

}  // namespace LACUNA_ABI_NAMESPACE
}  // namespace lacuna
#endif

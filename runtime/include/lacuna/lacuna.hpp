// Lacuna for C++17 and newer: RAII and exceptions over the C ABI of lacuna.h, header-only.
//
//   auto engine = lacuna::Engine::create();                     // first GPU, else CPU
//   auto kernel = engine.compile(lacuna::Spec::load("specs/bsfa.json"), {.head_dim = 128});
//   kernel.prepare();
//   const auto bytes = kernel.workspace_bytes({.heads = 32, .heads_kv = 8, .n_q = n, .n_k = n});
//   kernel.launch({.q = q, .k = k, .v = v, .o = o, .params = {{"threshold", t}},
//                  .workspace = workspace, .workspace_bytes = bytes, .stream = s});
//
// Every failure is a lacuna::Error. What on_event throws leaves the call that it was called from;
// from a thread of the library's own it is dropped. The inline namespace keeps two versions of this
// wrapper apart in one process.
#ifndef LACUNA_LACUNA_HPP_
#define LACUNA_LACUNA_HPP_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/lacuna.h"

namespace lacuna {
inline namespace v1 {

inline constexpr DLDataType bf16{kDLBfloat, 16, 1};
inline constexpr DLDataType f16{kDLFloat, 16, 1};
inline constexpr DLDataType f32{kDLFloat, 32, 1};
inline constexpr DLDataType i32{kDLInt, 32, 1};
inline constexpr DLDataType u8{kDLUInt, 8, 1};

inline DLDevice cpu() { return {kDLCPU, 0}; }
inline DLDevice cuda(int index) { return {kDLCUDA, index}; }

/// A status other than LACUNA_OK, with the rendered diagnostics as what().
class Error : public std::runtime_error {
 public:
  Error(lacuna_status status, const std::string& text, std::string json)
      : std::runtime_error(text), status_(status), json_(std::move(json)) {}
  lacuna_status status() const noexcept { return status_; }
  /// {"diagnostics": [...]}
  const std::string& json() const noexcept { return json_; }

 private:
  lacuna_status status_;
  std::string json_;
};

namespace detail {
inline void check(lacuna_status status) {
  if (status != LACUNA_OK) throw Error(status, lacuna_last_error(), lacuna_last_error_json());
}

/// What an accessor of the C ABI returned for a handle, which a moved-from object lacks.
inline std::string text_of(const void* handle, const char* text) {
  if (handle == nullptr) check(LACUNA_ERROR_INPUT);
  return text;
}

/// One call of the C ABI that may call back. Exceptions cannot pass through C: the first one waits
/// here until the call has returned.
class CallingBack {
 public:
  CallingBack() : outer_(innermost_) { innermost_ = this; }
  CallingBack(const CallingBack&) = delete;
  ~CallingBack() { innermost_ = outer_; }

  /// Call it when everything that the C call has made is owned.
  void check(lacuna_status status) const {
    if (thrown_) std::rethrow_exception(thrown_);
    detail::check(status);
  }

  /// In a handler of a callback.
  static void keep() noexcept {
    if (innermost_ != nullptr && !innermost_->thrown_)
      innermost_->thrown_ = std::current_exception();
  }

 private:
  static inline thread_local CallingBack* innermost_ = nullptr;
  CallingBack* outer_;
  std::exception_ptr thrown_;
};
}  // namespace detail

/// A borrowed strided tensor of at most four dimensions; owns its shape, not its memory.
class Tensor {
 public:
  static constexpr int kMaxRank = 4;

  Tensor() = default;  ///< not passed

  /// Strides in elements; none: compact, last dimension contiguous.
  Tensor(void* data, DLDataType dtype, std::initializer_list<std::int64_t> shape,
         DLDevice device = cpu(), std::initializer_list<std::int64_t> strides = {})
      : Tensor(data, dtype, std::vector<std::int64_t>(shape), device,
               std::vector<std::int64_t>(strides)) {}

  Tensor(void* data, DLDataType dtype, const std::vector<std::int64_t>& shape,
         DLDevice device = cpu(), const std::vector<std::int64_t>& strides = {}) {
    if (shape.size() > kMaxRank || (!strides.empty() && strides.size() != shape.size())) {
      throw std::invalid_argument("lacuna::Tensor: at most 4 dimensions, one stride for each");
    }
    tensor_.data = data;
    tensor_.dtype = dtype;
    tensor_.device = device;
    tensor_.ndim = static_cast<std::int32_t>(shape.size());
    passed_ = true;
    std::uint64_t compact = 1;  // wraps for absurd extents, which a launch refuses
    for (std::size_t d = shape.size(); d-- > 0;) {
      shape_[d] = shape[d];
      strides_[d] = strides.empty() ? static_cast<std::int64_t>(compact) : strides[d];
      compact *= static_cast<std::uint64_t>(shape[d]);
    }
  }

  /// A copy of a view made elsewhere; the memory stays borrowed.
  Tensor(const DLTensor& other)  // NOLINT(google-explicit-constructor)
      : Tensor(other.data, other.dtype,
               std::vector<std::int64_t>(other.shape, other.shape + other.ndim), other.device,
               other.strides == nullptr
                   ? std::vector<std::int64_t>()
                   : std::vector<std::int64_t>(other.strides, other.strides + other.ndim)) {
    tensor_.byte_offset = other.byte_offset;
  }

  bool passed() const { return passed_; }

  /// Valid while this Tensor lives and stays where it is.
  DLTensor view() && = delete;  // it would point into a Tensor that is gone
  DLTensor view() const& {
    DLTensor result = tensor_;
    result.shape = const_cast<std::int64_t*>(shape_);
    result.strides = const_cast<std::int64_t*>(strides_);
    return result;
  }

 private:
  DLTensor tensor_{};
  std::int64_t shape_[kMaxRank] = {};
  std::int64_t strides_[kMaxRank] = {};
  bool passed_ = false;
};

/// The text of a spec and the name that errors show for it.
class Spec {
 public:
  static Spec parse(std::string text, std::string path = "<memory>") {
    return Spec(std::move(text), std::move(path));
  }
  static Spec load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error(LACUNA_ERROR_INPUT, path + ": error: cannot be read", "{}");
    return Spec({std::istreambuf_iterator<char>(file), {}}, path);
  }
  const std::string& text() const { return text_; }
  const std::string& path() const { return path_; }

 private:
  Spec(std::string text, std::string path) : text_(std::move(text)), path_(std::move(path)) {}
  std::string text_, path_;
};

/// A run-time parameter: one number for all elements, or a tensor of the declared shape.
struct Param {
  Param(std::string name, double value) : name(std::move(name)), value(value) {}
  Param(std::string name, const Tensor& tensor) : name(std::move(name)), tensor(tensor) {}
  std::string name;
  Tensor tensor;
  double value = 0;
};

/// The caller's memory for one decision of a predictor, and how often it has served.
struct Selection : lacuna_selection {
  Selection(void* data, std::size_t bytes)
      : lacuna_selection{sizeof(lacuna_selection), data, bytes, 0} {}
  /// The next launch decides anew.
  void forget() { calls = 0; }
};

/// The members are those of lacuna_sequences. A count of 0 and no tensors: no sequences.
struct Sequences {
  std::int32_t count = 0, max_n_q = 0, max_n_k = 0;
  Tensor q_begin = {}, n_k = {}, k_begin = {}, pages = {};
};

/// The members are those of lacuna_launch_args.
struct LaunchArgs {
  Tensor q, k, v, o;
  Tensor lse, counts, tile_mask;
  Tensor list_indices, list_counts;
  std::vector<Param> params;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  void* stream = nullptr;
  Tensor previous_lse, order;
  lacuna_selection* selection = nullptr;  ///< of a Selection
  std::vector<void*> stage_events;
  Sequences sequences;
};

struct Shape {
  std::int32_t batch = 1, heads = 1, heads_kv = 1, n_q = 0, n_k = 0;
};

namespace detail {
/// call(raw): the arguments as the C ABI takes them, for as long as the call lasts.
template <class Call>
void with_raw_args(const LaunchArgs& args, const Call& call) {
  const Tensor* tensors[] = {&args.q,           &args.k,
                             &args.v,           &args.o,
                             &args.lse,         &args.counts,
                             &args.tile_mask,   &args.list_indices,
                             &args.list_counts, &args.previous_lse,
                             &args.order,       &args.sequences.q_begin,
                             &args.sequences.n_k, &args.sequences.k_begin,
                             &args.sequences.pages};
  constexpr std::size_t kTensors = sizeof(tensors) / sizeof(tensors[0]);
  DLTensor views[kTensors];
  const DLTensor* passed[kTensors];
  for (std::size_t i = 0; i < kTensors; ++i) {
    views[i] = tensors[i]->view();
    passed[i] = tensors[i]->passed() ? &views[i] : nullptr;
  }
  std::vector<DLTensor> param_views(args.params.size());
  std::vector<lacuna_param> params(args.params.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Param& param = args.params[i];
    param_views[i] = param.tensor.view();
    params[i] = {param.name.c_str(), param.tensor.passed() ? &param_views[i] : nullptr,
                 param.value};
  }
  const Sequences& batch = args.sequences;
  const lacuna_sequences sequences = {sizeof(lacuna_sequences),
                                      batch.count,
                                      batch.max_n_q,
                                      batch.max_n_k,
                                      passed[11],
                                      passed[12],
                                      passed[13],
                                      passed[14]};
  const lacuna_launch_args raw = {sizeof(lacuna_launch_args),
                                  passed[0],
                                  passed[1],
                                  passed[2],
                                  passed[3],
                                  passed[4],
                                  passed[5],
                                  passed[6],
                                  passed[7],
                                  passed[8],
                                  params.data(),
                                  params.size(),
                                  args.workspace,
                                  args.workspace_bytes,
                                  args.stream,
                                  passed[9],
                                  passed[10],
                                  args.selection,
                                  args.stage_events.empty() ? nullptr : args.stage_events.data(),
                                  args.stage_events.size(),
                                  batch.q_begin.passed() ? &sequences : nullptr};
  call(raw);
}

inline lacuna_shape to_raw(const Shape& shape) {
  return {sizeof(lacuna_shape), shape.batch, shape.heads, shape.heads_kv, shape.n_q, shape.n_k};
}
}  // namespace detail

struct Tile {
  std::int32_t q = 0, k = 0;
};

/// The values are those of lacuna_batch.
enum class Batch : std::int32_t { kUniform, kSequences, kPages };

struct CompileOptions {
  std::int32_t head_dim = 128;
  DLDataType dtype = bf16;
  Shape shape = {};  ///< about the problems it is for, as in lacuna_compile_options; n_q 0: none
  Batch batch = Batch::kUniform;
};

namespace detail {
inline lacuna_dtype to_dtype(DLDataType t) {
  if (t.code == kDLBfloat && t.bits == 16) return LACUNA_BF16;
  if (t.code == kDLFloat && t.bits == 16) return LACUNA_F16;
  if (t.code == kDLFloat && t.bits == 32) return LACUNA_F32;
  throw std::invalid_argument("lacuna::CompileOptions: dtype is bf16, f16 or f32");
}

/// `shape`: that of the options, where the result may point at it.
inline lacuna_compile_options to_raw(const CompileOptions& options, const Spec& spec,
                                     const lacuna_shape& shape) {
  return {sizeof(lacuna_compile_options), options.head_dim,
          to_dtype(options.dtype),        spec.path().c_str(),
          options.shape.n_q > 0 ? &shape : nullptr,
          static_cast<lacuna_batch>(options.batch)};
}
}  // namespace detail

class Kernel {
 public:
  /// Compiles (or takes from the cache) and loads; launch() needs it. Idempotent.
  void prepare() {
    detail::CallingBack call;
    call.check(lacuna_prepare(handle_.get()));
  }

  void launch(const LaunchArgs& args) const {
    detail::with_raw_args(args, [&](const lacuna_launch_args& raw) {
      detail::check(lacuna_launch(handle_.get(), &raw));
    });
  }

  /// Bytes that a launch of this shape needs in `workspace`; 0: none.
  std::size_t workspace_bytes(const Shape& shape) const {
    return bytes_for(shape, lacuna_workspace_bytes);
  }

  /// Bytes of a Selection's data; 0: the spec keeps nothing.
  std::size_t selection_bytes(const Shape& shape) const {
    return bytes_for(shape, lacuna_selection_bytes);
  }

  /// The order that the spec's "permute" generates, for `count` tokens.
  std::vector<std::int32_t> token_order(std::size_t count) const {
    std::vector<std::int32_t> order(count);
    std::int32_t none = 0;
    detail::check(lacuna_token_order(handle_.get(), count == 0 ? &none : order.data(), count));
    return order;
  }

  Tile tile() const {
    Tile tile;
    detail::check(lacuna_kernel_tile(handle_.get(), &tile.q, &tile.k));
    return tile;
  }

  /// Facts about the kernel, as documented at lacuna_kernel_info_json.
  std::string info_json() const {
    return detail::text_of(handle_.get(), lacuna_kernel_info_json(handle_.get()));
  }

  lacuna_kernel* handle() const { return handle_.get(); }

 private:
  friend class Engine;
  explicit Kernel(std::shared_ptr<lacuna_kernel> handle) : handle_(std::move(handle)) {}

  std::size_t bytes_for(const Shape& shape,
                        lacuna_status (*count)(const lacuna_kernel*, const lacuna_shape*,
                                               std::size_t*)) const {
    const lacuna_shape raw = detail::to_raw(shape);
    std::size_t bytes = 0;
    detail::check(count(handle_.get(), &raw, &bytes));
    return bytes;
  }

  std::shared_ptr<lacuna_kernel> handle_;
};

struct EngineOptions {
  std::string device;           ///< "cpu", "cuda:N"; empty: first GPU, else CPU
  std::string cache_directory;  ///< empty: the user's
  std::string template_path;    ///< empty: the embedded device headers
  std::int32_t threads = 0;     ///< CPU threads; 0: all
  std::function<void(const char* event, const char* detail_json)> on_event;
};

class Engine {
 public:
  static Engine create(const EngineOptions& options = {}) {
    auto callback = std::make_shared<Callback>(options.on_event);
    const lacuna_engine_options raw = {sizeof(lacuna_engine_options),
                                       text_or_null(options.device),
                                       text_or_null(options.cache_directory),
                                       text_or_null(options.template_path),
                                       options.threads,
                                       *callback ? &Engine::forward : nullptr,
                                       callback.get()};
    lacuna_engine* handle = nullptr;
    detail::CallingBack call;
    const lacuna_status status = lacuna_engine_create(&raw, &handle);
    // Kernels outlive the wrapper but not the callback: the deleter holds it.
    Engine engine({handle, [callback](lacuna_engine* e) { lacuna_engine_destroy(e); }});
    call.check(status);
    return engine;
  }

  Kernel compile(const Spec& spec, const CompileOptions& options = {}) const {
    const lacuna_shape shape = detail::to_raw(options.shape);
    const lacuna_compile_options raw = detail::to_raw(options, spec, shape);
    lacuna_kernel* handle = nullptr;
    detail::CallingBack call;
    const lacuna_status status =
        lacuna_compile(handle_.get(), spec.text().data(), spec.text().size(), &raw, &handle);
    auto engine = handle_;
    Kernel kernel({handle, [engine](lacuna_kernel* k) { lacuna_kernel_destroy(k); }});
    call.check(status);
    return kernel;
  }

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

  static void forward(void* user, const char* event, const char* detail_json) {
    try {
      (*static_cast<Callback*>(user))(event, detail_json);
    } catch (...) {
      detail::CallingBack::keep();
    }
  }
  static const char* text_or_null(const std::string& s) { return s.empty() ? nullptr : s.c_str(); }

  std::shared_ptr<lacuna_engine> handle_;
};

}  // namespace v1
}  // namespace lacuna
#endif

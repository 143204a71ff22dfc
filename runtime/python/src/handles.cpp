#include "handles.hpp"

#include <nanobind/stl/string.h>

#include <cstring>

namespace lacuna_python {
namespace {

const char* text_or_null(const std::optional<std::string>& text) {
  return text ? text->c_str() : nullptr;
}

lacuna_batch read_batch(const std::string& name) {
  if (name == "uniform") return LACUNA_BATCH_UNIFORM;
  if (name == "sequences") return LACUNA_BATCH_SEQUENCES;
  if (name == "pages") return LACUNA_BATCH_PAGES;
  refuse_argument("batch: expected uniform, sequences or pages, got " + name);
}

lacuna_kv read_kv(const std::string& name) {
  if (name == "same") return LACUNA_KV_SAME;
  if (name == "e4m3") return LACUNA_KV_E4M3;
  refuse_argument("kv: expected same or e4m3, got " + name);
}

}  // namespace

lacuna_dtype read_dtype(const std::string& name) {
  if (name == "bf16") return LACUNA_BF16;
  if (name == "f16") return LACUNA_F16;
  if (name == "f32") return LACUNA_F32;
  refuse_argument("dtype: expected bf16, f16 or f32, got " + name);
}

DLDevice read_device(const std::string& text) {
  constexpr std::string_view kCuda = "cuda:";
  if (!text.starts_with(kCuda)) return {kDLCPU, 0};
  return {kDLCUDA, std::stoi(text.substr(kCuda.size()))};
}

void check(lacuna_status status) {
  if (status == LACUNA_OK) return;
  const std::string text = lacuna_last_error(), json = lacuna_last_error_json();
  nb::module_::import_("lacuna.errors").attr("raise_status")(static_cast<int>(status), text, json);
}

void refuse_argument(const std::string& text) {
  nb::module_::import_("lacuna.errors").attr("raise_argument")(text);
  throw nb::value_error(text.c_str());  // what is called above does not return
}

Engine::Engine(std::optional<std::string> device, std::optional<std::string> cache_directory,
               std::optional<std::string> template_path, int threads, bool forbid_compiling) {
  const lacuna_engine_options options = {sizeof(options),
                                         text_or_null(device),
                                         text_or_null(cache_directory),
                                         text_or_null(template_path),
                                         threads,
                                         &Engine::keep_warning,
                                         this,
                                         forbid_compiling ? 1 : 0};
  lacuna_status status;
  {
    nb::gil_scoped_release others_run;
    status = lacuna_engine_create(&options, &handle_);
  }
  check(status);
}

Engine::~Engine() {
  lacuna_engine_destroy(handle_);
  for (Py_buffer& bundle : bundles_) PyBuffer_Release(&bundle);
}

void Engine::add_kernels(nb::handle bundle) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(bundle.ptr(), &buffer, PyBUF_SIMPLE) != 0) nb::raise_python_error();
  lacuna_status status;
  {
    nb::gil_scoped_release others_run;
    status = lacuna_engine_add_kernels(handle_, buffer.buf, static_cast<std::size_t>(buffer.len));
  }
  if (status == LACUNA_OK) {
    bundles_.push_back(buffer);
    return;
  }
  PyBuffer_Release(&buffer);
  check(status);
}

std::vector<std::string> Engine::take_warnings() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(warnings_, {});
}

void Engine::keep_warning(void* user, const char* event, const char* detail_json) {
  if (std::strcmp(event, "warnings") != 0 && std::strcmp(event, "cache_warning") != 0) return;
  auto* engine = static_cast<Engine*>(user);
  const std::scoped_lock lock(engine->mutex_);
  engine->warnings_.emplace_back(detail_json);
}

lacuna_shape raw_shape(const Shape& shape) {
  const auto [batch, heads, heads_kv, n_q, n_k] = shape;
  return {sizeof(lacuna_shape), batch, heads, heads_kv, n_q, n_k};
}

Kernel::Kernel(std::shared_ptr<Engine> engine, const std::string& spec, const std::string& path,
               int head_dim, const std::string& dtype, std::optional<Shape> shape,
               const std::string& batch, int head_dim_v, const std::string& kv)
    : engine_(std::move(engine)), device_(read_device(engine_->device())) {
  const lacuna_shape raw = shape ? raw_shape(*shape) : lacuna_shape{};
  lacuna_compile_options options{};
  options.struct_size = sizeof(options);
  options.head_dim = head_dim;
  options.dtype = read_dtype(dtype);
  options.path = path.c_str();
  options.shape = shape ? &raw : nullptr;
  options.batch = read_batch(batch);
  options.head_dim_v = head_dim_v;
  options.kv = read_kv(kv);
  // The text of an error belongs to the thread, not to whoever holds the lock of Python.
  lacuna_status status;
  {
    nb::gil_scoped_release others_run;
    status = lacuna_compile(engine_->handle(), spec.data(), spec.size(), &options, &handle_);
    if (status == LACUNA_OK) status = lacuna_prepare(handle_);
  }
  if (status == LACUNA_OK) return;
  lacuna_kernel* unprepared = std::exchange(handle_, nullptr);
  try {
    check(status);
  } catch (...) {
    lacuna_kernel_destroy(unprepared);
    throw;
  }
}

Kernel::~Kernel() { lacuna_kernel_destroy(handle_); }

std::size_t Kernel::workspace_bytes(const Shape& shape) const {
  const lacuna_shape raw = raw_shape(shape);
  std::size_t bytes = 0;
  check(lacuna_workspace_bytes(handle_, &raw, &bytes));
  return bytes;
}

std::size_t Kernel::selection_bytes(const Shape& shape,
                                    const std::optional<std::string>& branch) const {
  const lacuna_shape raw = raw_shape(shape);
  std::size_t bytes = 0;
  check(branch ? lacuna_branch_selection_bytes(handle_, branch->c_str(), &raw, &bytes)
               : lacuna_selection_bytes(handle_, &raw, &bytes));
  return bytes;
}

void Kernel::token_order(std::uintptr_t order, std::size_t count) const {
  check(lacuna_token_order(handle_, reinterpret_cast<std::int32_t*>(order), count));
}

}  // namespace lacuna_python

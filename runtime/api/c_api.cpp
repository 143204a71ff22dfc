// lacuna.h over the C++ of this folder: handles, status codes, the thread's last error. No
// exception passes through here.
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "compiler/spec/json_limits.hpp"
#include "lacuna/lacuna.h"
#include "runtime/api/token_order.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/kernel.hpp"
#include "runtime/launch/bind_launch.hpp"
#include "runtime/launch/kernel_signature.hpp"

struct lacuna_engine {
  std::shared_ptr<lacuna::EngineState> state;
  const unsigned generation = lacuna::process_generation();
};

struct lacuna_kernel {
  std::shared_ptr<lacuna::KernelState> state;
  std::string signature;  ///< JSON
  const unsigned generation = lacuna::process_generation();
};

namespace lacuna {
namespace {

/// The last error of a thread; rendered when it is made, cleared by the next call.
struct LastError {
  std::string text, json;
  bool is_out_of_memory = false;  ///< then there was no memory to render anything
};

constexpr const char* kOutOfMemoryText = "lacuna: error: out of memory [E0710]\n";
constexpr const char* kOutOfMemoryJson =
    R"({"diagnostics": [{"severity": "error", "code": "E0710", "message": "out of memory"}]})";

LastError& last_error() {
  thread_local LastError error;
  return error;
}

lacuna_status status_of(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.items) {
    if (d.severity != Severity::kError) continue;
    if (d.code == Code::kNotPrepared) return LACUNA_ERROR_NOT_PREPARED;
    if (d.code == Code::kNvrtcFailed || d.code == Code::kHostFailed) return LACUNA_ERROR_INTERNAL;
    const int number = static_cast<int>(d.code);
    return number / 100 == 7 ? LACUNA_ERROR_ENVIRONMENT : LACUNA_ERROR_INPUT;
  }
  return LACUNA_ERROR_INTERNAL;
}

lacuna_status fail(const Diagnostics& diagnostics, const SourceText& source) {
  LastError& error = last_error();
  error.text = render(diagnostics, source);
  error.json = render_json(diagnostics, source);
  return status_of(diagnostics);
}

lacuna_status fail_call(const std::string& message) {
  Diagnostic d;
  d.code = Code::kCallArgument;
  d.message = message;
  Diagnostics diagnostics;
  diagnostics.add(std::move(d));
  return fail(diagnostics, {"lacuna", ""});
}

lacuna_status fail_unexpected(const char* what) {
  LastError& error = last_error();
  error.text = "lacuna: internal error: " + std::string(what) + "\n";
  error.json =
      "{\"diagnostics\": [{\"severity\": \"error\", \"message\": " + json_string(what) + "}]}";
  return LACUNA_ERROR_INTERNAL;
}

/// Whatever the body throws becomes a status, but for want of memory.
template <class Body>
lacuna_status run_body(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    return fail_unexpected(e.what());
  } catch (...) {
    return fail_unexpected("unknown exception");
  }
}

/// Runs the body of an entry point. Rendering what went wrong may be what memory ends at.
template <class Body>
lacuna_status guarded(const Body& body) noexcept {
  LastError& error = last_error();
  error.text.clear();
  error.json.clear();
  error.is_out_of_memory = false;
  try {
    return run_body(body);
  } catch (const std::bad_alloc&) {
    error.is_out_of_memory = true;
    return LACUNA_ERROR_ENVIRONMENT;
  }
}

/// What an accessor returns: "" with an error if there is no handle to ask.
template <class Handle, class Read>
const char* text_of(const Handle* handle, const char* name, const Read& read) noexcept {
  if (handle != nullptr) return read(*handle).c_str();
  guarded([&] { return fail_call(std::string(name) + ": expected a handle, got null"); });
  return "";
}

const char* engine_text(const lacuna_engine* engine, std::string EngineState::*text) noexcept {
  return text_of(engine, "engine",
                 [text](const lacuna_engine& e) -> const std::string& { return (*e.state).*text; });
}

std::string size_text(const char* name, std::size_t expected, std::size_t got) {
  return std::string(name) + ".struct_size: expected " + std::to_string(expected) + ", got " +
         std::to_string(got);
}

/// A handle that came by fork() is let go of, not destroyed: its threads, its locks and its GPU are
/// those of the parent, and a child would wait for them without end.
template <class Handle>
void destroy(Handle* handle) {
  if (handle != nullptr && handle->generation == process_generation()) delete handle;
}

/// No struct comes near this; a size beyond it was never set.
constexpr std::size_t kMostStructBytes = 4096;

/// What this version knows of a struct whose caller may have an older or a newer header. Of a
/// shorter one the fields from `first_bytes` on stay zero; a longer one has to hold zero behind
/// what is known, because a field that is not understood is not to be passed over in silence.
/// Returns what is the matter, "" if nothing is.
template <class Struct>
std::string read_struct(const char* name, const Struct& given, std::size_t first_bytes,
                        Struct& known) {
  const std::size_t bytes = given.struct_size;
  if (bytes < first_bytes || bytes > kMostStructBytes) {
    return size_text(name, sizeof(Struct), bytes);
  }
  known = Struct{};
  std::memcpy(&known, &given, std::min(bytes, sizeof(Struct)));
  const auto* begin = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t at = sizeof(Struct); at < bytes; ++at) {
    if (begin[at] == 0) continue;
    return std::string(name) + ": expected zero behind the " + std::to_string(sizeof(Struct)) +
           " bytes that version " LACUNA_VERSION " knows, got a value at byte " +
           std::to_string(at) + ": the caller was compiled with a newer lacuna.h";
  }
  return "";
}

LaunchShape launch_shape(const lacuna_shape& shape) {
  return {shape.batch, shape.heads, shape.heads_kv, shape.n_q, shape.n_k};
}

/// Answers how many bytes something takes for a shape.
template <class Count>
lacuna_status bytes_for_shape(const lacuna_kernel* kernel, const lacuna_shape* shape, size_t* bytes,
                              Count count) {
  if (kernel == nullptr) return fail_call("kernel: expected a handle, got null");
  if (shape == nullptr) return fail_call("shape: expected lacuna_shape, got null");
  if (bytes == nullptr) return fail_call("bytes: expected a place for the size, got null");
  lacuna_shape known;
  const std::string misfit = read_struct("lacuna_shape", *shape, sizeof(*shape), known);
  if (!misfit.empty()) return fail_call(misfit);
  const LaunchShape launch = launch_shape(known);
  const KernelState& state = *kernel->state;
  Diagnostics diagnostics;
  if (!check_shape(state.lowered().contract, launch, diagnostics)) {
    return fail(diagnostics, state.document.source);
  }
  const std::optional<std::size_t> counted = count(state, launch, diagnostics);
  if (!counted) return fail(diagnostics, state.document.source);
  *bytes = *counted;
  return LACUNA_OK;
}

}  // namespace
}  // namespace lacuna

using namespace lacuna;  // NOLINT(google-build-using-namespace): this file is the namespace's door

extern "C" {

uint32_t lacuna_abi_version(void) { return LACUNA_ABI_VERSION; }
const char* lacuna_version(void) { return LACUNA_VERSION; }
const char* lacuna_last_error(void) {
  const LastError& error = last_error();
  return error.is_out_of_memory ? kOutOfMemoryText : error.text.c_str();
}
const char* lacuna_last_error_json(void) {
  const LastError& error = last_error();
  return error.is_out_of_memory ? kOutOfMemoryJson : error.json.c_str();
}

lacuna_status lacuna_engine_create(const lacuna_engine_options* options, lacuna_engine** engine) {
  return guarded([&] {
    if (engine == nullptr) return fail_call("engine: expected a place for the handle, got null");
    *engine = nullptr;
    lacuna_engine_options known{};
    const std::string misfit =
        options == nullptr ? ""
                           : read_struct("lacuna_engine_options", *options,
                                         offsetof(lacuna_engine_options, forbid_compiling), known);
    if (!misfit.empty()) return fail_call(misfit);
    Diagnostics diagnostics;
    const EngineSettings settings = engine_settings(known, diagnostics);
    if (diagnostics.has_errors()) return fail(diagnostics, {"lacuna", ""});
    auto state = create_engine(settings, diagnostics);
    if (state == nullptr) return fail(diagnostics, {"lacuna", ""});
    *engine = new lacuna_engine{.state = std::move(state)};
    return LACUNA_OK;
  });
}

void lacuna_engine_destroy(lacuna_engine* engine) { destroy(engine); }

const char* lacuna_engine_device(const lacuna_engine* engine) {
  return engine_text(engine, &EngineState::device);
}
const char* lacuna_engine_device_name(const lacuna_engine* engine) {
  return engine_text(engine, &EngineState::device_name);
}
const char* lacuna_engine_target(const lacuna_engine* engine) {
  return text_of(engine, "engine",
                 [](const lacuna_engine& e) -> const std::string& { return e.state->target.name; });
}
const char* lacuna_engine_note(const lacuna_engine* engine) {
  return engine_text(engine, &EngineState::note);
}

lacuna_status lacuna_engine_add_kernels(lacuna_engine* engine, const void* data, size_t bytes) {
  return guarded([&] {
    if (engine == nullptr) return fail_call("engine: expected a handle, got null");
    if (data == nullptr) return fail_call("data: expected a bundle of kernels, got null");
    Diagnostics diagnostics;
    const std::string_view bundle(static_cast<const char*>(data), bytes);
    if (!add_kernels(*engine->state, bundle, diagnostics)) return fail(diagnostics, {"lacuna", ""});
    return LACUNA_OK;
  });
}

lacuna_status lacuna_compile(lacuna_engine* engine, const char* spec_json, size_t bytes,
                             const lacuna_compile_options* options, lacuna_kernel** kernel) {
  return guarded([&] {
    if (kernel == nullptr) return fail_call("kernel: expected a place for the handle, got null");
    *kernel = nullptr;
    if (engine == nullptr) return fail_call("engine: expected a handle, got null");
    if (spec_json == nullptr) return fail_call("spec_json: expected a text, got null");
    if (options == nullptr) return fail_call("options: expected lacuna_compile_options, got null");
    lacuna_compile_options known;
    std::string misfit = read_struct("lacuna_compile_options", *options,
                                     offsetof(lacuna_compile_options, shape), known);
    lacuna_shape about;
    if (misfit.empty() && known.shape != nullptr) {
      misfit = read_struct("lacuna_shape", *known.shape, sizeof(about), about);
    }
    if (!misfit.empty()) return fail_call(misfit);
    if (known.dtype < LACUNA_BF16 || known.dtype > LACUNA_F32) {
      return fail_call("dtype: expected bf16 (0), f16 (1) or f32 (2), got " +
                       std::to_string(static_cast<int>(known.dtype)));
    }
    if (known.batch < LACUNA_BATCH_UNIFORM || known.batch > LACUNA_BATCH_PAGES) {
      return fail_call("batch: expected uniform (0), sequences (1) or pages (2), got " +
                       std::to_string(static_cast<int>(known.batch)));
    }
    // One byte beyond what is read says that there are too many.
    const SourceText source{known.path != nullptr ? known.path : "<memory>",
                            std::string(spec_json, std::min(bytes, kMostJsonBytes + 1))};
    const BuildOptions build{known.head_dim, static_cast<DType>(known.dtype),
                             static_cast<BatchLayout>(known.batch)};
    Diagnostics diagnostics;
    std::optional<LaunchShape> shape;
    if (known.shape != nullptr) shape = launch_shape(about);
    auto state = compile_kernel(engine->state, source, build, diagnostics, shape);
    if (state == nullptr) return fail(diagnostics, source);
    if (!diagnostics.items.empty()) {
      engine->state->emit_event("warnings", render_json(diagnostics, source));
    }
    std::string signature = kernel_signature(*state);
    *kernel = new lacuna_kernel{.state = std::move(state), .signature = std::move(signature)};
    return LACUNA_OK;
  });
}

void lacuna_kernel_destroy(lacuna_kernel* kernel) { destroy(kernel); }

lacuna_status lacuna_prepare(lacuna_kernel* kernel) {
  return guarded([&] {
    if (kernel == nullptr) return fail_call("kernel: expected a handle, got null");
    Diagnostics diagnostics;
    if (!prepare_kernel(*kernel->state, diagnostics)) {
      return fail(diagnostics, kernel->state->document.source);
    }
    return LACUNA_OK;
  });
}

const char* lacuna_kernel_info_json(const lacuna_kernel* kernel) {
  return text_of(kernel, "kernel", [](const lacuna_kernel& k) -> const std::string& {
    const KernelState& state = *k.state;
    return state.ready.load(std::memory_order_acquire) ? state.ready_info : state.compiled_info;
  });
}

const char* lacuna_kernel_signature_json(const lacuna_kernel* kernel) {
  return text_of(kernel, "kernel",
                 [](const lacuna_kernel& k) -> const std::string& { return k.signature; });
}

lacuna_status lacuna_kernel_tile(const lacuna_kernel* kernel, int32_t* tile_q, int32_t* tile_k) {
  return guarded([&] {
    if (kernel == nullptr) return fail_call("kernel: expected a handle, got null");
    if (tile_q == nullptr || tile_k == nullptr) {
      return fail_call("tile_q, tile_k: expected places for the sizes, got null");
    }
    *tile_q = kernel->state->lowered().contract.tile_q;
    *tile_k = kernel->state->lowered().contract.tile_k;
    return LACUNA_OK;
  });
}

lacuna_status lacuna_workspace_bytes(const lacuna_kernel* kernel, const lacuna_shape* shape,
                                     size_t* bytes) {
  return guarded([&] { return bytes_for_shape(kernel, shape, bytes, workspace_bytes); });
}

lacuna_status lacuna_selection_bytes(const lacuna_kernel* kernel, const lacuna_shape* shape,
                                     size_t* bytes) {
  return guarded([&] { return bytes_for_shape(kernel, shape, bytes, selection_bytes); });
}

lacuna_status lacuna_token_order(const lacuna_kernel* kernel, int32_t* order, size_t count) {
  return guarded([&] {
    if (kernel == nullptr) return fail_call("kernel: expected a handle, got null");
    if (order == nullptr) return fail_call("order: expected a place for the tokens, got null");
    const PermuteSpec& permute = kernel->state->document.spec.permute;
    if (!generates_order(permute)) {
      return fail_call("kernel " + kernel->state->lowered().contract.kernel +
                       ": the spec generates no token order; \"permute\" is " +
                       std::string(name_of(permute.order)));
    }
    const std::size_t tokens = token_count(permute);
    if (count != tokens) {
      return fail_call("kernel " + kernel->state->lowered().contract.kernel + ", count: expected " +
                       std::to_string(tokens) + " (" + std::to_string(permute.t) + " * " +
                       std::to_string(permute.h) + " * " + std::to_string(permute.w) +
                       " tokens), got " + std::to_string(count));
    }
    fill_token_order(permute, {order, count});
    return LACUNA_OK;
  });
}

lacuna_status lacuna_launch(lacuna_kernel* kernel, const lacuna_launch_args* args) {
  return guarded([&] {
    if (kernel == nullptr) return fail_call("kernel: expected a handle, got null");
    if (args == nullptr) return fail_call("args: expected lacuna_launch_args, got null");
    lacuna_launch_args known;
    std::string misfit =
        read_struct("lacuna_launch_args", *args, offsetof(lacuna_launch_args, previous_lse), known);
    if (!misfit.empty()) return fail_call(misfit);
    // A launch checks the rest of a selection, and counts in the caller's struct.
    if (lacuna_selection kept;
        known.selection != nullptr && known.selection->struct_size >= sizeof(kept)) {
      misfit = read_struct("lacuna_selection", *known.selection, sizeof(kept), kept);
      if (!misfit.empty()) return fail_call(misfit);
    }
    lacuna_sequences sequences;
    if (known.sequences != nullptr) {
      misfit = read_struct("lacuna_sequences", *known.sequences, sizeof(sequences), sequences);
      if (!misfit.empty()) return fail_call(misfit);
      known.sequences = &sequences;
    }
    if (known.params == nullptr && known.params_count > 0) {
      return fail_call("params: expected " + std::to_string(known.params_count) +
                       " parameters, got null");
    }
    Diagnostics diagnostics;
    if (!launch_kernel(*kernel->state, known, diagnostics)) {
      return fail(diagnostics, kernel->state->document.source);
    }
    return LACUNA_OK;
  });
}

}  // extern "C"

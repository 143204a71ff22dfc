// lacuna.h over the C++ of this folder. No exception passes through here.
#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/api/call.hpp"
#include "runtime/api/token_order.hpp"
#include "runtime/base/whole_tiles.hpp"
#include "runtime/launch/bind_launch.hpp"
#include "runtime/launch/branches.hpp"
#include "runtime/launch/kernel_signature.hpp"

namespace lacuna {
namespace {

constexpr const char* kOutOfMemoryText = "lacuna: error: out of memory [E0710]\n";
constexpr const char* kOutOfMemoryJson =
    R"({"diagnostics": [{"severity": "error", "code": "E0710", "message": "out of memory"}]})";

const char* engine_text(const lacuna_engine* engine, std::string EngineState::*text) noexcept {
  return text_of(engine, "engine",
                 [text](const lacuna_engine& e) -> const std::string& { return (*e.state).*text; });
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

/// The branch of a name; null, and what is the matter, if there is none.
const KernelState* find_branch(const lacuna_kernel* kernel, const char* branch,
                               std::string& misfit) {
  misfit = "kernel: expected a handle, got null";
  if (kernel == nullptr) return nullptr;
  misfit = "branch: expected the name of a branch, got null";
  if (branch == nullptr) return nullptr;
  std::string known;
  for (const auto& each : kernel->state->branches) {
    const std::string& name = each->document.spec.branch.name;
    if (name == branch) return each.get();
    known += (known.empty() ? "" : ", ") + name;
  }
  misfit = "kernel " + kernel->state->lowered().contract.kernel + ", branch: expected " +
           (known.empty() ? "none, the spec has no branches" : "one of " + known) + ", got " +
           branch;
  return nullptr;
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
    CompileRequest request;
    const std::string misfit = read_compile_request(spec_json, bytes, options, request);
    if (!misfit.empty()) return fail_call(misfit);
    const SourceText& source = request.source;
    Diagnostics diagnostics;
    auto state = compile_kernel(engine->state, source, request.build, diagnostics, request.shape);
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

lacuna_status lacuna_summaries_extents(const lacuna_kernel* kernel, const lacuna_shape* shape,
                                       int64_t extents[4]) {
  return guarded([&] {
    if (kernel == nullptr) return fail_call("kernel: expected a handle, got null");
    if (extents == nullptr) return fail_call("extents: expected places for four, got null");
    lacuna_shape known;
    const std::string misfit = shape == nullptr
                                   ? std::string("shape: expected lacuna_shape, got null")
                                   : read_struct("lacuna_shape", *shape, sizeof(known), known);
    if (!misfit.empty()) return fail_call(misfit);
    const LaunchContract& contract = kernel->state->lowered().contract;
    const bool stay = contract.summary_tile > 0;
    extents[0] = stay ? known.batch : 0;
    extents[1] = stay ? known.heads_kv : 0;
    extents[2] = stay ? ceil_div(std::int64_t{known.n_k}, contract.summary_tile) : 0;
    extents[3] = stay ? contract.summary_elements : 0;
    return LACUNA_OK;
  });
}

lacuna_status lacuna_branch_tile(const lacuna_kernel* kernel, const char* branch, int32_t* tile_q,
                                 int32_t* tile_k) {
  return guarded([&] {
    if (tile_q == nullptr || tile_k == nullptr) {
      return fail_call("tile_q, tile_k: expected places for the sizes, got null");
    }
    std::string misfit;
    const KernelState* state = find_branch(kernel, branch, misfit);
    if (state == nullptr) return fail_call(misfit);
    *tile_q = state->lowered().contract.tile_q;
    *tile_k = state->lowered().contract.tile_k;
    return LACUNA_OK;
  });
}

lacuna_status lacuna_branch_selection_bytes(const lacuna_kernel* kernel, const char* branch,
                                            const lacuna_shape* shape, size_t* bytes) {
  return guarded([&] {
    std::string misfit;
    const KernelState* state = find_branch(kernel, branch, misfit);
    if (state == nullptr) return fail_call(misfit);
    return bytes_for_shape(
        kernel, shape, bytes, [&](const KernelState&, const LaunchShape& whole, Diagnostics& d) {
          return selection_bytes(*state, shape_of_branch(state->document.spec, whole), d);
        });
  });
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
    LaunchRequest request;
    const std::string misfit = read_launch_request(args, request);
    if (!misfit.empty()) return fail_call(misfit);
    Diagnostics diagnostics;
    if (!launch_kernel(*kernel->state, request.args, diagnostics)) {
      return fail(diagnostics, kernel->state->document.source);
    }
    return LACUNA_OK;
  });
}

}  // extern "C"

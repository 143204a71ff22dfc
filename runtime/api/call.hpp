// What every entry point of lacuna.h shares: handles, the thread's last error, and the border that
// no exception passes.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "compiler/diag/diagnostic.hpp"
#include "lacuna/lacuna.h"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/kernel.hpp"

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

/// The last error of a thread; rendered when it is made, cleared by the next call.
struct LastError {
  std::string text, json;
  bool is_out_of_memory = false;  ///< then there was no memory to render anything
};

LastError& last_error();

/// Each makes the thread's last error and returns its status.
lacuna_status fail(const Diagnostics& diagnostics, const SourceText& source);
lacuna_status fail_call(const std::string& message);
lacuna_status fail_unexpected(const char* what);

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

std::string size_text(const char* name, std::size_t expected, std::size_t got);

/// A handle that came by fork() is let go of, not destroyed: its threads, its locks and its GPU are
/// those of the parent, and a child would wait for them without end.
template <class Handle>
void destroy(Handle* handle) {
  if (handle != nullptr && handle->generation == process_generation()) delete handle;
}

/// No struct comes near this; a size beyond it was never set.
inline constexpr std::size_t kMostStructBytes = 4096;

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

inline LaunchShape launch_shape(const lacuna_shape& shape) {
  return {shape.batch, shape.heads, shape.heads_kv, shape.n_q, shape.n_k};
}

/// The caller's options and the spec's text as the compiler takes them. Returns what is the matter,
/// "" if nothing is.
struct CompileRequest {
  SourceText source;
  BuildOptions build;
  std::optional<LaunchShape> shape;
};
std::string read_compile_request(const char* spec_json, std::size_t bytes,
                                 const lacuna_compile_options* options, CompileRequest& request);

/// What lacuna_launch reads of its arguments: copies of the structs, of the sizes that this version
/// knows. Returns what is the matter, "" if nothing is.
struct LaunchRequest {
  lacuna_launch_args args;
  lacuna_sequences sequences;
  std::array<lacuna_branch_args, kMostBranches> branches;
  std::array<const lacuna_branch_args*, kMostBranches> branch_pointers;
};
std::string read_launch_request(const lacuna_launch_args* args, LaunchRequest& request);

}  // namespace lacuna

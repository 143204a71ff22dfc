#include "runtime/api/call.hpp"

#include "compiler/spec/json/json_limits.hpp"

namespace lacuna {
namespace {

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

}  // namespace

LastError& last_error() {
  thread_local LastError error;
  return error;
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

std::string size_text(const char* name, std::size_t expected, std::size_t got) {
  return std::string(name) + ".struct_size: expected " + std::to_string(expected) + ", got " +
         std::to_string(got);
}

std::string read_compile_request(const char* spec_json, std::size_t bytes,
                                 const lacuna_compile_options* options, CompileRequest& request) {
  if (spec_json == nullptr) return "spec_json: expected a text, got null";
  if (options == nullptr) return "options: expected lacuna_compile_options, got null";
  lacuna_compile_options known;
  std::string misfit = read_struct("lacuna_compile_options", *options,
                                   offsetof(lacuna_compile_options, shape), known);
  lacuna_shape about;
  if (misfit.empty() && known.shape != nullptr) {
    misfit = read_struct("lacuna_shape", *known.shape, sizeof(about), about);
  }
  if (!misfit.empty()) return misfit;
  if (known.dtype < LACUNA_BF16 || known.dtype > LACUNA_F32) {
    return "dtype: expected bf16 (0), f16 (1) or f32 (2), got " +
           std::to_string(static_cast<int>(known.dtype));
  }
  if (known.batch < LACUNA_BATCH_UNIFORM || known.batch > LACUNA_BATCH_PAGES) {
    return "batch: expected uniform (0), sequences (1) or pages (2), got " +
           std::to_string(static_cast<int>(known.batch));
  }
  if (known.kv < LACUNA_KV_SAME || known.kv > LACUNA_KV_E4M3) {
    return "kv: expected same (0) or e4m3 (1), got " + std::to_string(static_cast<int>(known.kv));
  }
  // One byte beyond what is read says that there are too many.
  request.source = {known.path != nullptr ? known.path : "<memory>",
                    std::string(spec_json, std::min(bytes, kMostJsonBytes + 1))};
  request.build = {known.head_dim, static_cast<DType>(known.dtype),
                   static_cast<BatchLayout>(known.batch)};
  request.build.head_dim_v = known.head_dim_v;
  request.build.kv = static_cast<KvFormat>(known.kv);
  request.shape.reset();
  if (known.shape != nullptr) request.shape = launch_shape(about);
  return "";
}

namespace {

/// Checks the size of the struct alone. The launch checks its members, and keeps count in it.
std::string check_selection_size(const lacuna_selection* selection) {
  lacuna_selection kept;
  if (selection == nullptr || selection->struct_size < sizeof(kept)) return "";
  return read_struct("lacuna_selection", *selection, sizeof(kept), kept);
}

/// Copies of what the caller says of branches.
std::string read_branches(lacuna_launch_args& known, LaunchRequest& request) {
  if (known.branches_count == 0) return "";
  if (known.branches == nullptr)
    return "branches: expected " + std::to_string(known.branches_count) + " of them, got null";
  if (known.branches_count > kMostBranches)
    return "branches_count: expected at most " + std::to_string(kMostBranches) + ", got " +
           std::to_string(known.branches_count);
  for (std::size_t n = 0; n < known.branches_count; ++n) {
    const std::string place = "branches[" + std::to_string(n) + "]";
    if (known.branches[n] == nullptr) return place + ": expected lacuna_branch_args, got null";
    lacuna_branch_args& own = request.branches[n];
    std::string misfit = read_struct("lacuna_branch_args", *known.branches[n], sizeof(own), own);
    if (!misfit.empty()) return misfit;
    if (own.name == nullptr) return place + ".name: expected the name of a branch, got null";
    misfit = check_selection_size(own.selection);
    if (!misfit.empty()) return misfit;
    request.branch_pointers[n] = &own;
  }
  known.branches = request.branch_pointers.data();
  return "";
}

}  // namespace

std::string read_launch_request(const lacuna_launch_args* args, LaunchRequest& request) {
  if (args == nullptr) return "args: expected lacuna_launch_args, got null";
  lacuna_launch_args& known = request.args;
  std::string misfit =
      read_struct("lacuna_launch_args", *args, offsetof(lacuna_launch_args, previous_lse), known);
  if (!misfit.empty()) return misfit;
  misfit = check_selection_size(known.selection);
  if (misfit.empty()) misfit = read_branches(known, request);
  if (!misfit.empty()) return misfit;
  if (known.sequences != nullptr) {
    misfit = read_struct("lacuna_sequences", *known.sequences, sizeof(request.sequences),
                         request.sequences);
    if (!misfit.empty()) return misfit;
    known.sequences = &request.sequences;
  }
  if (known.params == nullptr && known.params_count > 0) {
    return "params: expected " + std::to_string(known.params_count) + " parameters, got null";
  }
  return "";
}

}  // namespace lacuna

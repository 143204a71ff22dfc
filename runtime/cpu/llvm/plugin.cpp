// The plugin's C table. Nothing thrown inside leaves it.
#include <llvm/Config/llvm-config.h>

#include <cstring>
#include <exception>
#include <memory>

#include "runtime/cpu/host_backend.hpp"
#include "runtime/cpu/llvm/jit/llvm_lock.hpp"
#include "runtime/cpu/llvm/kernel.hpp"

namespace lacuna::host {
namespace {

int report(std::string_view message, char* error, std::size_t error_bytes) {
  if (error_bytes == 0) return kHostFailed;
  const std::size_t length = std::min(message.size(), error_bytes - 1);
  std::memcpy(error, message.data(), length);
  error[length] = '\0';
  return kHostFailed;
}

/// Runs body(message) -> ok and turns failures and exceptions into a status and a text.
template <class Body>
int guarded(char* error, std::size_t error_bytes, const Body& body) {
  try {
    std::string message;
    return body(message) ? kHostDone : report(message, error, error_bytes);
  } catch (const std::bad_alloc&) {
    report("out of memory", error, error_bytes);
    return kHostOutOfMemory;
  } catch (const std::exception& failure) {
    return report(failure.what(), error, error_bytes);
  } catch (...) {
    return report("unknown exception", error, error_bytes);
  }
}

bool parse(std::string_view text, Program& program, std::string& message) {
  const SourceText source{.path = "<program>", .text = std::string(text)};
  Diagnostics diagnostics;
  program = parse_program(source, diagnostics);
  if (!diagnostics.has_errors()) verify_program(program, diagnostics);
  if (diagnostics.has_errors()) message = render(diagnostics, source);
  return !diagnostics.has_errors();
}

int compile(const char* text, std::size_t bytes, void** kernel, char* error,
            std::size_t error_bytes) {
  return guarded(error, error_bytes, [&](std::string& message) {
    Program program;
    if (!parse({text, bytes}, program, message)) return false;
    const auto lock = lock_llvm();
    auto compiled = std::make_unique<Kernel>();
    if (!compile_kernel(program, *compiled, message)) return false;
    *kernel = compiled.release();
    return true;
  });
}

int run(void* kernel, const HostArgs* args, char* error, std::size_t error_bytes) {
  return guarded(error, error_bytes, [&](std::string& message) {
    return run_kernel(*static_cast<const Kernel*>(kernel), *args, message);
  });
}

void release(void* kernel) {
  const auto lock = lock_llvm();
  delete static_cast<Kernel*>(kernel);
}

const char* llvm_ir(void* kernel) { return static_cast<const Kernel*>(kernel)->ir.c_str(); }

const char* version() {
  const auto lock = lock_llvm();
  static const std::string text = "LLVM " LLVM_VERSION_STRING ", " + host_cpu().name;
  return text.c_str();
}

constexpr HostBackend kBackend = {
    .compile = compile,
    .run = run,
    .release = release,
    .llvm_ir = llvm_ir,
    .version = version,
};

}  // namespace
}  // namespace lacuna::host

extern "C" __attribute__((visibility("default"))) const lacuna::HostBackend* lacuna_host_backend(
    std::uint32_t abi) {
  return abi == lacuna::kHostBackendAbi ? &lacuna::host::kBackend : nullptr;
}

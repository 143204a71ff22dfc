// A CPU plugin for tests that fails where FAKE_HOST_FAILS says: abi, compile, launch or run.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/cpu/host_backend.hpp"

namespace lacuna {
namespace {

int code_of_every_kernel = 0;

bool fails(std::string_view step) {
  const char* chosen = std::getenv("FAKE_HOST_FAILS");
  return chosen != nullptr && step == chosen;
}

int complain(const char* text, char* error, std::size_t error_bytes) {
  std::strncpy(error, text, error_bytes - 1);
  return 1;
}

int compile(const char*, std::size_t, void** kernel, char* error, std::size_t error_bytes) {
  if (fails("compile")) return complain("no register is left", error, error_bytes);
  *kernel = &code_of_every_kernel;
  return 0;
}

int run(void*, const HostArgs*, char* error, std::size_t error_bytes) {
  return fails("run") ? complain("out of memory", error, error_bytes) : 0;
}

void release(void*) {}

const char* llvm_ir(void*) { return ""; }

const char* version() { return "fake"; }

constexpr HostBackend kBackend = {compile, run, release, llvm_ir, version};

}  // namespace
}  // namespace lacuna

extern "C" __attribute__((visibility("default"))) const lacuna::HostBackend* lacuna_host_backend(
    std::uint32_t) {
  return lacuna::fails("abi") ? nullptr : &lacuna::kBackend;
}

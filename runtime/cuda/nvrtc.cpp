#include "runtime/cuda/nvrtc.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>

#include "runtime/base/dynamic_library.hpp"
#include "runtime/base/library_search.hpp"
#include "runtime/base/threads/large_stacks.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cuda/cuda_types.hpp"
#include "runtime/cuda/device_headers.hpp"
#include "runtime/cuda/kept_signals.hpp"

namespace lacuna {

struct Nvrtc {
  NvrtcInfo info;
  mutable std::once_flag started{};
  const char* (*get_error_string)(NvrtcResult) = nullptr;
  NvrtcResult (*create_program)(NvrtcProgram*, const char* source, const char* name, int headers,
                                const char* const* header_texts,
                                const char* const* header_names) = nullptr;
  NvrtcResult (*destroy_program)(NvrtcProgram*) = nullptr;
  NvrtcResult (*compile_program)(NvrtcProgram, int count, const char* const* options) = nullptr;
  NvrtcResult (*get_log_size)(NvrtcProgram, std::size_t*) = nullptr;
  NvrtcResult (*get_log)(NvrtcProgram, char*) = nullptr;
  NvrtcResult (*get_ptx_size)(NvrtcProgram, std::size_t*) = nullptr;
  NvrtcResult (*get_ptx)(NvrtcProgram, char*) = nullptr;
  NvrtcResult (*get_cubin_size)(NvrtcProgram, std::size_t*) = nullptr;
  NvrtcResult (*get_cubin)(NvrtcProgram, char*) = nullptr;
};

namespace {

namespace fs = std::filesystem;

template <class Function>
bool resolve(const DynamicLibrary& library, const char* name, Function& slot) {
  slot = reinterpret_cast<Function>(library.symbol(name));
  return slot != nullptr;
}

bool resolve_all(const DynamicLibrary& library, Nvrtc& nvrtc) {
  return resolve(library, "nvrtcGetErrorString", nvrtc.get_error_string) &&
         resolve(library, "nvrtcCreateProgram", nvrtc.create_program) &&
         resolve(library, "nvrtcDestroyProgram", nvrtc.destroy_program) &&
         resolve(library, "nvrtcCompileProgram", nvrtc.compile_program) &&
         resolve(library, "nvrtcGetProgramLogSize", nvrtc.get_log_size) &&
         resolve(library, "nvrtcGetProgramLog", nvrtc.get_log) &&
         resolve(library, "nvrtcGetPTXSize", nvrtc.get_ptx_size) &&
         resolve(library, "nvrtcGetPTX", nvrtc.get_ptx) &&
         resolve(library, "nvrtcGetCUBINSize", nvrtc.get_cubin_size) &&
         resolve(library, "nvrtcGetCUBIN", nvrtc.get_cubin);
}

/// libnvrtc does not look beside itself for its builtins; once they are loaded by path, their
/// soname satisfies it.
void load_builtins(const NvrtcInfo& info) {
  const std::string name =
      "libnvrtc-builtins.so." + std::to_string(info.major) + "." + std::to_string(info.minor);
  const fs::path beside = fs::path(info.path).parent_path() / name;
  std::error_code failed;
  if (fs::exists(beside, failed)) open_library(beside.string());
}

/// Null with the reason in `why` if the library is no NVRTC that can be used.
std::shared_ptr<Nvrtc> adopt(const DynamicLibrary& library, int max_major, std::string& why) {
  NvrtcResult (*version)(int*, int*) = nullptr;
  auto nvrtc = std::make_shared<Nvrtc>();
  if (!resolve(library, "nvrtcVersion", version) || !resolve_all(library, *nvrtc)) {
    why = "it lacks entry points of NVRTC 12";
    return nullptr;
  }
  version(&nvrtc->info.major, &nvrtc->info.minor);
  const auto& majors = cuda_majors();
  if (std::find(majors.begin(), majors.end(), nvrtc->info.major) == majors.end()) {
    why = "version " + std::to_string(nvrtc->info.major) + " is not one of 12, 13";
    return nullptr;
  }
  if (max_major > 0 && nvrtc->info.major > max_major) {
    why = "version " + std::to_string(nvrtc->info.major) + " is newer than the driver's CUDA " +
          std::to_string(max_major);
    return nullptr;
  }
  const void* anchor = reinterpret_cast<const void*>(version);
  nvrtc->info.path = library_path_of(anchor);
  nvrtc->info.build_id = build_id_of(anchor);
  load_builtins(nvrtc->info);
  return nvrtc;
}

Diagnostic not_found(const std::vector<std::string>& searched, int max_major) {
  Diagnostic d;
  d.code = Code::kNoNvrtc;
  d.message = "no NVRTC: libnvrtc.so.13 or libnvrtc.so.12 was not found";
  if (max_major > 0 && max_major < 13) {
    d.message = "no NVRTC that the driver can serve (CUDA " + std::to_string(max_major) +
                " or older) was found";
  }
  for (const std::string& place : searched) d.notes.push_back("looked at " + place);
  d.helps.push_back(
      "install the CUDA toolkit or the Python wheel nvidia-cuda-nvrtc, or name the library in "
      "LACUNA_NVRTC_PATH");
  return d;
}

/// Those of the source, and options that do not affect the code: no cache of NVRTC's own (it would
/// hide the log and start the driver), no change of the process' stack limit, resources in the log.
std::vector<std::string> all_options(const Nvrtc& nvrtc, const CudaSource& source) {
  std::vector<std::string> options = source.options;
  options.insert(options.end(), {"-no-source-include", "-Xptxas", "-v"});
  const bool has_cache = nvrtc.info.major > 12 || nvrtc.info.minor >= 9;
  if (has_cache) options.push_back("--no-cache");
  const bool has_stack_limit = nvrtc.info.major > 12 || nvrtc.info.minor >= 6;
  if (has_stack_limit) options.push_back("-modify-stack-limit=false");
  return options;
}

using SizeFunction = NvrtcResult (*)(NvrtcProgram, std::size_t*);
using TextFunction = NvrtcResult (*)(NvrtcProgram, char*);

std::string fetch(NvrtcProgram program, SizeFunction size_of, TextFunction get, bool is_text) {
  std::size_t bytes = 0;
  if (size_of(program, &bytes) != kNvrtcSuccess || bytes == 0) return "";
  std::string result(bytes, '\0');
  if (get(program, result.data()) != kNvrtcSuccess) return "";
  // Counts the terminating NUL; that of ptxas too where it has written.
  while (is_text && !result.empty() && result.back() == '\0') result.pop_back();
  return result;
}

Diagnostic failure(const Nvrtc& nvrtc, NvrtcResult result, const std::string& target,
                   const std::string& log) {
  Diagnostic d;
  d.code = Code::kNvrtcFailed;
  d.message = "NVRTC " + std::to_string(nvrtc.info.major) + "." + std::to_string(nvrtc.info.minor) +
              " cannot compile the kernel for " + target + ": " + nvrtc.get_error_string(result);
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    if (end > begin) d.notes.push_back(log.substr(begin, end - begin));
    begin = end + 1;
  }
  return d;
}

/// What all programs of a source are compiled with.
struct Inputs {
  std::vector<DeviceHeader> headers;
  std::vector<std::string> options;
  bool want_ptx = false;
};

/// What NVRTC made of one kernel.
struct CompiledProgram {
  NvrtcResult result = kNvrtcSuccess;
  std::string cubin, ptx, log;
};

/// Create, compile, fetch; wants a large stack.
CompiledProgram compile_program(const Nvrtc& nvrtc, const std::string& text, const Inputs& inputs) {
  std::vector<const char*> names, texts, options;
  for (const DeviceHeader& header : inputs.headers) {
    names.push_back(header.name.c_str());
    texts.push_back(header.text.c_str());
  }
  for (const std::string& option : inputs.options) options.push_back(option.c_str());
  CompiledProgram out;
  NvrtcProgram program = nullptr;
  out.result = nvrtc.create_program(&program, text.c_str(), "kernel.cu",
                                    static_cast<int>(names.size()), texts.data(), names.data());
  if (out.result != kNvrtcSuccess) return out;
  out.result = nvrtc.compile_program(program, static_cast<int>(options.size()), options.data());
  out.log = fetch(program, nvrtc.get_log_size, nvrtc.get_log, true);
  if (out.result == kNvrtcSuccess) {
    out.cubin = fetch(program, nvrtc.get_cubin_size, nvrtc.get_cubin, false);
    if (inputs.want_ptx) out.ptx = fetch(program, nvrtc.get_ptx_size, nvrtc.get_ptx, true);
  }
  nvrtc.destroy_program(&program);
  return out;
}

/// What the first compile does to the handlers of the host is done here, in milliseconds, on a
/// program that is refused at its first line.
void start(const Nvrtc& nvrtc) {
  const KeptSignals kept(nvrtc.info.path);
  run_on_large_stacks(1, 1, [&](std::size_t) { compile_program(nvrtc, "#error\n", {}); });
}

/// One for each kernel, in their order. Nothing if there is no thread to be had.
std::optional<std::vector<CompiledProgram>> compile_programs(const Nvrtc& nvrtc,
                                                             const CudaSource& source,
                                                             const Inputs& inputs,
                                                             std::size_t threads) {
  std::vector<CompiledProgram> programs(source.kernels.size());
  const bool ran = run_on_large_stacks(threads, programs.size(), [&](std::size_t item) {
    // From the last: attend and the estimate take longest, and come late in launch order.
    const std::size_t n = programs.size() - 1 - item;
    programs[n] = compile_program(nvrtc, source.head + source.kernels[n].text, inputs);
  });
  if (!ran) return std::nullopt;
  return programs;
}

/// More would not help: attend alone takes a third of the time of all kernels together.
constexpr int kMostThreads = 4;

/// Whether all of them were compiled; if not, the first failure is reported.
bool check_programs(const Nvrtc& nvrtc, const std::vector<CompiledProgram>& programs,
                    const std::string& target, Diagnostics& diagnostics) {
  const auto failed = std::ranges::find_if(
      programs, [](const CompiledProgram& program) { return program.result != kNvrtcSuccess; });
  if (failed == programs.end()) return true;
  diagnostics.add(failure(nvrtc, failed->result, target, failed->log));
  return false;
}

}  // namespace

const NvrtcInfo& info(const Nvrtc& nvrtc) { return nvrtc.info; }

std::shared_ptr<const Nvrtc> load_nvrtc(int max_major, Diagnostics& diagnostics) {
  constexpr CudaLibrary kNvrtc{"nvrtc", "cuda_nvrtc", EnvironmentVariable::kNvrtcPath};
  std::shared_ptr<Nvrtc> nvrtc;
  std::vector<std::string> searched;
  const auto take = [&](const DynamicLibrary& library, std::string& why) {
    nvrtc = adopt(library, max_major, why);
    return nvrtc != nullptr;
  };
  if (find_library(kNvrtc, take, searched)) {
    nvrtc->info.searched = std::move(searched);
  } else {
    diagnostics.add(not_found(searched, max_major));
  }
  return nvrtc;
}

Compilation compile_cuda(const Nvrtc& nvrtc, const CudaSource& source, const std::string& target,
                         const NvrtcOptions& options, Diagnostics& diagnostics) {
  Compilation out;
  Diagnostics header_errors;
  const Inputs inputs{device_headers(options.template_path, header_errors),
                      all_options(nvrtc, source), options.want_ptx};
  if (header_errors.has_errors()) {
    for (Diagnostic& d : header_errors.items) diagnostics.add(std::move(d));
    return out;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::call_once(nvrtc.started, [&] { start(nvrtc); });
  auto programs =
      compile_programs(nvrtc, source, inputs, worker_count(options.threads, kMostThreads));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  out.compile_ms = elapsed.count();
  if (!programs) {
    Diagnostic d;
    d.code = Code::kNvrtcFailed;
    d.message = "no thread could be started to compile on";
    diagnostics.add(std::move(d));
    return out;
  }
  for (const CompiledProgram& program : *programs) out.log += program.log;
  if (!check_programs(nvrtc, *programs, target, diagnostics)) return out;
  for (CompiledProgram& program : *programs) {
    out.cubins.push_back(std::move(program.cubin));
    if (options.want_ptx) out.ptx.push_back(std::move(program.ptx));
  }
  out.kernels = parse_ptxas_log(out.log);
  return out;
}

}  // namespace lacuna

#include "runtime/build.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cache/signal_guard.hpp"
#include "runtime/device_headers.hpp"
#include "runtime/environment.hpp"
#include "runtime/metadata.hpp"
#include "runtime/ptxas_log.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// The source as far as it can change the code: #line names files and lines, nothing else.
std::string without_line_directives(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("#line", 0) != 0) result += line + "\n";
  }
  return result;
}

bool keeps_line_numbers(const CudaSource& source) {
  for (const std::string& option : source.options) {
    if (option.find("lineinfo") != std::string::npos) return true;
  }
  return false;
}

void write_file(const fs::path& path, const std::string& bytes) {
  const cache::WriteSignalGuard guard;
  std::ofstream(path, std::ios::binary) << bytes;
}

/// LACUNA_DUMP: everything about one compilation, under one name.
void dump(const std::string& directory, const BuildRequest& request, const CudaSource& source,
          const cache::Key& key, const Compilation& compilation) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  const fs::path base = fs::path(directory) / (request.plan.program.name + "-" + key.target + "-" +
                                               key.sha256.substr(0, 12));
  write_file(base.string() + ".cu", source_text(source));
  write_file(base.string() + ".key.txt", key.text);
  write_file(base.string() + ".log", compilation.log);
  for (std::size_t n = 0; n < compilation.cubins.size(); ++n) {
    const std::string of_kernel = base.string() + "." + source.kernels[n].stage;
    write_file(of_kernel + ".ptx", compilation.ptx[n]);
    write_file(of_kernel + ".cubin", compilation.cubins[n]);
  }
}

KernelMetadata metadata_of(const BuildRequest& request, const Compilation& compilation) {
  const NvrtcInfo& nvrtc = info(*request.nvrtc);
  KernelMetadata metadata;
  metadata.spec = request.plan.program.name;
  metadata.target = request.plan.target.name;
  metadata.nvrtc = std::to_string(nvrtc.major) + "." + std::to_string(nvrtc.minor);
  metadata.lacuna = LACUNA_VERSION;
  metadata.compile_ms = compilation.compile_ms;
  metadata.kernels = compilation.kernels;
  // The log of the compiler knows static shared memory only.
  for (const KernelLaunch& launch : emit_launch_program(request.plan).launches) {
    const auto found = std::ranges::find(metadata.kernels, launch.entry, &KernelResources::name);
    if (found != metadata.kernels.end()) found->smem_bytes += launch.smem_bytes;
  }
  return metadata;
}

std::optional<cache::Entry> compile_entry(const BuildRequest& request, BuiltKernel& built,
                                          Diagnostics& diagnostics) {
  const std::string dump_directory = environment(EnvironmentVariable::kDump);
  Compilation compilation = compile_cuda(*request.nvrtc, built.source, request.plan.target.name,
                                         {.template_path = request.template_path,
                                          .want_ptx = request.want_ptx || !dump_directory.empty(),
                                          .threads = request.threads},
                                         diagnostics);
  if (!dump_directory.empty()) {
    dump(dump_directory, request, built.source, built.key, compilation);
  }
  if (compilation.cubins.empty()) return std::nullopt;
  if (!check_assembly(request.plan, compilation, diagnostics)) return std::nullopt;
  const std::string metadata = write_metadata(metadata_of(request, compilation));
  built.ptx = std::move(compilation.ptx);
  return cache::Entry{built.key.text, metadata, std::move(compilation.log),
                      std::move(compilation.cubins)};
}

}  // namespace

bool check_assembly(const Plan& plan, const Compilation& compilation, Diagnostics& diagnostics) {
  if (plan.attend.family.value != AttendFamily::kWgmma) return true;
  std::vector<std::string> notes = find_ptxas_complaints(compilation.log);
  for (const KernelLaunch& launch : emit_launch_program(plan).launches) {
    const auto found = std::ranges::find(compilation.kernels, launch.entry, &KernelResources::name);
    if (launch.stage != "attend" || found == compilation.kernels.end()) continue;
    if (found->spill_bytes == 0 && found->stack_bytes == 0) continue;
    notes.push_back(found->name + ": expected no local memory, got " +
                    std::to_string(found->stack_bytes) + " bytes of stack and " +
                    std::to_string(found->spill_bytes) + " bytes of spills");
  }
  if (notes.empty()) return true;
  Diagnostic d;
  d.code = Code::kAssembly;
  d.message =
      "the assembler undid what kernel " + plan.program.name + " relies on for " + plan.target.name;
  d.notes = std::move(notes);
  diagnostics.add(std::move(d));
  return false;
}

cache::Key kernel_key(const CudaSource& source, const std::string& target, const NvrtcInfo& nvrtc,
                      const std::string& template_path, Diagnostics& diagnostics) {
  std::string text = source_text(source);
  if (!keeps_line_numbers(source)) text = without_line_directives(text);
  for (const DeviceHeader& header : device_headers(template_path, diagnostics)) {
    text += "\n// " + header.name + "\n" + header.text;
  }
  const std::string version = std::to_string(nvrtc.major) + "." + std::to_string(nvrtc.minor);
  return cache::make_key({cache::sha256_hex(text), source.options, target,
                          "nvrtc " + version + " build-id " + nvrtc.build_id});
}

BuiltKernel build_kernel(const BuildRequest& request, Diagnostics& diagnostics) {
  BuiltKernel built;
  built.source = emit_cuda(request.plan, request.document);
  Diagnostics key_errors;
  built.key = kernel_key(built.source, request.plan.target.name, info(*request.nvrtc),
                         request.template_path, key_errors);
  if (key_errors.has_errors()) {
    for (Diagnostic& d : key_errors.items) diagnostics.add(std::move(d));
    return built;
  }
  const auto compile = [&] { return compile_entry(request, built, diagnostics); };
  std::optional<cache::Entry> entry;
  std::optional<KernelMetadata> metadata;
  if (request.store != nullptr && !request.want_ptx) {
    auto obtained = request.store->obtain(built.key, compile);
    entry = std::move(obtained.entry);
    built.hit = obtained.hit;
    if (entry) metadata = read_metadata(entry->metadata);
    if (entry && entry->cubins.size() != built.source.kernels.size()) metadata.reset();
    // An entry without readable metadata, or of other kernels, is of no use: as good as a miss.
    if (entry && !metadata) request.store->reject(built.key);
  }
  if (!metadata && !diagnostics.has_errors()) {
    built.hit = false;
    entry = compile();
    if (entry) metadata = read_metadata(entry->metadata);
  }
  if (!entry || !metadata) return built;
  built.entry = std::move(*entry);
  built.compile_ms = metadata->compile_ms;
  built.kernels = std::move(metadata->kernels);
  return built;
}

}  // namespace lacuna

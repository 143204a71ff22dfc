#include "runtime/engine/build/build.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cache/files/signal_guard.hpp"
#include "compiler/ir/names.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/cuda/device_headers.hpp"
#include "runtime/cuda/ptxas_log.hpp"
#include "runtime/engine/build/assembly.hpp"
#include "runtime/engine/build/metadata.hpp"
#include "runtime/engine/build/relieve.hpp"

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

/// The kernels of a source that are compiled for `request`: the one that it wants, and those by
/// which assembly_complaints judges a plan.
CudaSource wanted(const BuildRequest& request, CudaSource source) {
  if (request.only.empty()) return source;
  std::erase_if(source.kernels, [&](const CudaKernel& kernel) {
    return kernel.name != request.only && !kernel.name.starts_with("attend") &&
           kernel.text.find("wgmma") == std::string::npos;
  });
  return source;
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
    const std::string of_kernel = base.string() + "." + source.kernels[n].name;
    write_file(of_kernel + ".ptx", compilation.ptx[n]);
    write_file(of_kernel + ".cubin", compilation.cubins[n]);
  }
}

KernelMetadata metadata_of(const BuildRequest& request, const NvrtcInfo& nvrtc,
                           const RelievedBuild& made) {
  KernelMetadata metadata = metadata_for(request.plan);
  metadata.nvrtc = std::to_string(nvrtc.major) + "." + std::to_string(nvrtc.minor);
  metadata.lacuna = LACUNA_VERSION;
  metadata.compile_ms = made.compilation.compile_ms;
  metadata.kernels = made.compilation.kernels;
  metadata.relief = made.relief;
  metadata.relieved_source_sha256 = source_sha256(made.source);
  metadata.complaints = made.complaints;
  // The log of the compiler knows static shared memory only.
  for (const KernelLaunch& launch : emit_launch_program(made.plan).launches) {
    const auto found = std::ranges::find(metadata.kernels, launch.entry, &KernelResources::name);
    if (found != metadata.kernels.end()) found->smem_bytes += launch.smem_bytes;
  }
  return metadata;
}

/// The plan of the request if its kernel can be, else, where the request allows, another's.
std::optional<RelievedBuild> compile_plan(const BuildRequest& request, const CudaSource& planned,
                                          const CompileSource& compile, Diagnostics& diagnostics) {
  if (request.options != nullptr)
    return build_relieved(request.plan, request.document, *request.options, compile, diagnostics);
  RelievedBuild made{0, request.plan, planned, compile(planned, diagnostics), {}};
  if (made.compilation.cubins.empty()) return std::nullopt;
  if (!check_assembly(request.plan, made.compilation, diagnostics)) return std::nullopt;
  return made;
}

std::optional<cache::Entry> compile_entry(const BuildRequest& request, BuiltKernel& built,
                                          Diagnostics& diagnostics) {
  const std::shared_ptr<const Nvrtc> nvrtc = request.nvrtc(diagnostics);
  if (nvrtc == nullptr) return std::nullopt;
  const std::string dump_directory = environment(EnvironmentVariable::kDump);
  double compile_ms = 0;
  const CompileSource compile = [&](const CudaSource& planned, Diagnostics& found) {
    const CudaSource source = wanted(request, planned);
    Compilation made = compile_cuda(*nvrtc, source, request.plan.target.name,
                                    {.template_path = request.template_path,
                                     .want_ptx = request.want_ptx || !dump_directory.empty(),
                                     .threads = request.threads},
                                    found);
    made.compile_ms = compile_ms += made.compile_ms;
    if (!dump_directory.empty()) dump(dump_directory, request, source, built.key, made);
    return made;
  };
  auto made = compile_plan(request, built.source, compile, diagnostics);
  if (!made) return std::nullopt;
  const std::string metadata = write_metadata(metadata_of(request, info(*nvrtc), *made));
  built.ptx = std::move(made->compilation.ptx);
  return cache::Entry{built.key.text, metadata, std::move(made->compilation.log),
                      std::move(made->compilation.cubins)};
}

/// Makes `built` that of the plan that the entry was compiled from. False: this text of ours would
/// compile another one.
bool take_relief(const BuildRequest& request, const KernelMetadata& metadata, BuiltKernel& built) {
  if (metadata.complaints.empty()) return true;
  if (request.options == nullptr) return false;
  built.relief = metadata.relief;
  if (metadata.relief == request.options->relief) return true;
  built.relieved =
      relieved_plan(request.document, *request.options, metadata.relief, request.plan.target);
  if (!built.relieved) return false;
  built.source = emit_cuda(*built.relieved, request.document);
  return source_sha256(built.source) == metadata.relieved_source_sha256;
}

/// What an entry says of itself, if it is of the kernels that `built` then is of.
std::optional<KernelMetadata> accept(const BuildRequest& request, const cache::Entry& entry,
                                     BuiltKernel& built) {
  auto metadata = read_metadata(entry.metadata);
  if (!metadata || !take_relief(request, *metadata, built)) return std::nullopt;
  built.source = wanted(request, std::move(built.source));
  if (entry.cubins.size() != built.source.kernels.size()) return std::nullopt;
  return metadata;
}

}  // namespace

std::string source_sha256(const CudaSource& source) {
  return cache::sha256_hex(without_line_directives(source_text(source)));
}

cache::Key kernel_key(const CudaSource& source, const std::string& target,
                      const std::string& template_path, Diagnostics& diagnostics) {
  std::string text = source_text(source);
  if (!keeps_line_numbers(source)) text = without_line_directives(text);
  for (const DeviceHeader& header : device_headers(template_path, diagnostics)) {
    text += "\n// " + header.name + "\n" + header.text;
  }
  return cache::make_key({cache::sha256_hex(text), source.options, target});
}

BuiltKernel build_kernel(const BuildRequest& request, Diagnostics& diagnostics) {
  BuiltKernel built;
  built.source = emit_cuda(request.plan, request.document);
  Diagnostics key_errors;
  built.key = kernel_key(built.source, request.plan.target.name, request.template_path, key_errors);
  if (key_errors.has_errors()) {
    for (Diagnostic& d : key_errors.items) diagnostics.add(std::move(d));
    return built;
  }
  const CudaSource planned = built.source;
  const auto compile = [&] { return compile_entry(request, built, diagnostics); };
  std::optional<cache::Entry> entry;
  std::optional<KernelMetadata> metadata;
  if (request.store != nullptr && !request.want_ptx && request.only.empty()) {
    auto obtained = request.store->obtain(built.key, compile);
    entry = std::move(obtained.entry);
    built.hit = obtained.hit;
    if (entry) metadata = accept(request, *entry, built);
    // An entry without readable metadata, or of other kernels, is of no use: as good as a miss.
    if (entry && !metadata) request.store->reject(built.key);
  }
  if (!metadata && !diagnostics.has_errors()) {
    built.hit = false;
    built.source = planned;
    built.relieved.reset();
    entry = compile();
    if (entry) metadata = accept(request, *entry, built);
  }
  if (!entry || !metadata) return built;
  if (!metadata->complaints.empty()) {
    diagnostics.add(relief_note(request.document, request.plan,
                                built.relieved ? *built.relieved : request.plan,
                                metadata->complaints));
  }
  built.entry = std::move(*entry);
  built.compile_ms = metadata->compile_ms;
  built.kernels = std::move(metadata->kernels);
  return built;
}

}  // namespace lacuna

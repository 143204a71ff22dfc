#include "runtime/engine/kernel.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "compiler/emit/emit.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/shift_positions.hpp"
#include "compiler/passes/check_request.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/engine/build/build.hpp"
#include "runtime/engine/signature.hpp"
#include "runtime/engine/supply.hpp"
#include "runtime/tune/lookup.hpp"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kErrorBytes = 4096;

void add(Code code, std::string message, Diagnostics& diagnostics) {
  Diagnostic d;
  d.code = code;
  d.message = std::move(message);
  diagnostics.add(std::move(d));
}

/// What the runtime itself can hold; far above what any spec has needed.
void check_limits(const LoweredKernel& kernel, Diagnostics& diagnostics) {
  const auto check = [&](const char* what, std::size_t got, std::size_t limit) {
    if (got <= limit) return;
    add(Code::kCallArgument,
        "kernel " + kernel.plan.program.name + ": " + what + " expected at most " +
            std::to_string(limit) + ", got " + std::to_string(got),
        diagnostics);
  };
  check("launch values", kernel.launch.values.size(), kMaxLaunchValues);
  check("bytes of kernel arguments", kernel.launch.args_bytes, kMaxArgumentBytes);
}

/// Whether the plugin has compiled `what`; if not, it said why.
bool is_compiled(int status, const std::string& what, const char* error, Diagnostics& diagnostics) {
  if (status == kHostOutOfMemory) throw std::bad_alloc();
  if (status == kHostDone) return true;
  add(Code::kHostFailed, "the CPU compiler cannot compile " + what + ": " + error, diagnostics);
  return false;
}

bool compile_for_host(KernelState& kernel, Diagnostics& diagnostics) {
  const HostBackend* backend = kernel.engine->host.backend;
  if (backend == nullptr) return true;
  char error[kErrorBytes] = {};
  const LoweredKernel& lowered = kernel.planned;
  const std::string program = print_program(lowered.plan.program);
  const std::string name = "kernel " + lowered.plan.program.name;
  kernel.host.backend = backend;
  const int of_program =
      backend->compile(program.data(), program.size(), &kernel.host.code, error, sizeof(error));
  return is_compiled(of_program, name, error, diagnostics);
}

Json basic_info(const EngineState& engine, const LoweredKernel& kernel) {
  Json info = {{"spec", kernel.plan.program.name},
               {"device", engine.device},
               {"target", kernel.plan.target.name},
               {"head_dim", kernel.contract.head_dim},
               {"dtype", name_of(kernel.contract.dtype)},
               {"tile", {{"q", kernel.contract.tile_q}, {"k", kernel.contract.tile_k}}},
               {"signature", signature_json(kernel.plan.program, kernel.contract)}};
  if (kernel.contract.head_dim_v != kernel.contract.head_dim)
    info["head_dim_v"] = kernel.contract.head_dim_v;
  if (const auto& gate = attend_of(kernel.plan.program).gate)
    info["gate"] = {{"scope", name_of(gate->scope)}};
  if (kernel.plan.target.has_wgmma) info["family"] = name_of(kernel.plan.attend.family.value);
  if (kernel.plan.attend.family.value == AttendFamily::kWgmma)
    info["step_keys"] = kernel.plan.attend.step_keys.value;
  if (engine.gpu == nullptr) return info;
  Json names = Json::array();
  for (const KernelLaunch& launch : kernel.launch.launches) names.push_back(launch.name);
  info["stages"] = std::move(names);  // a word of the ABI
  return info;
}

std::string host_info(const KernelState& kernel, double compile_ms) {
  Json info = basic_info(*kernel.engine, kernel.planned);
  const HostBackend* backend = kernel.host.backend;
  info["backend"] = backend != nullptr ? backend->version() : "interpreter";
  info["compile_ms"] = compile_ms;
  return info.dump();
}

Json resources_info(const KernelResources& resources) {
  return {{"entry", resources.name},
          {"registers", resources.registers},
          {"spill_bytes", resources.spill_bytes},
          {"stack_bytes", resources.stack_bytes},
          {"smem_bytes", resources.smem_bytes}};
}

/// Attend's resources stand at the top; those of all kernels, in launch order, in a list.
std::string gpu_info(const EngineState& engine, const LoweredKernel& kernel,
                     const BuiltKernel& built) {
  Json info = basic_info(engine, kernel);
  if (built.relief != 0) info["relief"] = built.relief;
  Json kernels = Json::array();
  for (const KernelLaunch& launch : kernel.launch.launches) {
    const auto found = std::ranges::find(built.kernels, launch.entry, &KernelResources::name);
    if (found == built.kernels.end()) continue;
    const Json resources = resources_info(*found);
    if (launch.name == "attend") info.update(resources);
    kernels.push_back(resources);
  }
  info["kernels"] = std::move(kernels);
  info["compile_ms"] = built.compile_ms;
  info["cache"] = {{"hit", built.hit}, {"key", built.key.sha256}};
  return info.dump();
}

LoweredKernel lower(Plan plan, const EngineState& engine, const BuildOptions& options) {
  LaunchProgram launch = emit_launch_program(plan);
  const DLDevice device =
      engine.gpu != nullptr ? DLDevice{kDLCUDA, engine.gpu->index} : DLDevice{kDLCPU, 0};
  LaunchContract contract = make_contract(plan, device);
  contract.has_positions = options.positions;
  return {std::move(plan), std::move(launch), std::move(contract)};
}

/// The kernel of the plan or, where registers spill, of the one that takes its place.
BuiltKernel build(KernelState& kernel, Diagnostics& diagnostics) {
  EngineState& engine = *kernel.engine;
  const Plan& plan = kernel.planned.plan;
  const FindNvrtc nvrtc = [&](Diagnostics& missing) { return compiler_for(engine, plan, missing); };
  BuiltKernel built = build_kernel({.plan = plan,
                                    .document = kernel.document,
                                    .nvrtc = nvrtc,
                                    .store = engine.store.get(),
                                    .template_path = engine.settings.template_path,
                                    .options = &kernel.options},
                                   diagnostics);
  kernel.relieved.reset();
  if (built.relieved) kernel.relieved = lower(*built.relieved, engine, kernel.options);
  if (!built.entry.cubins.empty()) {
    const LoweredKernel& lowered = kernel.relieved ? *kernel.relieved : kernel.planned;
    engine.emit_event(built.hit ? "cache_hit" : "compile", gpu_info(engine, lowered, built));
  }
  return built;
}

bool load(KernelState& kernel, const BuiltKernel& built, Diagnostics& diagnostics) {
  const LoweredKernel& lowered = kernel.relieved ? *kernel.relieved : kernel.planned;
  kernel.ready_info = gpu_info(*kernel.engine, lowered, built);
  kernel.recent = std::make_unique<RecentLaunches>();
  return load_module(*kernel.engine->gpu, built.entry.cubins, lowered.launch, kernel.module,
                     diagnostics);
}

/// A new kernel is published once it has run; the thread keeps what it needs alive.
void arm_publisher(KernelState& kernel, BuiltKernel built) {
  kernel.publisher.arm(
      [engine = kernel.engine, built = std::make_shared<BuiltKernel>(std::move(built))] {
        engine->store->publish(built->key, built->entry);
      });
}

bool prepare_for_gpu(KernelState& kernel, Diagnostics& diagnostics) {
  EngineState& engine = *kernel.engine;
  BuiltKernel built = build(kernel, diagnostics);
  if (built.entry.cubins.empty()) return false;
  Diagnostics load_errors;
  bool loaded = load(kernel, built, load_errors);
  if (!loaded && built.hit) {
    // Intact, but this driver refuses it: rebuild it once.
    engine.store->reject(built.key);
    engine.emit_event(
        "cache_warning",
        "{\"message\": " +
            json_string("a stored kernel was rebuilt: " + load_errors.items.front().message) + "}");
    built = build(kernel, diagnostics);
    if (built.entry.cubins.empty()) {
      diagnostics.items.back().notes.push_back("one that was there was refused: " +
                                               load_errors.items.front().message);
      return false;
    }
    load_errors.items.clear();
    loaded = load(kernel, built, load_errors);
  }
  for (Diagnostic& d : load_errors.items) diagnostics.add(std::move(d));
  if (!loaded) return false;
  if (!built.hit) arm_publisher(kernel, std::move(built));
  return true;
}

/// The tiles that were measured best, unless their kernel is not there and cannot be compiled:
/// `lacuna build` knows nothing of them.
BuildOptions choose_options(EngineState& engine, const SpecDocument& document,
                            const BuildOptions& wanted, const BuildOptions& tuned) {
  if (engine.gpu == nullptr || !tuned.tuned) return tuned;
  Diagnostics found;
  const Plan plan = make_plan(document, tuned, engine.target, found);
  return found.has_errors() || can_supply(engine, plan, document) ? tuned : wanted;
}

/// One attend.
std::shared_ptr<KernelState> compile_document(std::shared_ptr<EngineState> engine,
                                              SpecDocument document, const BuildOptions& wanted,
                                              Diagnostics& diagnostics,
                                              const std::optional<LaunchShape>& shape) {
  const auto begin = std::chrono::steady_clock::now();
  auto kernel = std::make_shared<KernelState>();
  kernel->engine = std::move(engine);
  kernel->document = std::move(document);
  const bool on_gpu = kernel->engine->gpu != nullptr;
  const EngineSettings& settings = kernel->engine->settings;
  const tune::TunedOptions tuned = tune::tuned_options(
      settings.cache_directory,
      {kernel->document, wanted, kernel->engine->hardware, shape, settings.threads});
  for (const std::string& warning : tuned.warnings) kernel->engine->warn_once(warning);
  kernel->threads = tuned.threads;
  kernel->options = choose_options(*kernel->engine, kernel->document, wanted, tuned.options);
  Plan plan = make_plan(kernel->document, kernel->options, kernel->engine->target, diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  kernel->planned = lower(std::move(plan), *kernel->engine, kernel->options);
  check_limits(kernel->planned, diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  if (!on_gpu && !compile_for_host(*kernel, diagnostics)) return nullptr;
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  kernel->compiled_info = on_gpu ? basic_info(*kernel->engine, kernel->planned).dump()
                                 : host_info(*kernel, elapsed.count());
  kernel->ready_info = kernel->compiled_info;
  kernel->ready = !on_gpu;
  if (kernel->host.code != nullptr) kernel->engine->emit_event("compile", kernel->compiled_info);
  return kernel;
}

/// What a launch of all branches takes: whole rows, of which a branch may compare a band.
LaunchContract contract_of_branches(const VariantSpec& spec, const BuildOptions& options,
                                    LaunchContract contract) {
  contract.kernel = spec.name;
  contract.head_dim = options.head_dim;
  contract.head_dim_v = head_dim_v(spec, options);
  contract.params = spec.params;
  for (std::size_t p = 0; p < kPositionParamNames.size() && options.positions; ++p)
    contract.params.push_back(position_param(static_cast<PositionParam>(p)));
  contract.keeps_selection = false;
  contract.has_lse = spec.attention.lse;
  contract.has_branches = true;
  return contract;
}

std::vector<KernelLaunch> launches_of_branches(const KernelState& kernel) {
  std::vector<KernelLaunch> all;
  for (const auto& branch : kernel.branches) {
    for (KernelLaunch launch : branch->lowered().launch.launches) {
      launch.name = branch->document.spec.branch.name + "." + launch.name;
      all.push_back(std::move(launch));
    }
  }
  return all;
}

std::string info_of_branches(const KernelState& kernel, std::string KernelState::*text) {
  Json branches = Json::array();
  double compile_ms = 0;
  bool all_hit = true;
  for (const auto& branch : kernel.branches) {
    const BranchSpec& spec = branch->document.spec.branch;
    Json& own = branches.emplace_back(Json::parse((*branch).*text));
    own["branch"] = spec.name;
    if (spec.means > 1) own["means"] = spec.means;
    if (spec.query_means > 1) own["query_means"] = spec.query_means;
    if (!spec.dims.empty()) own["dims"] = spec.dims;
    compile_ms += own.value("compile_ms", 0.0);
    const auto cache = own.find("cache");
    all_hit = all_hit && cache != own.end() && cache->is_object() && cache->value("hit", false);
  }
  Json info = basic_info(*kernel.engine, kernel.planned);
  info["spec"] = kernel.document.spec.name;
  info["compile_ms"] = compile_ms;
  info["cache"] = {{"hit", all_hit}};
  info["branches"] = std::move(branches);
  return info.dump();
}

/// A spec with branches: one kernel for each branch, with the tiles that were measured for that
/// branch alone.
std::shared_ptr<KernelState> compile_branches(std::shared_ptr<EngineState> engine,
                                              SpecDocument document, const BuildOptions& wanted,
                                              Diagnostics& diagnostics,
                                              const std::optional<LaunchShape>& shape) {
  auto kernel = std::make_shared<KernelState>();
  kernel->engine = std::move(engine);
  kernel->document = std::move(document);
  kernel->options = wanted;
  const std::size_t positions = wanted.positions ? kPositionParamNames.size() : 0;
  if (const std::size_t count = kernel->document.spec.params.size() + positions;
      count > kMaxParams) {
    add(Code::kOutOfRange,
        "params: a group passes " + std::to_string(positions) +
            " positions as parameters, and expected at most " + std::to_string(kMaxParams) +
            " in all, got " + std::to_string(count),
        diagnostics);
    return nullptr;
  }
  for (SpecDocument& branch : branch_documents(kernel->document)) {
    auto made = compile_document(kernel->engine, std::move(branch), wanted, diagnostics, shape);
    if (made == nullptr) return nullptr;
    kernel->branches.push_back(std::move(made));
  }
  const LoweredKernel& first = kernel->branches.front()->planned;
  kernel->planned = {
      first.plan, {}, contract_of_branches(kernel->document.spec, wanted, first.contract)};
  kernel->planned.launch.launches = launches_of_branches(*kernel);
  kernel->threads = kernel->branches.front()->threads;
  kernel->compiled_info = info_of_branches(*kernel, &KernelState::compiled_info);
  kernel->ready_info = kernel->compiled_info;
  kernel->ready = kernel->engine->gpu == nullptr;
  return kernel;
}

bool prepare_branches(KernelState& kernel, Diagnostics& diagnostics) {
  for (const auto& branch : kernel.branches)
    if (!prepare_kernel(*branch, diagnostics)) return false;
  kernel.relieved = kernel.planned;  // a branch may have been
  kernel.relieved->launch.launches = launches_of_branches(kernel);
  kernel.ready_info = info_of_branches(kernel, &KernelState::ready_info);
  return true;
}

}  // namespace

HostKernel::~HostKernel() {
  if (code != nullptr) backend->release(code);
}

BuildOptions with_family(BuildOptions options, const Target& target, Diagnostics& diagnostics) {
  const std::string name = environment(EnvironmentVariable::kAttendFamily);
  if (name.empty() || options.family || target.kind != TargetKind::kCuda) return options;
  for (const AttendFamily family : {AttendFamily::kMma, AttendFamily::kWgmma}) {
    if (name == name_of(family)) options.family = family;
  }
  if (!options.family) {
    add(Code::kCallArgument, "LACUNA_ATTEND_FAMILY: expected mma or wgmma, got " + name,
        diagnostics);
  }
  return options;
}

std::shared_ptr<KernelState> compile_kernel(std::shared_ptr<EngineState> engine, SourceText source,
                                            const BuildOptions& options, Diagnostics& diagnostics,
                                            const std::optional<LaunchShape>& shape) {
  SpecDocument document = read_spec(std::move(source), diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  const BuildOptions wanted = with_family(options, engine->target, diagnostics);
  return document.spec.branches.empty()
             ? compile_document(std::move(engine), std::move(document), wanted, diagnostics, shape)
             : compile_branches(std::move(engine), std::move(document), wanted, diagnostics, shape);
}

bool prepare_kernel(KernelState& kernel, Diagnostics& diagnostics) {
  // Before the lock: in a child of fork() the thread that held it may be gone.
  if (!check_process(*kernel.engine, diagnostics)) return false;
  if (kernel.ready.load(std::memory_order_acquire)) return true;
  const std::scoped_lock lock(kernel.prepare_mutex);
  if (kernel.ready.load(std::memory_order_relaxed)) return true;
  const bool is_prepared = kernel.branches.empty() ? prepare_for_gpu(kernel, diagnostics)
                                                   : prepare_branches(kernel, diagnostics);
  if (!is_prepared) return false;
  kernel.ready.store(true, std::memory_order_release);
  return true;
}

}  // namespace lacuna

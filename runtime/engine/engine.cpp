#include "runtime/engine/engine.hpp"

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cache/bundle.hpp"
#include "runtime/base/environment.hpp"

namespace lacuna {
namespace {

void add(Code code, std::string message, std::vector<std::string> helps, Diagnostics& diagnostics) {
  Diagnostic d;
  d.code = code;
  d.message = std::move(message);
  d.helps = std::move(helps);
  diagnostics.add(std::move(d));
}

/// N of "cuda:N"; "cuda" means 0; -1 if the text is neither.
int parse_cuda_index(const std::string& device) {
  if (device == "cuda") return 0;
  if (device.rfind("cuda:", 0) != 0) return -1;
  int index = -1;
  const char* begin = device.data() + 5;
  const char* end = device.data() + device.size();
  const auto parsed = std::from_chars(begin, end, index);
  return parsed.ec == std::errc() && parsed.ptr == end ? index : -1;
}

std::string known_targets() {
  std::string names;
  for (const Target& target : all_targets()) {
    if (target.kind == TargetKind::kCuda) names += (names.empty() ? "" : ", ") + target.name;
  }
  return names;
}

bool use_gpu(EngineState& engine, int index, Diagnostics& diagnostics) {
  auto driver = load_driver(diagnostics);
  if (driver == nullptr) return false;
  const std::string device = "cuda:" + std::to_string(index);
  // Facts first: a context on a GPU that cannot be used would cost time and memory for nothing.
  if (index < device_count(*driver)) {
    const int capability = compute_capability(*driver, index);
    const auto target = target_for_compute_capability(capability);
    if (!target) {
      add(Code::kUnknownGpu,
          "device " + device + " (" + device_name(*driver, index) + ") has compute capability " +
              std::to_string(capability / 10) + "." + std::to_string(capability % 10) +
              "; this build knows " + known_targets(),
          {}, diagnostics);
      return false;
    }
    engine.target = *target;
    engine.device_name = device_name(*driver, index);
  }
  engine.gpu = open_device(std::move(driver), index, diagnostics);
  if (engine.gpu == nullptr) return false;
  engine.device = device;
  engine.hardware = tune::gpu_hardware(*engine.gpu->driver, index, engine.target);
  cache::StoreOptions store;
  store.directory = engine.settings.cache_directory;
  store.warn = [&engine](const std::string& message) {
    engine.emit_event("cache_warning", "{\"message\": " + json_string(message) + "}");
  };
  engine.store = std::make_unique<cache::Store>(std::move(store));
  return true;
}

void use_cpu(EngineState& engine) {
  engine.gpu = nullptr;
  engine.store = nullptr;
  engine.device = "cpu";
  engine.device_name = cpu_name();
  engine.target = *find_target("cpu");
  engine.host = load_host_plugin();
  engine.hardware = tune::host_hardware(engine.target, engine.device_name, version_of(engine.host));
  if (engine.host.backend == nullptr) {
    engine.note +=
        (engine.note.empty() ? "" : "; ") + engine.host.missing + ", the CPU interprets, slowly";
  }
}

/// First GPU; where the machine has none, the CPU with the reason as the engine's note.
bool use_default(EngineState& engine, Diagnostics& diagnostics) {
  Diagnostics missing;
  if (use_gpu(engine, 0, missing)) return true;
  Diagnostic& why = missing.items.front();
  if (why.code == Code::kNoDriver || why.code == Code::kNoDevice) {
    engine.note = why.message + ", the CPU serves";
    use_cpu(engine);
    return true;
  }
  why.helps.emplace_back("device \"cpu\" does without a GPU");
  for (Diagnostic& d : missing.items) diagnostics.add(std::move(d));
  return false;
}

/// Of LACUNA_COMPILE.
bool environment_forbids_compiling(Diagnostics& diagnostics) {
  const std::string value = environment(EnvironmentVariable::kCompile);
  if (!value.empty() && value != "on" && value != "off") {
    add(Code::kCallArgument, "LACUNA_COMPILE: expected on or off, got " + value, {}, diagnostics);
  }
  return value == "off";
}

}  // namespace

void EngineState::emit_event(const char* event, const std::string& detail_json) const {
  if (settings.on_event == nullptr) return;
  try {
    settings.on_event(settings.user, event, detail_json.c_str());
  } catch (...) {
    // A host in C++ that broke its promise; the work goes on as if it had returned.
  }
}

void EngineState::warn_once(const std::string& message) {
  {
    const std::scoped_lock lock(warned_mutex);
    if (!warned.insert(message).second) return;
  }
  emit_event("cache_warning", "{\"message\": " + json_string(message) + "}");
}

EngineSettings engine_settings(const lacuna_engine_options& options, Diagnostics& diagnostics) {
  EngineSettings settings;
  if (options.device != nullptr) settings.device = options.device;
  settings.cache_directory = options.cache_directory != nullptr
                                 ? options.cache_directory
                                 : cache::choose_directory(system_variable);
  settings.template_path = options.template_path != nullptr
                               ? options.template_path
                               : environment(EnvironmentVariable::kTemplatePath);
  settings.threads = options.threads;
  settings.forbid_compiling =
      environment_forbids_compiling(diagnostics) || options.forbid_compiling != 0;
  settings.on_event = options.on_event;
  settings.user = options.user;
  return settings;
}

std::shared_ptr<EngineState> create_engine(const EngineSettings& settings,
                                           Diagnostics& diagnostics) {
  auto engine = std::make_shared<EngineState>();
  engine->settings = settings;
  const int index = parse_cuda_index(settings.device);
  if (settings.threads < 0) {
    add(Code::kCallArgument,
        "threads: expected 0 (all) or more, got " + std::to_string(settings.threads), {},
        diagnostics);
    return nullptr;
  }
  if (settings.device.empty()) {
    if (!use_default(*engine, diagnostics)) return nullptr;
  } else if (settings.device == "cpu") {
    use_cpu(*engine);
  } else if (index < 0) {
    add(Code::kCallArgument,
        "device: expected \"cpu\" or \"cuda:N\", got \"" + settings.device + "\"", {}, diagnostics);
    return nullptr;
  } else if (!use_gpu(*engine, index, diagnostics)) {
    return nullptr;
  }
  engine->emit_event("device", "{\"device\": " + json_string(engine->device) +
                                   ", \"name\": " + json_string(engine->device_name) +
                                   ", \"target\": " + json_string(engine->target.name) +
                                   ", \"note\": " + json_string(engine->note) + "}");
  return engine;
}

std::shared_ptr<const Nvrtc> engine_nvrtc(EngineState& engine, Diagnostics& diagnostics) {
  const std::scoped_lock lock(engine.nvrtc_mutex);
  if (engine.nvrtc == nullptr) {
    const int max_major = engine.gpu != nullptr ? engine.gpu->driver->cuda_version / 1000 : 0;
    engine.nvrtc = load_nvrtc(max_major, diagnostics);
  }
  return engine.nvrtc;
}

bool add_kernels(EngineState& engine, std::string_view bytes, Diagnostics& diagnostics) {
  const std::string damage =
      engine.store != nullptr ? engine.store->add_bundle(bytes) : cache::read_bundle(bytes).damage;
  if (damage.empty()) return true;
  add(Code::kFileFormat, "kernels: expected what `lacuna build --bundle` writes: " + damage, {},
      diagnostics);
  return false;
}

bool check_process(const EngineState& engine, Diagnostics& diagnostics) {
  if (engine.gpu == nullptr || engine.generation == process_generation()) return true;
  add(Code::kNoDevice,
      "device " + engine.device +
          " cannot be used after fork(): the driver serves only the process that opened it",
      {"fork before the first engine is created, or start the child with exec"}, diagnostics);
  return false;
}

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return "x86-64 " + line.substr(colon + 2);
    }
  }
  return "x86-64";
}

}  // namespace lacuna

#include "tools/tune/child/child.hpp"

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <memory>

#include "compiler/passes/check_request.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/kernel.hpp"
#include "tools/inputs/params.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/measure/value_source.hpp"
#include "tools/tune/child/subject.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

/// What "LACUNA_TUNE_FAULT" asks for: "crash q64 k32 ascending threads2; hang ...".
std::string fault_of(const std::string& config) {
  const std::string faults = environment(EnvironmentVariable::kTuneFault);
  for (const char* kind : {"crash", "hang", "wrong"})
    if ((";" + faults + ";").find(";" + std::string(kind) + " " + config + ";") !=
        std::string::npos)
      return kind;
  return "";
}

/// Ends this process, or keeps it from ever answering.
void commit_fault(const std::string& fault) {
  if (fault == "crash") std::raise(SIGSEGV);
  while (fault == "hang") ::pause();
}

struct Child {
  std::shared_ptr<EngineState> engine;  ///< opened for its facts
  std::unique_ptr<TuneSubject> subject;
  TuneContext context;
};

ordered_json refusal(const std::string& text, const std::string& json_text, ExitCode code) {
  return {{"error", text}, {"error_json", json_text}, {"exit", static_cast<int>(code)}};
}

ordered_json refusal(const Diagnostics& found, const SourceText& source, ExitCode code) {
  return refusal(render(found, source, false), render_json(found, source), code);
}

std::string version_text(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

/// Driver and NVRTC, or the CPU's compiler.
bool read_versions(EngineState& engine, TuneFacts& facts, Diagnostics& diagnostics) {
  if (engine.gpu == nullptr) {
    facts.compiler = version_of(engine.host);
    return true;
  }
  const int driver = engine.gpu->driver->cuda_version;
  facts.driver = "CUDA " + version_text(driver / 1000, driver % 1000 / 10);
  const auto nvrtc = engine_nvrtc(engine, diagnostics);
  if (nvrtc == nullptr) return false;
  facts.compiler = "NVRTC " + version_text(info(*nvrtc).major, info(*nvrtc).minor);
  return true;
}

ordered_json hello(const ordered_json& message, Child& child) {
  child.context.task = read_task(message);
  TuneTask& task = child.context.task;
  EngineSettings settings;
  settings.device = task.device;
  settings.threads = task.threads;
  Diagnostics diagnostics;
  child.engine = create_engine(settings, diagnostics);
  TuneFacts facts;
  if (child.engine == nullptr || !read_versions(*child.engine, facts, diagnostics))
    return refusal(diagnostics, {"lacuna", ""}, ExitCode::kEnvironment);
  facts.device = child.engine->device;
  facts.device_name = child.engine->device_name;
  facts.hardware = child.engine->hardware.name;
  facts.note = child.engine->note;
  facts.target = child.engine->target.name;
  facts.processors = child.engine->hardware.machine.processors;
  facts.cores = child.engine->hardware.machine.cores;
  task.device = facts.device;
  return to_json(facts);
}

ordered_json open(Child& child) {
  TuneContext& context = child.context;
  Diagnostics diagnostics;
  context.document = read_spec({context.task.path, context.task.spec}, diagnostics);
  const Target& target = child.engine->target;
  context.task.build = with_family(context.task.build, target, diagnostics);
  const Plan plan = make_plan(context.document, context.task.build, target, diagnostics);
  if (diagnostics.has_errors())
    return refusal(diagnostics, context.document.source, ExitCode::kInput);
  const int all = child.engine->hardware.machine.processors;
  context.usual = tune::config_of(plan, context.task.threads > 0 ? context.task.threads : all);
  Session session;
  const auto params = load_params(context.task.params, "", context.document.spec, session);
  if (!params) return refusal("parameters cannot be read", "", ExitCode::kInput);
  context.params = *params;
  auto values = open_values(context.task.values, session);
  if (!values) return refusal("values cannot be read", "", ExitCode::kInput);
  const std::string misfit = check_fits(*values, context.task.shape, context.task.build.head_dim,
                                        head_dim_v(context.document.spec, context.task.build));
  if (!misfit.empty()) return refusal(misfit, "", ExitCode::kInput);
  context.values = std::move(*values);
  child.subject = std::make_unique<TuneSubject>(context);
  const std::string error = child.subject->open();
  return {{"error_of_usual", error},
          {"density", child.subject->density()},
          {"usual_us", child.subject->usual_time_us()},
          {"interpreted", child.subject->asked_interpreter()}};
}

std::vector<tune::Config> read_configs(const ordered_json& message) {
  std::vector<tune::Config> configs;
  for (const auto& text : message.at("configs"))
    if (const auto config = tune::parse_config(text.get<std::string>())) configs.push_back(*config);
  return configs;
}

ordered_json serve(const ordered_json& message, Child& child) {
  const std::string what = message.at("do");
  if (what == "hello") return hello(message, child);
  if (what == "open") return open(child);
  if (child.subject == nullptr) return refusal("nothing is open", "", ExitCode::kInternal);
  if (what == "prepare") {
    child.subject->prepare(read_configs(message));
    return ordered_json::object();
  }
  const std::string name = message.at("config");
  const auto config = tune::parse_config(name);
  if (!config) return refusal("no configuration: " + name, "", ExitCode::kInternal);
  if (what == "time") return to_json(child.subject->time(*config));
  const std::string fault = fault_of(name);
  commit_fault(fault);
  return to_json(child.subject->verify(*config, fault == "wrong"));
}

ExitCode child_exit_code(lacuna_status status) {
  if (status == LACUNA_ERROR_INPUT) return ExitCode::kInput;
  return status == LACUNA_ERROR_ENVIRONMENT ? ExitCode::kEnvironment : ExitCode::kInternal;
}

ordered_json guarded(const ordered_json& message, Child& child, bool& failed) {
  try {
    return serve(message, child);
  } catch (const v1::Error& error) {
    failed = true;
    return refusal(error.what(), error.json(), child_exit_code(error.status()));
  } catch (const DeviceFailure& failure) {
    failed = true;
    return refusal(failure.diagnostics, {"GPU", ""}, ExitCode::kEnvironment);
  }
}

}  // namespace

int serve_tuning() {
  Child child;
  bool failed = false;
  for (std::string line; !failed && std::getline(std::cin, line);) {
    const auto message = ordered_json::parse(line, nullptr, false);
    if (!message.is_object()) return static_cast<int>(ExitCode::kUsage);
    constexpr auto kReplace = ordered_json::error_handler_t::replace;
    std::cout << guarded(message, child, failed).dump(-1, ' ', false, kReplace) << '\n'
              << std::flush;
  }
  // Whatever the candidates have left behind, memory and device go with the process.
  ::_exit(static_cast<int>(ExitCode::kOk));
}

}  // namespace lacuna::tools

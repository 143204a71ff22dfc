#include "tools/tune/child/subject.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "runtime/base/environment.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "tools/measure/value_source.hpp"

namespace lacuna::tools {
namespace {

/// A small problem: several tiles each way, none of them whole at the end. Its values are random
/// normal ones, whatever is timed: a file's heads need not fit its few.
constexpr std::int32_t kSmallTokens = 293;
/// Short launches are timed several times for one sample.
constexpr double kSampleUs = 5000;
constexpr std::size_t kMostLaunches = 10;

LaunchShape small_shape(const LaunchShape& shape) {
  return {1, shape.n_h > shape.n_h_kv ? 2 : 1, 1, std::min(shape.n_q, kSmallTokens),
          std::min(shape.n_k, kSmallTokens)};
}

/// The interpreter as an engine. The environment is this child's own.
v1::Engine interpreting_engine() {
  constexpr const char* kPlugin = "LACUNA_HOST_PLUGIN";
  const std::string before = environment(EnvironmentVariable::kHostPlugin);
  ::setenv(kPlugin, "off", 1);
  v1::EngineOptions options;
  options.device = "cpu";
  v1::Engine engine = v1::Engine::create(options);
  ::setenv(kPlugin, before.c_str(), 1);  // empty: as if it were not set
  return engine;
}

/// "" on the CPU and where nothing spills.
std::string spill_of(const v1::Kernel& kernel) {
  const auto info = nlohmann::json::parse(kernel.info_json());
  const int bytes = info.value("spill_bytes", 0);
  return bytes == 0 ? "" : "attend spills " + std::to_string(bytes) + " bytes of registers";
}

tune::Sample failed(tune::TuningStatus status, std::string detail) {
  return {status, std::move(detail), {}};
}

}  // namespace

const v1::Engine& TuneSubject::engine_for(int threads) {
  const auto found = engines_.find(threads);
  if (found != engines_.end()) return found->second;
  v1::EngineOptions options;
  options.device = context_.task.device;
  options.threads = threads;
  return engines_.emplace(threads, v1::Engine::create(options)).first->second;
}

const v1::Kernel& TuneSubject::kernel_of(const tune::Config& config) {
  const std::string name = print_config(config);
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return found->second;
  return kernels_.emplace(name, compile_config(engine_for(config.threads), problem_, config))
      .first->second;
}

std::string TuneSubject::open() {
  const tune::Config& usual = context_.usual;
  const v1::Engine& engine = engine_for(usual.threads);
  DeviceErrors errors;
  auto place = open_place(engine.device(), errors.diagnostics);
  errors.check();
  place_ = std::move(*place);
  fill(problem_, context_.values, context_.task.shape, 0, engine);
  const BoundKernel& kernel =
      bound_.emplace(print_config(usual), bind(problem_, kernel_of(usual))).first->second;
  density_ = density_of(problem_, kernel);
  expected_ = output_of(problem_, kernel);
  usual_time_us_ = time_launch_us(problem_, kernel, 0);
  // An order made for one number of tokens has no smaller problem.
  if (context_.document.spec.permute.order > TokenOrder::kExternal) return "";
  fill(small_, ValueSource{}, small_shape(context_.task.shape), 1, engine);
  small_expected_ = interpret();
  const BoundKernel small = bind(small_, kernel_of(usual));
  return tune::compare_outputs(
      small_expected_, output_of(small_, small),
      tune::tolerance_of(context_.document.spec, context_.task.build.dtype));
}

std::vector<float> TuneSubject::interpret() {
  const Place host;
  TuneProblem problem{context_, host};
  const v1::Engine engine = interpreting_engine();
  fill(problem, ValueSource{}, small_shape(context_.task.shape), 1, engine);
  return output_of(problem, bind(problem, compile_config(engine, problem, context_.usual)));
}

void TuneSubject::prepare(const std::vector<tune::Config>& configs) {
  std::vector<const v1::Engine*> engines;
  for (const tune::Config& config : configs) engines.push_back(&engine_for(config.threads));
  std::mutex mutex;
  const auto count = static_cast<std::int64_t>(configs.size());
  parallel_for(worker_count(0, count), count, [&](std::int64_t item, std::size_t) {
    const auto n = static_cast<std::size_t>(item);
    v1::Kernel kernel = compile_config(*engines[n], problem_, configs[n]);
    const std::scoped_lock lock(mutex);
    kernels_.insert_or_assign(print_config(configs[n]), std::move(kernel));
  });
}

tune::Sample TuneSubject::verify(const tune::Config& config, bool spoil) {
  using tune::TuningStatus;
  const v1::Kernel& kernel = kernel_of(config);
  const bool is_usual = config == context_.usual;
  if (std::string spill = spill_of(kernel); !spill.empty() && !is_usual)
    return failed(TuningStatus::kSpill, std::move(spill));
  const tune::Tolerance allowed =
      tune::tolerance_of(context_.document.spec, context_.task.build.dtype);
  if (asked_interpreter()) {
    std::string error =
        tune::compare_outputs(small_expected_, output_of(small_, bind(small_, kernel)), allowed);
    if (!error.empty()) return failed(TuningStatus::kWrong, "against the interpreter: " + error);
  }
  const std::string name = print_config(config);
  const BoundKernel& bound = bound_.insert_or_assign(name, bind(problem_, kernel)).first->second;
  std::vector<float> got = output_of(problem_, bound);
  if (spoil) got.front() += 1;
  std::string error = tune::compare_outputs(expected_, got, tune::between_two(allowed));
  if (!error.empty())
    return failed(TuningStatus::kWrong, "against " + print_config(context_.usual) + ": " + error);
  return {};
}

tune::Sample TuneSubject::time(const tune::Config& config) {
  const auto bound = bound_.find(print_config(config));
  if (bound == bound_.end())
    return failed(tune::TuningStatus::kWrong, "was not verified before it was to be timed");
  tune::Sample sample;
  double total_us = 0;
  while (sample.times_us.size() < kMostLaunches && (total_us < kSampleUs)) {
    const std::size_t set = next_set_++ % problem_.sets.size();
    sample.times_us.push_back(time_launch_us(problem_, bound->second, set));
    total_us += sample.times_us.back();
  }
  return sample;
}

}  // namespace lacuna::tools

// The engine behind lacuna_engine: one device with its target, compilers and kernel store.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store.hpp"
#include "compiler/target/target.hpp"
#include "lacuna/lacuna.h"
#include "runtime/base/process.hpp"
#include "runtime/base/threads/thread_pool.hpp"
#include "runtime/cpu/host_plugin.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "runtime/tune/machine.hpp"

namespace lacuna {

/// The options of lacuna_engine_create with the environment's defaults filled in.
struct EngineSettings {
  std::string device;           ///< "cpu", "cuda:N"; empty: first GPU, else CPU
  std::string cache_directory;  ///< empty: memory only
  std::string template_path;    ///< empty: the embedded headers
  int threads = 0;
  bool forbid_compiling = false;  ///< of kernels for a GPU: they come from bundles and the cache
  lacuna_event_callback on_event = nullptr;
  void* user = nullptr;
};

struct EngineState {
  EngineSettings settings;
  std::string device;       ///< "cuda:0", "cpu"
  std::string device_name;  ///< "NVIDIA H200", "x86-64 AMD EPYC ..."
  std::string note;         ///< what is missing and what serves in its place; "" if nothing
  Target target;
  tune::Hardware hardware;              ///< whose tuning records serve
  std::shared_ptr<const Device> gpu;    ///< null on the CPU
  HostPlugin host;                      ///< CPU only
  ThreadPool threads;                   ///< the same
  std::unique_ptr<cache::Store> store;  ///< GPU only
  const unsigned generation = process_generation();

  std::mutex warned_mutex;
  std::set<std::string> warned;

  std::mutex nvrtc_mutex;
  std::shared_ptr<const Nvrtc> nvrtc;  ///< opened when first needed

  /// Calls the host's callback, if there is one. `detail_json` is a JSON object.
  void emit_event(const char* event, const std::string& detail_json) const;
  /// The event "cache_warning", once for each text.
  void warn_once(const std::string& message);
};

/// Fills what `options` leaves open from the environment; adds diagnostics if a variable has no
/// legal value.
EngineSettings engine_settings(const lacuna_engine_options& options, Diagnostics& diagnostics);

/// Null with diagnostics if the device asked for cannot be had. Where none was asked for and the
/// machine has no GPU, the CPU serves and `note` says why; a GPU that is there but cannot be used
/// is an error, so that no host runs on the CPU without knowing it.
std::shared_ptr<EngineState> create_engine(const EngineSettings& settings,
                                           Diagnostics& diagnostics);

/// Opens NVRTC on the first call; null with kNoNvrtc.
std::shared_ptr<const Nvrtc> engine_nvrtc(EngineState& engine, Diagnostics& diagnostics);

/// Adds the kernels of a bundle, whose bytes have to stay as long as the engine. False with
/// kFileFormat if they are no intact bundle. The CPU has no use for them.
bool add_kernels(EngineState& engine, std::string_view bytes, Diagnostics& diagnostics);

/// A GPU of the parent process is lost after fork(): false with kNoDevice. True on the CPU.
bool check_process(const EngineState& engine, Diagnostics& diagnostics);

/// `text` as a JSON string with its quotes.
std::string json_string(const std::string& text);

/// "x86-64" and the model name of the CPU.
std::string cpu_name();

}  // namespace lacuna

// NVRTC for the tests of this folder and of tests/sass: none of them needs a GPU, all of them need
// a compiler. What it made of a source stays in the build folder, in a store of its own for each
// NVRTC, so that only kernels whose text, headers or options have changed are compiled again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cache/key.hpp"
#include "cache/store.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "runtime/engine/build/build.hpp"

namespace lacuna {

/// Null if there is none; then the caller skips, and `reason` says what was searched.
inline std::shared_ptr<const Nvrtc> find_nvrtc(std::string& reason) {
  Diagnostics diagnostics;
  auto nvrtc = load_nvrtc(0, diagnostics);
  reason = render(diagnostics, {});
  return nvrtc;
}

/// Of the code that compiles: what it made before it changed is of no use.
inline std::string builder_sha256() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"/runtime/cuda", "/runtime/engine/build"}) {
    for (const auto& file :
         std::filesystem::directory_iterator(LACUNA_SOURCE_DIR + std::string(folder)))
      paths.push_back(file.path());
  }
  std::ranges::sort(paths);
  std::string text;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  return cache::sha256_hex(text);
}

/// In the folder for kernels that ctest names; null where none is named: nothing is kept then.
inline std::unique_ptr<cache::Store> stored_kernels(const Nvrtc& nvrtc) {
  const std::string folder = environment(EnvironmentVariable::kCacheDir);
  if (folder.empty()) return nullptr;
  const NvrtcInfo& version = info(nvrtc);
  cache::StoreOptions options;
  options.directory = folder + "/nvrtc-" + std::to_string(version.major) + "." +
                      std::to_string(version.minor) + "-" + version.build_id + "/" +
                      builder_sha256();
  return std::make_unique<cache::Store>(std::move(options));
}

/// compile_cuda, or what it made of the same source before.
inline Compilation compile_stored(cache::Store* store, const Nvrtc& nvrtc, const CudaSource& source,
                                  const std::string& target, Diagnostics& diagnostics) {
  const cache::Key key = kernel_key(source, target, "", diagnostics);
  if (auto entry = store != nullptr ? store->load(key) : std::nullopt) {
    Compilation made;
    made.cubins = std::move(entry->cubins);
    made.log = std::move(entry->log);
    made.kernels = parse_ptxas_log(made.log);
    return made;
  }
  Compilation made = compile_cuda(nvrtc, source, target, {}, diagnostics);
  if (store != nullptr && !made.cubins.empty())
    store->publish(key, {key.text, "{}", made.log, made.cubins});
  return made;
}

/// body(n) for n below `count`, on two threads: NVRTC allows it, and most of the time is its own.
inline void run_all(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t n = next++; n < count; n = next++) body(n);
  };
  std::jthread other(work);
  work();
}

}  // namespace lacuna

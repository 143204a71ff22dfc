// NVRTC for the tests of this folder and of tests/sass: none of them needs a GPU, all of them need
// a compiler. What it made of a source stays in the build folder, in a store of its own for each
// NVRTC, so that only kernels whose text, headers or options have changed are compiled again.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cache/store.hpp"
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

inline cache::Store stored_kernels(const Nvrtc& nvrtc) {
  cache::StoreOptions options;
  options.directory = LACUNA_BINARY_DIR "/test-cache/nvrtc/" + info(nvrtc).build_id;
  return cache::Store(std::move(options));
}

/// compile_cuda, or what it made of the same source before.
inline Compilation compile_stored(cache::Store& store, const Nvrtc& nvrtc, const CudaSource& source,
                                  const std::string& target, Diagnostics& diagnostics) {
  const cache::Key key = kernel_key(source, target, "", diagnostics);
  if (auto entry = store.load(key)) {
    Compilation made;
    made.cubins = std::move(entry->cubins);
    made.log = std::move(entry->log);
    made.kernels = parse_ptxas_log(made.log);
    return made;
  }
  Compilation made = compile_cuda(nvrtc, source, target, {}, diagnostics);
  if (!made.cubins.empty()) store.publish(key, {key.text, "{}", made.log, made.cubins});
  return made;
}

}  // namespace lacuna

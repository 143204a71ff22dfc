// NVRTC for the tests of this folder: none of them needs a GPU, all of them need a compiler.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/cuda/nvrtc.hpp"

namespace lacuna {

/// Null if there is none; then the caller skips, and `reason` says what was searched.
inline std::shared_ptr<const Nvrtc> find_nvrtc(std::string& reason) {
  Diagnostics diagnostics;
  auto nvrtc = load_nvrtc(0, diagnostics);
  reason = render(diagnostics, {});
  return nvrtc;
}

}  // namespace lacuna

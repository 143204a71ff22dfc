// A kernel of several kernels for the tests of their launches.
#pragma once

#include "tests/runtime/fake_gpu/protocol.hpp"

namespace lacuna {

inline constexpr const char* kPooled = R"({
  "version": 1, "name": "pooled",
  "predictor": { "tile": { "q": 128, "k": 64 }, "estimate": { "q": "mean", "k": "mean" },
                 "keep": "p > 0.01", "reuse": 3 }
})";

class Pooled : public Protocol {
 protected:
  static Kernel compiled(const Engine& e) { return Protocol::compiled(e, kPooled, "pooled.json"); }
  static Kernel prepared(const Engine& e) { return Protocol::prepared(e, kPooled, "pooled.json"); }

  static std::string error_of(const Kernel& kernel, const LaunchArgs& args) {
    try {
      kernel.launch(args);
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }
};

}  // namespace lacuna

// A kernel of several stages for the tests of their launches.
#pragma once

#include "tests/runtime/fake_gpu/protocol.hpp"

namespace lacuna {

inline constexpr const char* kPooled = R"({
  "version": 1, "name": "pooled",
  "predictor": { "tile": { "q": 128, "k": 64 }, "estimate": { "q": "mean", "k": "mean" },
                 "keep": "p > 0.01", "reuse": 3 }
})";
/// Of Protocol::arguments().
inline constexpr v1::Shape kShape{2, 8, 2, 300, 200};

class Pooled : public Protocol {
 protected:
  static Kernel compiled(const Engine& e) {
    return e.compile(v1::Spec::parse(kPooled, "pooled.json"), {128, bf16});
  }
  static Kernel prepared(const Engine& e) {
    Kernel kernel = compiled(e);
    kernel.prepare();
    forget();
    return kernel;
  }

  /// Arguments with a workspace that the fake never touches.
  static LaunchArgs arguments(const Kernel& kernel) {
    LaunchArgs args = Protocol::arguments();
    args.params.clear();
    args.workspace = reinterpret_cast<void*>(std::size_t{0x100000});
    args.workspace_bytes = kernel.workspace_bytes(kShape);
    return args;
  }

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

// LaunchProgram expressions as machine code; the interpreter of the runtime gives the same values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/cpu/llvm/jit/jit.hpp"

namespace lacuna::host {

struct LaunchKernel {
  Code code;
  void (*run)(const std::int32_t* variables, std::int32_t* values) = nullptr;
};

/// One i32 expression of Site::kLaunch for each line. False: `error` names line and reason.
bool compile_launch(std::string_view expressions, LaunchKernel& launch, std::string& error);

}  // namespace lacuna::host

// LLVM ORC behind plain values: a module of generated functions becomes addresses.
#pragma once

#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/cpu/llvm/jit/emitter.hpp"

namespace llvm::orc {
class JITDylib;
}

namespace lacuna::host {

/// The machine this process runs on.
struct Cpu {
  std::string name;      ///< "znver4"
  std::string features;  ///< "+avx2,+fma,..."
  int width = 4;         ///< f32 lanes of its widest vector
  int registers = 16;    ///< vector registers
};
const Cpu& host_cpu();

/// Machine code of one module; addresses are valid until it is destroyed.
class Code {
 public:
  Code() = default;
  Code(Code&& other) noexcept;
  Code& operator=(Code&& other) noexcept;
  ~Code();

  void* address(std::string_view name) const;
  template <class Function>
  void find(std::string_view name, Function*& pointer) const {
    pointer = reinterpret_cast<Function*>(address(name));
  }

  std::string ir;  ///< after optimisation

 private:
  friend bool generate(const std::string&, const std::function<void(llvm::Module&)>&, Code&,
                       std::string&);
  llvm::orc::JITDylib* library_ = nullptr;
};

/// Lets `fill` write functions into an empty module, optimises, compiles and links it.
/// False: `error` says what LLVM complained about.
bool generate(const std::string& name, const std::function<void(llvm::Module&)>& fill, Code& code,
              std::string& error);

}  // namespace lacuna::host

// Plain memory of the caller's for launches: workspaces and selections.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

#include "array.hpp"
#include "lacuna/lacuna.h"

namespace lacuna_python {

constexpr std::uintptr_t kAlignment = 256;  ///< of workspaces and selections, in bytes

struct Memory {
  void* data;
  std::size_t bytes;
  DLDevice device;
};

/// Of a tensor without gaps that may be written to; raises for any other. `name` is for messages.
Memory writable_memory(const BorrowedTensor& tensor, const char* name);

/// Raises if kernels on `device` do not reach the memory.
void check_reaches(DLDevice device, const Memory& memory, const char* name);

/// The caller's decision of a predictor, kept for several launches (lacuna_selection).
class Selection {
 public:
  /// `array`: bytes on the device of the kernel, as many as Kernel.selection_bytes says from the
  /// first address on that is a multiple of 256.
  explicit Selection(nb::object array);
  /// The next launch decides anew.
  void forget() { raw_.calls = 0; }
  int calls() const { return raw_.calls; }
  const Memory& memory() const { return memory_; }
  lacuna_selection* raw() { return &raw_; }

 private:
  nb::object array_;
  Memory memory_{};
  lacuna_selection raw_{};
};

}  // namespace lacuna_python

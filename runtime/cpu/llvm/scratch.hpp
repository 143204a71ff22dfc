// Memory of one run: packed tensors, and what each worker needs for a work tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/cpu/llvm/attend/frame.hpp"
#include "runtime/cpu/llvm/attend/panels.hpp"

namespace lacuna::host {

/// Zeroed floats, aligned to a cache line.
class Floats {
 public:
  explicit Floats(std::size_t count);
  float* data() const { return aligned_; }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> memory_;
  float* aligned_ = nullptr;
};

/// Scratch of one worker.
class Scratch {
 public:
  explicit Scratch(const Shape& shape);
  Frame frame;  ///< with its pointers into the scratch
  /// Of gathering kernels: keys of the row at hand, ascending, and one tile of them.
  std::vector<std::int32_t> keys;
  std::vector<std::byte> gathered_rows;
  float *k_panels = nullptr, *v_panels = nullptr;

 private:
  Floats floats_;
};

}  // namespace lacuna::host

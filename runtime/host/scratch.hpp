// Memory of one run: packed tensors, and what each worker needs for a row of tiles.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/host/frame.hpp"
#include "runtime/host/panels.hpp"

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

 private:
  Floats floats_;
};

}  // namespace lacuna::host

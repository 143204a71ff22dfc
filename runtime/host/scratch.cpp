#include "runtime/host/scratch.hpp"

#include <cstdlib>
#include <new>
#include <utility>

namespace lacuna::host {
namespace {

int round_up(int x, int multiple) { return (x + multiple - 1) / multiple * multiple; }

struct ScratchSizes {
  std::size_t q, s, o, rows;
  explicit ScratchSizes(const Shape& shape) {
    const auto padded = static_cast<std::size_t>(round_up(shape.tile_q, kGroupRows));
    q = padded * static_cast<std::size_t>(round_up(shape.head_dim, kGroupRows));
    s = padded * static_cast<std::size_t>(shape.keys.padded_columns());
    o = padded * static_cast<std::size_t>(shape.values.padded_columns());
    rows = padded;
  }
  std::size_t total() const { return q + s + o + 5 * rows; }
};

}  // namespace

void Floats::Free::operator()(void* memory) const { std::free(memory); }

Floats::Floats(std::size_t count) {
  constexpr std::size_t kLine = 64;
  // calloc leaves large blocks to the kernel's zero pages: touched first by the worker that uses
  // them.
  memory_.reset(std::calloc(count * sizeof(float) + kLine, 1));
  if (memory_ == nullptr) throw std::bad_alloc();
  void* address = memory_.get();
  std::size_t space = count * sizeof(float) + kLine;
  aligned_ = static_cast<float*>(std::align(kLine, count * sizeof(float), address, space));
}

Scratch::Scratch(const Shape& shape) : floats_(ScratchSizes(shape).total()) {
  const ScratchSizes sizes(shape);
  float* next = floats_.data();
  const auto take = [&](std::size_t count) { return std::exchange(next, next + count); };
  frame.q = take(sizes.q);
  frame.s = take(sizes.s);
  frame.o = take(sizes.o);
  for (float** array :
       {&frame.tile_max, &frame.row_max, &frame.row_sum, &frame.row_shift, &frame.pending})
    *array = take(sizes.rows);
}

}  // namespace lacuna::host

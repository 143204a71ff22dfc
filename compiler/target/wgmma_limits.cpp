#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

constexpr int kElementBytes = 2;
/// Barriers, messages and votes of a block.
constexpr int kBarrierBytes = 1024;

}  // namespace

int smem_bytes(const WgmmaShape& shape) {
  const int rows = shape.tile_q * shape.query_buffers + 2 * shape.stages * shape.step_keys();
  return kBarrierBytes + rows * shape.head_dim * kElementBytes;
}

std::string smem_formula(const WgmmaShape& shape) {
  const auto text_of = [](int number) { return std::to_string(number); };
  return text_of(kBarrierBytes) + " + (" + text_of(shape.tile_q) + " * " +
         text_of(shape.query_buffers) + " + 2 * " + text_of(shape.stages) + " * " +
         text_of(shape.step_keys()) + ") * " + text_of(shape.head_dim) + " * " +
         text_of(kElementBytes);
}

WgmmaRegisters registers_of(const WgmmaShape& shape) {
  // 128 * (2 * 240 + 24) or 128 * (3 * 160 + 32): what an SM has, in steps of 8.
  return shape.warpgroups() <= 2 ? WgmmaRegisters{240, 24} : WgmmaRegisters{160, 32};
}

}  // namespace lacuna

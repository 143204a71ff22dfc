#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

constexpr int kOperandBytes = 2;
/// Barriers, messages and votes of a block.
constexpr int kBarrierBytes = 1024;
/// Columns between those that are expanded and those that are multiplied.
constexpr int kColumnRingBytes = 16384;

int control_bytes(const WgmmaShape& shape) {
  return kBarrierBytes + (shape.gathers ? kColumnRingBytes : 0);
}

}  // namespace

int smem_bytes(const WgmmaShape& shape) {
  const int queries = shape.block_rows() * shape.query_buffers * kOperandBytes;
  const int keys = shape.step_keys() * shape.stages * shape.qk_bits / 8;
  const int values = shape.step_keys() * shape.value_stages * shape.v_bits / 8;
  return control_bytes(shape) + (queries + keys) * padded_dim(shape.head_dim) +
         values * padded_dim(value_dim(shape));
}

std::string smem_formula(const WgmmaShape& shape) {
  const auto text_of = [](int number) { return std::to_string(number); };
  const std::string begin = text_of(control_bytes(shape)) + " + (" + text_of(shape.block_rows()) +
                            " * " + text_of(shape.query_buffers);
  const std::string end = ") * " + text_of(padded_dim(shape.head_dim));
  if (value_dim(shape) != shape.head_dim) {
    const std::string bytes = " * " + text_of(kOperandBytes);
    const std::string keys = " * " + text_of(shape.step_keys());
    return begin + " + " + text_of(shape.stages) + keys + end + bytes + " + " +
           text_of(shape.value_stages) + keys + " * " + text_of(padded_dim(value_dim(shape))) +
           bytes;
  }
  if (shape.qk_bits == 16 && shape.v_bits == 16) {
    return begin + " + (" + text_of(shape.stages) + " + " + text_of(shape.value_stages) + ") * " +
           text_of(shape.step_keys()) + end + " * " + text_of(kOperandBytes);
  }
  return begin + " * " + text_of(kOperandBytes) + " + " + text_of(shape.stages) + " * " +
         text_of(shape.step_keys()) + " * (" + text_of(shape.qk_bits / 8) + " + " +
         text_of(shape.v_bits / 8) + ")" + end;
}

WgmmaRegisters registers_of(const WgmmaShape& shape) {
  // 128 * (2 * 240 + 24), 128 * (2 * 232 + 40) or 128 * (3 * 160 + 32): what an SM has, in steps
  // of 8.
  if (shape.gathers || shape.work_tiles > 1 || shape.packs_heads) return {232, 40};
  return shape.warpgroups() <= 2 ? WgmmaRegisters{240, 24} : WgmmaRegisters{160, 32};
}

}  // namespace lacuna

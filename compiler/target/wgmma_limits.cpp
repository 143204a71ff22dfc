#include "compiler/target/wgmma_limits.hpp"

#include <algorithm>

#include "compiler/expr/bounds/key_ranges.hpp"
#include "compiler/expr/rounded_down.hpp"

namespace lacuna {
namespace {

constexpr int kOperandBytes = 2;

WgmmaBlock block_of(const WgmmaShape& shape) {
  return {.rows = shape.block_rows(),
          .query_buffers = shape.query_buffers,
          .stages = shape.stages,
          .value_stages = shape.value_stages,
          .step_keys = shape.step_keys(),
          .head_dim = shape.head_dim,
          .head_dim_v = value_dim(shape),
          .qk_bits = shape.qk_bits,
          .v_bits = shape.v_bits,
          .ring_bytes = shape.gathers ? column_ring_bytes(shape.work_tiles) : 0,
          .has_sequence_tiles = shape.has_sequence_tiles,
          .code_places = shape.code_places,
          .has_column_bias = shape.has_column_bias,
          .has_gate = shape.has_gate};
}

/// Without places of codes.
std::string formula_of_operands(const WgmmaShape& shape) {
  const auto text_of = [](int number) { return std::to_string(number); };
  const std::string bytes = " * " + text_of(kOperandBytes) + " bytes";
  const std::string key_slots = text_of(shape.stages), value_slots = text_of(shape.value_stages);
  const std::string keys = text_of(shape.step_keys()) + " keys";
  const std::string row = text_of(padded_dim(shape.head_dim)) + " elements";
  const WgmmaBlock block = block_of(shape);
  std::string control = text_of(block.control_bytes() - block.bias_bytes()) + " of control + ";
  if (shape.has_column_bias) control += key_slots + " * " + keys + " * 4 of biases + ";
  const std::string begin = control + "(" + text_of(shape.query_buffers) + " * " +
                            text_of(shape.block_rows()) + " queries";
  const std::string value_row = text_of(padded_dim(value_dim(shape))) + " elements";
  if (padded_dim(value_dim(shape)) >
      padded_dim(shape.head_dim)) {  // rows of O lie where queries did
    return begin + " + " + value_slots + " * " + keys + ") * " + value_row + bytes + " + " +
           key_slots + " * " + keys + " * " + row + bytes;
  }
  if (value_dim(shape) != shape.head_dim) {
    return begin + " + " + key_slots + " * " + keys + ") * " + row + bytes + " + " + value_slots +
           " * " + keys + " * " + value_row + bytes;
  }
  if (shape.qk_bits == 16 && shape.v_bits == 16) {
    return begin + " + (" + key_slots + " + " + value_slots + ") * " + keys + ") * " + row + bytes;
  }
  return begin + bytes + " + " + key_slots + " * " + keys + " * (" + text_of(shape.qk_bits / 8) +
         " + " + text_of(shape.v_bits / 8) + ")) * " + row;
}

}  // namespace

int smem_bytes(const WgmmaShape& shape) { return block_of(shape).smem_bytes(); }

std::string smem_formula(const WgmmaShape& shape) {
  std::string operands = formula_of_operands(shape);
  if (shape.code_places == 0) return operands;
  const int width = std::max(shape.head_dim, value_dim(shape));
  return operands + " + " + std::to_string(shape.code_places) + " * " +
         std::to_string(shape.step_keys()) + " keys * " + std::to_string(width) + " codes";
}

bool has_long_bounds(const Attend& attend) {
  if (attend.list_indices >= 0 || attend.pairs) return false;
  const bool divides = rounds_down(attend.classifier.must) || rounds_down(attend.classifier.may);
  return divides && !key_ranges(attend.mask).empty();
}

WgmmaRegisters registers_of(const WgmmaShape& shape) {
  return wgmma_registers(
      shape.warpgroups(),
      {shape.gathers, shape.work_tiles > 1, shape.has_sequence_tiles, shape.e4m3_rows,
       shape.asks_mask, has_two_widths(shape.head_dim, value_dim(shape))});
}

}  // namespace lacuna

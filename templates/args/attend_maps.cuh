// Tensor maps of the wgmma family of `attend`, made by the host for each launch. Boxes are one
// panel wide: 64 rows of q, a list's tile of k and v, the 16 rows of o that a warp writes. Operands
// of 8 bits have other panels and boxes: attend/wgmma/layout/slots.cuh.
#pragma once

#include "arch/copy/tma.cuh"

namespace lacuna {

struct AttendMaps {
  TensorMap q, k, v, o;
};
static_assert(sizeof(AttendMaps) == 512, "the host writes this layout");

}  // namespace lacuna

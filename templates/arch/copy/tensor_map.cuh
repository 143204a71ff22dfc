// What the copy engine is told (arch/copy/tma.cuh): tensors, and boxes of them. Every map is of
// five dimensions, innermost first: 64 elements, tokens, panels of 64 elements, heads, batch.
#pragma once

namespace lacuna {

/// What the driver's cuTensorMapEncodeTiled makes of a tensor.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

/// Where a box begins; out of bounds it is read as zeros and not written.
struct BoxOrigin {
  int token, panel, head, batch;
  int element = 0;  ///< of a panel; of rows that are no whole panels, of the row: panel is 0 then
};

/// A hint for lines that are read once (first to go) or by many blocks (last to go).
enum class L2Policy { kKeepFirst, kKeepLast };

}  // namespace lacuna

// The kinds and sources of the members of an argument block, which kernels and launches both name.
#pragma once

#include <cstdint>

namespace lacuna {

/// Tensors of a launch, in the order of the C ABI.
enum class TensorRole : std::uint8_t {
  kQ,
  kK,
  kV,
  kO,
  kLse,
  kCounts,
  kTileMask,
  kListIndices,
  kListCounts,
  kPreviousLse,  ///< f32 [n_b, n_h, n_q], natural log: row LSE of an earlier call
  kOrder,        ///< i32 [n]: token order[n] of the caller is token n of the computation
  // Of a batch of sequences:
  kQBegin,   ///< i32 [n_b + 1]: first query of each sequence, and the end of the last
  kLengths,  ///< i32 [n_b]: keys of each sequence
  kKBegin,   ///< i32 [n_b]: first key of each sequence
  kPages,    ///< i32 [n_b, max_pages]: pages of each sequence's keys and values, in order
  // Of k and v of e4m3, [entries, n_h_kv], where an entry is one of the batch or a page:
  kKScale,
  kVScale,
  // Of summaries of key tiles that stay from launch to launch:
  kKSummaries,    ///< f32 [slots, n_h_kv, tiles, elements of a summary]
  kSummarySlots,  ///< i32 [n_b]: the slot of each entry or sequence
  kSummarised     ///< i32 [n_b]: keys of each whose summaries are there
};
inline constexpr int kTensorRoleCount = 20;

enum class FieldKind : std::uint8_t {
  kPointer,
  kI64,
  kI32,
  kF32,
  kParam,      ///< lacuna::Param<T>, of up to three dimensions
  kWideParam,  ///< lacuna::Param<T, 4>
};

enum class FieldSource : std::uint8_t {
  kTensorData,    ///< index: TensorRole; null pointer where the caller passed nothing
  kTensorStride,  ///< index: TensorRole * 4 + dimension; elements
  kTensorExtent,  ///< index: TensorRole * 4 + dimension
  kValue,         ///< index into LaunchProgram::values
  kScaledValue,   ///< the same, times `constant`: an i64
  kConstant,      ///< `constant`
  kParam,         ///< index into Program::params
  kWorkspace,     ///< index into LaunchProgram::slots; where the slot begins
  kKeptStride,    ///< of sequences: bytes from the kept bits of one to those of the next
  kSoftmaxScale,  ///< that of the launch, `constant` where it has none
};

/// Sizes and offsets in the workspace count this many bytes, so that 32 bits hold them.
inline constexpr int kWorkspaceUnitBytes = 256;

/// Where in the workspace a slot lies. Slots of a region have offsets of their own, from 0 on.
enum class SlotRegion : std::uint8_t {
  kShared,  ///< in front, where every branch finds it: handed on from branch to branch
  kBatch,   ///< behind that: one of all sequences together
  kOwn,     ///< last; where each sequence has a piece, one behind the other, a slot of each piece
};

/// The parts of the argument block that not every program has.
struct BlockParts {
  bool wgmma = false;  ///< maps and schedule
  bool split = false;
  bool sequences = false;
  bool predict = false;
  bool kv_scales = false;
  bool branch = false;     ///< of several
  bool pairs = false;      ///< of tiles whose pairs are asked
  bool summaries = false;  ///< of key tiles, that may stay from launch to launch
};

}  // namespace lacuna

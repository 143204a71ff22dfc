// The argument block of a launch: the bytes that all its kernels take, laid out by
// LaunchProgram::fields.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/emit/launch_program.hpp"
#include "runtime/base/arguments.hpp"

namespace lacuna {

/// Memory of a launch besides the caller's tensors.
struct LaunchMemory {
  void* workspace = nullptr;  ///< LaunchProgram::slots lie here, but for shared ones
  void* kept = nullptr;       ///< takes the place of the slot of kept bits; null: none given
  void* shared = nullptr;     ///< slots that branches share
  std::size_t pieces = 1;     ///< of the workspace: shared slots have rows of all of them together
};

/// Of the slots of a whole batch.
std::size_t batch_bytes(const LaunchProgram& program, const std::int32_t* values);
/// Where a slot of the program begins; null if it is empty.
void* slot_address(const LaunchProgram& program, std::size_t index, const LaunchMemory& memory,
                   const std::int32_t* values);

/// A report of the caller's that a launch fills with zeros: contiguous bytes.
struct ClearedReport {
  void* data;  ///< null: the caller does not want it
  std::size_t bytes;
};
ClearedReport cleared_report(const BoundLaunch& bound, TensorRole role);

/// Writes all `program.args_bytes` bytes. `values`: LaunchProgram::values for bound.shape. Slots
/// without a byte are null.
void fill_argument_block(const LaunchProgram& program, const BoundLaunch& bound,
                         const LaunchMemory& memory, const std::int32_t* values, std::byte* block);

/// The block of launches that are packed: `block`, which is filled, with LaunchProgram::packed.
void fill_packed_block(const LaunchProgram& program, const BoundLaunch& bound,
                       const LaunchMemory& memory, const std::int32_t* values,
                       const std::byte* block, std::byte* packed);

}  // namespace lacuna

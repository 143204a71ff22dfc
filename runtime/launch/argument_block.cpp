#include "runtime/launch/argument_block.hpp"

#include <algorithm>
#include <cstring>

#include "compiler/emit/block_layout.hpp"

namespace lacuna {
namespace {

template <class T>
void store(std::byte* block, const ArgField& field, T value) {
  std::memcpy(block + field.offset, &value, sizeof(value));
}

/// lacuna::Param<T, kRank> of templates/args/expr.cuh.
template <int kRank>
struct ParamArgument {
  const void* data;
  Scalar value;
  std::int32_t extent[kRank];
  std::int64_t stride[kRank];
};
static_assert(sizeof(ParamArgument<3>) == kParamBytes);
static_assert(sizeof(ParamArgument<4>) == kWideParamBytes);

template <int kRank>
ParamArgument<kRank> param_argument(const ParamView& view) {
  ParamArgument<kRank> argument{};
  argument.data = view.data;
  argument.value = view.value;
  std::copy_n(view.extent, kRank, argument.extent);
  std::copy_n(view.stride, kRank, argument.stride);
  return argument;
}

/// From the kept bits of a sequence to those of the next, in pieces of the workspace or in the
/// caller's selection.
std::int64_t kept_stride(const LaunchProgram& program, const LaunchMemory& memory,
                         const std::int32_t* values) {
  const int value = memory.kept == nullptr
                        ? program.workspace_value
                        : program.slots[static_cast<std::size_t>(program.kept_slot)].size;
  return std::int64_t{values[value]} * kWorkspaceUnitBytes;
}

/// An integer of the launch that a field asks for.
std::int64_t integer_of(const LaunchProgram& program, const ArgField& field,
                        const BoundLaunch& bound, const LaunchMemory& memory,
                        const std::int32_t* values) {
  const auto index = static_cast<std::size_t>(field.index);
  switch (field.source) {
    case FieldSource::kTensorStride:
      return bound.tensors[index / kMaxRank].stride[index % kMaxRank];
    case FieldSource::kTensorExtent:
      return bound.tensors[index / kMaxRank].extent[index % kMaxRank];
    case FieldSource::kValue:
      return values[index];
    case FieldSource::kScaledValue:
      return values[index] * static_cast<std::int64_t>(field.constant);
    case FieldSource::kKeptStride:
      return kept_stride(program, memory, values);
    case FieldSource::kConstant:
    case FieldSource::kTensorData:
    case FieldSource::kParam:
    case FieldSource::kWorkspace:
    case FieldSource::kSoftmaxScale:
      break;
  }
  return static_cast<std::int64_t>(field.constant);
}

}  // namespace

std::size_t batch_bytes(const LaunchProgram& program, const std::int32_t* values) {
  if (program.batch_value < 0) return 0;
  return static_cast<std::size_t>(values[program.batch_value]) * kWorkspaceUnitBytes;
}

void* slot_address(const LaunchProgram& program, std::size_t index, const LaunchMemory& memory,
                   const std::int32_t* values) {
  if (static_cast<int>(index) == program.kept_slot && memory.kept != nullptr) return memory.kept;
  const WorkspaceSlot& slot = program.slots[index];
  if (values[slot.size] == 0) return nullptr;
  const std::size_t offset = static_cast<std::size_t>(values[slot.offset]) * kWorkspaceUnitBytes;
  std::byte* const own = static_cast<std::byte*>(memory.workspace);
  switch (slot.region) {
    case SlotRegion::kShared:
      return static_cast<std::byte*>(memory.shared) + memory.pieces * offset;
    case SlotRegion::kBatch:
      return own + offset;
    case SlotRegion::kOwn:
      break;
  }
  return own + batch_bytes(program, values) + offset;
}

ClearedReport cleared_report(const BoundLaunch& bound, TensorRole role) {
  const BoundTensor& report = bound[role];
  std::size_t bytes = role == TensorRole::kCounts ? sizeof(std::int32_t) : sizeof(std::uint8_t);
  for (const std::int64_t extent : report.extent) bytes *= static_cast<std::size_t>(extent);
  return {report.data, bytes};
}

namespace {

void store_fields(const LaunchProgram& program, const std::vector<ArgField>& fields,
                  const BoundLaunch& bound, const LaunchMemory& memory, const std::int32_t* values,
                  std::byte* block) {
  for (const ArgField& field : fields) {
    const auto index = static_cast<std::size_t>(field.index);
    switch (field.kind) {
      case FieldKind::kPointer:
        store(block, field,
              field.source == FieldSource::kWorkspace ? slot_address(program, index, memory, values)
                                                      : bound.tensors[index].data);
        break;
      case FieldKind::kI64:
        store(block, field, integer_of(program, field, bound, memory, values));
        break;
      case FieldKind::kI32:
        store(block, field,
              static_cast<std::int32_t>(integer_of(program, field, bound, memory, values)));
        break;
      case FieldKind::kF32:
        store(block, field,
              field.source == FieldSource::kSoftmaxScale && bound.softmax_scale > 0
                  ? bound.softmax_scale
                  : static_cast<float>(field.constant));
        break;
      case FieldKind::kParam:
        store(block, field, param_argument<3>(bound.params[index]));
        break;
      case FieldKind::kWideParam:
        store(block, field, param_argument<4>(bound.params[index]));
        break;
    }
  }
}

}  // namespace

void fill_argument_block(const LaunchProgram& program, const BoundLaunch& bound,
                         const LaunchMemory& memory, const std::int32_t* values, std::byte* block) {
  std::memset(block, 0, program.args_bytes);
  store_fields(program, program.fields, bound, memory, values, block);
}

void fill_packed_block(const LaunchProgram& program, const BoundLaunch& bound,
                       const LaunchMemory& memory, const std::int32_t* values,
                       const std::byte* block, std::byte* packed) {
  std::memcpy(packed, block, program.args_bytes);
  store_fields(program, program.packed.fields, bound, memory, values, packed);
}

}  // namespace lacuna

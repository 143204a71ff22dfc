#include "compiler/emit/block_layout.hpp"

#include <algorithm>

namespace lacuna {
namespace {

constexpr std::uint32_t kAlignment = 8;      ///< of the structs, and of parameters
constexpr std::uint32_t kMapAlignment = 64;  ///< of tensor maps, and so of a block with them
constexpr std::uint32_t kScheduleBytes = 64;

constexpr BlockMap kMaps[] = {
    {"q", TensorRole::kQ}, {"k", TensorRole::kK}, {"v", TensorRole::kV}, {"o", TensorRole::kO}};

constexpr BlockMember kScheduleMembers[] = {
    {"next_row", FieldKind::kPointer, FieldSource::kWorkspace},
    {"head_group", FieldKind::kI32, FieldSource::kValue},
};

constexpr BlockMember kSplitMembers[] = {
    {"partial_o", FieldKind::kPointer, FieldSource::kWorkspace},
    {"partial_lse", FieldKind::kPointer, FieldSource::kWorkspace},
};

constexpr BlockMember kBranchMembers[] = {
    {"sum_o", FieldKind::kPointer, FieldSource::kWorkspace},
    {"sum_lse", FieldKind::kPointer, FieldSource::kWorkspace},
};

constexpr BlockMember kPairMembers[] = {
    {"tile_classes", FieldKind::kPointer, FieldSource::kWorkspace},
};

constexpr BlockMember kSummaryMembers[] = {
    {"kept_summaries", FieldKind::kPointer, FieldSource::kTensorData,
     static_cast<int>(TensorRole::kKSummaries)},
    {"summary_slots", FieldKind::kPointer, FieldSource::kTensorData,
     static_cast<int>(TensorRole::kSummarySlots)},
    {"summarised", FieldKind::kPointer, FieldSource::kTensorData,
     static_cast<int>(TensorRole::kSummarised)},
    {"summary_tiles", FieldKind::kI32, FieldSource::kTensorExtent,
     tensor_dimension(TensorRole::kKSummaries, 2)},
};

constexpr BlockMember kSequenceMembers[] = {
    {"q_begin", FieldKind::kPointer, FieldSource::kTensorData,
     static_cast<int>(TensorRole::kQBegin)},
    {"lengths", FieldKind::kPointer, FieldSource::kTensorData,
     static_cast<int>(TensorRole::kLengths)},
    {"k_begin", FieldKind::kPointer, FieldSource::kTensorData,
     static_cast<int>(TensorRole::kKBegin)},
    {"pages", FieldKind::kPointer, FieldSource::kTensorData, static_cast<int>(TensorRole::kPages)},
    {"pages_stride", FieldKind::kI64, FieldSource::kTensorStride,
     tensor_dimension(TensorRole::kPages, 0)},
    {"workspace_bytes", FieldKind::kI64, FieldSource::kScaledValue},
    {"page_tokens", FieldKind::kI32, FieldSource::kTensorExtent,
     tensor_dimension(TensorRole::kK, 2)},
    {"tile_q", FieldKind::kI32, FieldSource::kValue},
    {"tile_k", FieldKind::kI32, FieldSource::kValue},
    {"keep_q", FieldKind::kI32, FieldSource::kValue},
    {"keep_k", FieldKind::kI32, FieldSource::kValue},
    // Without values: 0 until a kernel knows its sequence.
    {"entry", FieldKind::kI32, FieldSource::kValue},
    {"most_q_tiles", FieldKind::kI32, FieldSource::kValue},
    {"most_k_tiles", FieldKind::kI32, FieldSource::kValue},
};

constexpr BlockMember kBatchScheduleMembers[] = {
    {"sequences", FieldKind::kPointer, FieldSource::kWorkspace},
    {"first_items", FieldKind::kPointer, FieldSource::kWorkspace},
    {"maps", FieldKind::kPointer, FieldSource::kWorkspace},
    {"partial_o", FieldKind::kPointer, FieldSource::kWorkspace},
    {"partial_lse", FieldKind::kPointer, FieldSource::kWorkspace},
    {"arrivals", FieldKind::kPointer, FieldSource::kWorkspace},
    {"group_queries", FieldKind::kI32, FieldSource::kValue},
    {"group_inverse", FieldKind::kI32, FieldSource::kValue},
    {"partial_queries", FieldKind::kI32, FieldSource::kValue},
    {"partials", FieldKind::kI32, FieldSource::kValue},
    {"sm_count", FieldKind::kI32, FieldSource::kValue},
    {"value_places", FieldKind::kI32, FieldSource::kValue},
    {"value_places_inverse", FieldKind::kI32, FieldSource::kValue},
};

constexpr BlockMember kKvScaleMembers[] = {
    {"keys", FieldKind::kPointer, FieldSource::kTensorData, static_cast<int>(TensorRole::kKScale)},
    {"keys_stride_b", FieldKind::kI64, FieldSource::kTensorStride,
     tensor_dimension(TensorRole::kKScale, 0)},
    {"keys_stride_h", FieldKind::kI64, FieldSource::kTensorStride,
     tensor_dimension(TensorRole::kKScale, 1)},
    {"values", FieldKind::kPointer, FieldSource::kTensorData,
     static_cast<int>(TensorRole::kVScale)},
    {"values_stride_b", FieldKind::kI64, FieldSource::kTensorStride,
     tensor_dimension(TensorRole::kVScale, 0)},
    {"values_stride_h", FieldKind::kI64, FieldSource::kTensorStride,
     tensor_dimension(TensorRole::kVScale, 1)},
};

std::uint32_t round_up(std::uint32_t offset, std::uint32_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

std::span<const BlockMap> attend_maps() { return kMaps; }
std::span<const BlockMember> schedule_members() { return kScheduleMembers; }
std::span<const BlockMember> split_members() { return kSplitMembers; }
std::span<const BlockMember> branch_members() { return kBranchMembers; }
std::span<const BlockMember> pair_members() { return kPairMembers; }
std::span<const BlockMember> summary_members() { return kSummaryMembers; }
std::span<const BlockMember> sequence_members() { return kSequenceMembers; }
std::span<const BlockMember> kv_scale_members() { return kKvScaleMembers; }
std::span<const BlockMember> batch_schedule_members() { return kBatchScheduleMembers; }

std::uint32_t field_bytes(FieldKind kind) {
  switch (kind) {
    case FieldKind::kPointer:
    case FieldKind::kI64:
      return 8;
    case FieldKind::kI32:
    case FieldKind::kF32:
      return 4;
    case FieldKind::kParam:
      return kParamBytes;
    case FieldKind::kWideParam:
      return kWideParamBytes;
  }
  return 0;
}

FieldKind param_kind(const ParamSymbol& symbol) {
  return symbol.shape.size() > 3 ? FieldKind::kWideParam : FieldKind::kParam;
}

std::vector<ArgField> lay_out(std::span<const BlockMember> members, std::uint32_t begin) {
  std::vector<ArgField> fields;
  std::uint32_t offset = begin;
  for (const BlockMember& member : members) {
    // C++ layout: a member begins at a multiple of its size.
    offset = round_up(offset, std::min(field_bytes(member.kind), kAlignment));
    fields.push_back({member.name, offset, member.kind, member.source, member.index, 0});
    offset += field_bytes(member.kind);
  }
  return fields;
}

std::uint32_t block_bytes(std::span<const BlockMember> members) {
  const ArgField last = lay_out(members, 0).back();
  return round_up(last.offset + field_bytes(last.kind), kAlignment);
}

std::uint32_t schedule_offset() {
  return kTensorMapBytes * static_cast<std::uint32_t>(std::size(kMaps));
}

std::uint32_t attend_offset(BlockParts parts) {
  return parts.wgmma ? schedule_offset() + kScheduleBytes : 0;
}

std::uint32_t split_offset(BlockParts parts) {
  return attend_offset(parts) + block_bytes(attend_members());
}

std::uint32_t sequence_offset(BlockParts parts) {
  return split_offset(parts) + (parts.split ? block_bytes(split_members()) : 0);
}

std::uint32_t batch_schedule_offset(BlockParts parts) {
  return sequence_offset(parts) + (parts.sequences ? block_bytes(sequence_members()) : 0);
}

std::uint32_t predict_offset(BlockParts parts) {
  const bool has_schedule = parts.sequences && parts.wgmma;
  return batch_schedule_offset(parts) + (has_schedule ? block_bytes(batch_schedule_members()) : 0);
}

std::uint32_t kv_scale_offset(BlockParts parts) {
  return predict_offset(parts) + (parts.predict ? block_bytes(predict_members()) : 0);
}

std::uint32_t branch_offset(BlockParts parts) {
  return kv_scale_offset(parts) + (parts.kv_scales ? block_bytes(kv_scale_members()) : 0);
}

std::uint32_t pair_offset(BlockParts parts) {
  return branch_offset(parts) + (parts.branch ? block_bytes(branch_members()) : 0);
}

std::uint32_t summary_offset(BlockParts parts) {
  return pair_offset(parts) + (parts.pairs ? block_bytes(pair_members()) : 0);
}

std::uint32_t params_offset(BlockParts parts) {
  return summary_offset(parts) + (parts.summaries ? block_bytes(summary_members()) : 0);
}

std::uint32_t args_bytes(const Program& program, BlockParts parts) {
  std::uint32_t end = params_offset(parts);
  for (const ParamSpec& param : program.params) end += field_bytes(param_kind(param.symbol));
  return round_up(end, parts.wgmma ? kMapAlignment : kAlignment);
}

std::uint32_t offset_in(std::span<const BlockMember> members, std::string_view name) {
  const std::vector<ArgField> fields = lay_out(members, 0);
  return std::ranges::find(fields, name, &ArgField::name)->offset;
}

}  // namespace lacuna

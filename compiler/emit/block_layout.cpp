#include "compiler/emit/block_layout.hpp"

#include <algorithm>

namespace lacuna {
namespace {

constexpr std::uint32_t kAlignment = 8;  ///< of the structs, and of parameters

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
  }
  return 0;
}

std::uint32_t round_up(std::uint32_t offset, std::uint32_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

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

std::uint32_t args_bytes(const Program& program, bool has_stages) {
  return block_bytes(attend_members()) + (has_stages ? block_bytes(predict_members()) : 0) +
         kParamBytes * static_cast<std::uint32_t>(program.params.size());
}

std::uint32_t offset_in(std::span<const BlockMember> members, std::string_view name) {
  const std::vector<ArgField> fields = lay_out(members, 0);
  return std::ranges::find(fields, name, &ArgField::name)->offset;
}

}  // namespace lacuna

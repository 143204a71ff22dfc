#include "compiler/emit/attend_block.hpp"

namespace lacuna {
namespace {

struct Member {
  const char* name;
  FieldKind kind;
  FieldSource source;
  int index;
};

constexpr int role(TensorRole r) { return static_cast<int>(r); }
constexpr int dimension(TensorRole r, int d) { return role(r) * 4 + d; }
constexpr int value(AttendValue v) { return static_cast<int>(v); }

using enum TensorRole;
using Kind = FieldKind;
using Source = FieldSource;

/// lacuna::AttendArgs, member by member; the scale is a constant of the program.
constexpr Member kMembers[] = {
    {"q.data", Kind::kPointer, Source::kTensorData, role(kQ)},
    {"q.stride_b", Kind::kI64, Source::kTensorStride, dimension(kQ, 0)},
    {"q.stride_h", Kind::kI64, Source::kTensorStride, dimension(kQ, 1)},
    {"q.stride_n", Kind::kI64, Source::kTensorStride, dimension(kQ, 2)},
    {"k.data", Kind::kPointer, Source::kTensorData, role(kK)},
    {"k.stride_b", Kind::kI64, Source::kTensorStride, dimension(kK, 0)},
    {"k.stride_h", Kind::kI64, Source::kTensorStride, dimension(kK, 1)},
    {"k.stride_n", Kind::kI64, Source::kTensorStride, dimension(kK, 2)},
    {"v.data", Kind::kPointer, Source::kTensorData, role(kV)},
    {"v.stride_b", Kind::kI64, Source::kTensorStride, dimension(kV, 0)},
    {"v.stride_h", Kind::kI64, Source::kTensorStride, dimension(kV, 1)},
    {"v.stride_n", Kind::kI64, Source::kTensorStride, dimension(kV, 2)},
    {"o.data", Kind::kPointer, Source::kTensorData, role(kO)},
    {"o.stride_b", Kind::kI64, Source::kTensorStride, dimension(kO, 0)},
    {"o.stride_h", Kind::kI64, Source::kTensorStride, dimension(kO, 1)},
    {"o.stride_n", Kind::kI64, Source::kTensorStride, dimension(kO, 2)},
    {"lse.data", Kind::kPointer, Source::kTensorData, role(kLse)},
    {"lse.stride_b", Kind::kI64, Source::kTensorStride, dimension(kLse, 0)},
    {"lse.stride_h", Kind::kI64, Source::kTensorStride, dimension(kLse, 1)},
    {"counts", Kind::kPointer, Source::kTensorData, role(kCounts)},
    {"tile_mask", Kind::kPointer, Source::kTensorData, role(kTileMask)},
    {"list_indices", Kind::kPointer, Source::kTensorData, role(kListIndices)},
    {"list_counts", Kind::kPointer, Source::kTensorData, role(kListCounts)},
    {"n_b", Kind::kI32, Source::kTensorExtent, dimension(kQ, 0)},
    {"n_h", Kind::kI32, Source::kTensorExtent, dimension(kQ, 1)},
    {"heads_per_kv", Kind::kI32, Source::kValue, value(AttendValue::kHeadsPerKv)},
    {"n_q", Kind::kI32, Source::kTensorExtent, dimension(kQ, 2)},
    {"n_k", Kind::kI32, Source::kTensorExtent, dimension(kK, 2)},
    {"q_tiles", Kind::kI32, Source::kValue, value(AttendValue::kQTiles)},
    {"k_tiles", Kind::kI32, Source::kValue, value(AttendValue::kKTiles)},
    {"list_capacity", Kind::kI32, Source::kTensorExtent, dimension(kListIndices, 3)},
    {"scale", Kind::kF32, Source::kConstant, 0},
};

constexpr std::uint32_t field_bytes(Kind kind) {
  switch (kind) {
    case Kind::kPointer:
    case Kind::kI64:
      return 8;
    case Kind::kI32:
    case Kind::kF32:
      return 4;
    case Kind::kParam:
      return kParamBytes;
  }
  return 0;
}

/// C++ layout: a field begins at a multiple of its size (parameters: of 8).
constexpr std::uint32_t place(std::uint32_t offset, Kind kind) {
  const std::uint32_t alignment = kind == Kind::kParam ? 8 : field_bytes(kind);
  return (offset + alignment - 1) / alignment * alignment;
}

constexpr std::uint32_t args_bytes() {
  std::uint32_t offset = 0;
  for (const Member& member : kMembers)
    offset = place(offset, member.kind) + field_bytes(member.kind);
  return place(offset, Kind::kI64);
}

}  // namespace

std::uint32_t attend_args_bytes() { return args_bytes(); }

std::uint32_t attend_block_bytes(const Program& program) {
  return args_bytes() + kParamBytes * static_cast<std::uint32_t>(program.params.size());
}

std::vector<ArgField> attend_block(const Program& program) {
  std::vector<ArgField> fields;
  std::uint32_t offset = 0;
  for (const Member& member : kMembers) {
    offset = place(offset, member.kind);
    const double constant =
        member.source == Source::kConstant ? static_cast<double>(attend_of(program).scale) : 0;
    fields.push_back({member.name, offset, member.kind, member.source, member.index, constant});
    offset += field_bytes(member.kind);
  }
  offset = args_bytes();
  for (std::size_t p = 0; p < program.params.size(); ++p, offset += kParamBytes) {
    fields.push_back({"param_" + program.params[p].symbol.name, offset, Kind::kParam,
                      Source::kParam, static_cast<int>(p), 0});
  }
  return fields;
}

}  // namespace lacuna

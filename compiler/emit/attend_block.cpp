// lacuna::AttendArgs of templates/args/attend_args.cuh, member by member.
#include "compiler/emit/block_layout.hpp"

namespace lacuna {
namespace {

using Kind = FieldKind;
using Source = FieldSource;
using enum TensorRole;

constexpr int role(TensorRole r) { return static_cast<int>(r); }
constexpr int dimension(TensorRole r, int d) { return tensor_dimension(r, d); }

constexpr BlockMember kMembers[] = {
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
    {"row_order", Kind::kPointer, Source::kWorkspace},
    {"n_b", Kind::kI32, Source::kTensorExtent, dimension(kQ, 0)},
    {"n_h", Kind::kI32, Source::kTensorExtent, dimension(kQ, 1)},
    {"heads_per_kv", Kind::kI32, Source::kValue},
    {"n_q", Kind::kI32, Source::kTensorExtent, dimension(kQ, 2)},
    {"n_k", Kind::kI32, Source::kTensorExtent, dimension(kK, 2)},
    {"q_tiles", Kind::kI32, Source::kValue},
    {"k_tiles", Kind::kI32, Source::kValue},
    {"list_capacity", Kind::kI32, Source::kTensorExtent, dimension(kListIndices, 3)},
    {"scale", Kind::kF32, Source::kSoftmaxScale},
};

}  // namespace

std::span<const BlockMember> attend_members() { return kMembers; }

}  // namespace lacuna

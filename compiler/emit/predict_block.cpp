// lacuna::PredictArgs of templates/args/predict_args.cuh, member by member.
#include "compiler/emit/block_layout.hpp"

namespace lacuna {
namespace {

using Kind = FieldKind;
using Source = FieldSource;
using enum TensorRole;

constexpr int role(TensorRole r) { return static_cast<int>(r); }
constexpr int dimension(TensorRole r, int d) { return tensor_dimension(r, d); }
constexpr BlockMember slot(const char* name) { return {name, Kind::kPointer, Source::kWorkspace}; }
constexpr BlockMember size(const char* name) { return {name, Kind::kI32, Source::kValue}; }

constexpr BlockMember kMembers[] = {
    {"caller_q.data", Kind::kPointer, Source::kTensorData, role(kQ)},
    {"caller_q.stride_b", Kind::kI64, Source::kTensorStride, dimension(kQ, 0)},
    {"caller_q.stride_h", Kind::kI64, Source::kTensorStride, dimension(kQ, 1)},
    {"caller_q.stride_n", Kind::kI64, Source::kTensorStride, dimension(kQ, 2)},
    {"caller_k.data", Kind::kPointer, Source::kTensorData, role(kK)},
    {"caller_k.stride_b", Kind::kI64, Source::kTensorStride, dimension(kK, 0)},
    {"caller_k.stride_h", Kind::kI64, Source::kTensorStride, dimension(kK, 1)},
    {"caller_k.stride_n", Kind::kI64, Source::kTensorStride, dimension(kK, 2)},
    {"caller_v.data", Kind::kPointer, Source::kTensorData, role(kV)},
    {"caller_v.stride_b", Kind::kI64, Source::kTensorStride, dimension(kV, 0)},
    {"caller_v.stride_h", Kind::kI64, Source::kTensorStride, dimension(kV, 1)},
    {"caller_v.stride_n", Kind::kI64, Source::kTensorStride, dimension(kV, 2)},
    {"caller_o.data", Kind::kPointer, Source::kTensorData, role(kO)},
    {"caller_o.stride_b", Kind::kI64, Source::kTensorStride, dimension(kO, 0)},
    {"caller_o.stride_h", Kind::kI64, Source::kTensorStride, dimension(kO, 1)},
    {"caller_o.stride_n", Kind::kI64, Source::kTensorStride, dimension(kO, 2)},
    {"caller_lse.data", Kind::kPointer, Source::kTensorData, role(kLse)},
    {"caller_lse.stride_b", Kind::kI64, Source::kTensorStride, dimension(kLse, 0)},
    {"caller_lse.stride_h", Kind::kI64, Source::kTensorStride, dimension(kLse, 1)},
    {"order", Kind::kPointer, Source::kTensorData, role(kOrder)},
    {"previous_lse.data", Kind::kPointer, Source::kTensorData, role(kPreviousLse)},
    {"previous_lse.stride_b", Kind::kI64, Source::kTensorStride, dimension(kPreviousLse, 0)},
    {"previous_lse.stride_h", Kind::kI64, Source::kTensorStride, dimension(kPreviousLse, 1)},
    slot("partial"),
    slot("q_mean"),
    slot("k_mean"),
    slot("v_scale"),
    slot("q_summary"),
    slot("k_summary"),
    slot("q_similarity"),
    slot("k_similarity"),
    slot("q_cells"),
    slot("k_cells"),
    slot("q_values"),
    slot("k_values"),
    slot("q_scale"),
    slot("k_scale"),
    slot("estimate_q_values"),
    slot("estimate_k_values"),
    slot("estimate_q_scale"),
    slot("estimate_k_scale"),
    slot("v_values"),
    slot("row_bias"),
    slot("column_bias"),
    slot("scores"),
    slot("row_scores"),
    slot("row_bins"),
    slot("row_sums"),
    slot("row_weights"),
    slot("next_estimate"),
    slot("kept_before"),
    slot("kept"),
    slot("row_order"),
    slot("gathered"),
    {"kept_stride", Kind::kI64, Source::kKeptStride},
    size("q_padded"),
    size("k_padded"),
    size("keep_q_tiles"),
    size("keep_k_tiles"),
    size("keep_words"),
    size("q_groups"),
    size("k_groups"),
    size("estimate_q_groups"),
    size("estimate_k_groups"),
    size("softmax_blocks"),
};

}  // namespace

std::span<const BlockMember> predict_members() { return kMembers; }

}  // namespace lacuna

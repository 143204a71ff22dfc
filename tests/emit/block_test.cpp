// The tables of the argument block against the device's own structs, which are plain C++.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>

#include "compiler/emit/block_layout.hpp"
#include "tests/emit/plans.hpp"
#include "tests/ir/programs.hpp"

#define __host__
#define __device__
#include "args/predict_args.cuh"
#include "args/split_args.cuh"

namespace lacuna {
namespace {

#define MEMBER(type, name) \
  { #name, offsetof(type, name) }

const std::map<std::string, std::size_t> kAttendOffsets = {
    MEMBER(AttendArgs, q.data),       MEMBER(AttendArgs, q.stride_b),
    MEMBER(AttendArgs, q.stride_h),   MEMBER(AttendArgs, q.stride_n),
    MEMBER(AttendArgs, k.data),       MEMBER(AttendArgs, k.stride_b),
    MEMBER(AttendArgs, k.stride_h),   MEMBER(AttendArgs, k.stride_n),
    MEMBER(AttendArgs, v.data),       MEMBER(AttendArgs, v.stride_b),
    MEMBER(AttendArgs, v.stride_h),   MEMBER(AttendArgs, v.stride_n),
    MEMBER(AttendArgs, o.data),       MEMBER(AttendArgs, o.stride_b),
    MEMBER(AttendArgs, o.stride_h),   MEMBER(AttendArgs, o.stride_n),
    MEMBER(AttendArgs, lse.data),     MEMBER(AttendArgs, lse.stride_b),
    MEMBER(AttendArgs, lse.stride_h), MEMBER(AttendArgs, counts),
    MEMBER(AttendArgs, tile_mask),    MEMBER(AttendArgs, list_indices),
    MEMBER(AttendArgs, list_counts),  MEMBER(AttendArgs, row_order),
    MEMBER(AttendArgs, n_b),          MEMBER(AttendArgs, n_h),
    MEMBER(AttendArgs, heads_per_kv), MEMBER(AttendArgs, n_q),
    MEMBER(AttendArgs, n_k),          MEMBER(AttendArgs, q_tiles),
    MEMBER(AttendArgs, k_tiles),      MEMBER(AttendArgs, list_capacity),
    MEMBER(AttendArgs, scale),
};

const std::map<std::string, std::size_t> kPredictOffsets = {
    MEMBER(PredictArgs, caller_q.data),
    MEMBER(PredictArgs, caller_q.stride_b),
    MEMBER(PredictArgs, caller_q.stride_h),
    MEMBER(PredictArgs, caller_q.stride_n),
    MEMBER(PredictArgs, caller_k.data),
    MEMBER(PredictArgs, caller_k.stride_b),
    MEMBER(PredictArgs, caller_k.stride_h),
    MEMBER(PredictArgs, caller_k.stride_n),
    MEMBER(PredictArgs, caller_v.data),
    MEMBER(PredictArgs, caller_v.stride_b),
    MEMBER(PredictArgs, caller_v.stride_h),
    MEMBER(PredictArgs, caller_v.stride_n),
    MEMBER(PredictArgs, caller_o.data),
    MEMBER(PredictArgs, caller_o.stride_b),
    MEMBER(PredictArgs, caller_o.stride_h),
    MEMBER(PredictArgs, caller_o.stride_n),
    MEMBER(PredictArgs, caller_lse.data),
    MEMBER(PredictArgs, caller_lse.stride_b),
    MEMBER(PredictArgs, caller_lse.stride_h),
    MEMBER(PredictArgs, order),
    MEMBER(PredictArgs, previous_lse.data),
    MEMBER(PredictArgs, previous_lse.stride_b),
    MEMBER(PredictArgs, previous_lse.stride_h),
    MEMBER(PredictArgs, partial),
    MEMBER(PredictArgs, q_mean),
    MEMBER(PredictArgs, k_mean),
    MEMBER(PredictArgs, v_scale),
    MEMBER(PredictArgs, q_summary),
    MEMBER(PredictArgs, k_summary),
    MEMBER(PredictArgs, q_similarity),
    MEMBER(PredictArgs, k_similarity),
    MEMBER(PredictArgs, q_cells),
    MEMBER(PredictArgs, k_cells),
    MEMBER(PredictArgs, q_values),
    MEMBER(PredictArgs, k_values),
    MEMBER(PredictArgs, q_scale),
    MEMBER(PredictArgs, k_scale),
    MEMBER(PredictArgs, estimate_q_values),
    MEMBER(PredictArgs, estimate_k_values),
    MEMBER(PredictArgs, estimate_q_scale),
    MEMBER(PredictArgs, estimate_k_scale),
    MEMBER(PredictArgs, v_values),
    MEMBER(PredictArgs, row_bias),
    MEMBER(PredictArgs, column_bias),
    MEMBER(PredictArgs, scores),
    MEMBER(PredictArgs, row_scores),
    MEMBER(PredictArgs, row_bins),
    MEMBER(PredictArgs, row_sums),
    MEMBER(PredictArgs, row_weights),
    MEMBER(PredictArgs, next_estimate),
    MEMBER(PredictArgs, kept_before),
    MEMBER(PredictArgs, kept),
    MEMBER(PredictArgs, row_order),
    MEMBER(PredictArgs, gathered),
    MEMBER(PredictArgs, kept_stride),
    MEMBER(PredictArgs, q_padded),
    MEMBER(PredictArgs, k_padded),
    MEMBER(PredictArgs, keep_q_tiles),
    MEMBER(PredictArgs, keep_k_tiles),
    MEMBER(PredictArgs, keep_words),
    MEMBER(PredictArgs, q_groups),
    MEMBER(PredictArgs, k_groups),
    MEMBER(PredictArgs, estimate_q_groups),
    MEMBER(PredictArgs, estimate_k_groups),
    MEMBER(PredictArgs, softmax_blocks),
};

const std::map<std::string, std::size_t> kSplitOffsets = {
    MEMBER(SplitArgs, partial_o),
    MEMBER(SplitArgs, partial_lse),
};

std::map<std::string, std::size_t> offsets(std::span<const BlockMember> members) {
  std::map<std::string, std::size_t> result;
  for (const ArgField& field : lay_out(members, 0)) result[field.name] = field.offset;
  return result;
}

TEST(Block, TheTablesAreTheStructsOfTheDevice) {
  EXPECT_EQ(offsets(attend_members()), kAttendOffsets);
  EXPECT_EQ(block_bytes(attend_members()), sizeof(AttendArgs));
  EXPECT_EQ(offsets(split_members()), kSplitOffsets);
  EXPECT_EQ(block_bytes(split_members()), sizeof(SplitArgs));
  EXPECT_EQ(offsets(predict_members()), kPredictOffsets);
  EXPECT_EQ(block_bytes(predict_members()), sizeof(PredictArgs));
}

TEST(Block, ParametersStandBehindTheStructs) {
  const Plan plain = plan_of_text(kGatedText);
  EXPECT_EQ(args_bytes(plain.program, {}), sizeof(AttendArgs) + 2 * kParamBytes);
  const LaunchProgram launch = emit_launch_program(plan_of_text(kPredictedText));
  EXPECT_EQ(launch.args_bytes, sizeof(AttendArgs) + sizeof(PredictArgs) + kParamBytes);
  EXPECT_EQ(launch.fields.back().name, "param_tau");
  EXPECT_EQ(launch.fields.back().offset, sizeof(AttendArgs) + sizeof(PredictArgs));
}

TEST(Block, MapsAndScheduleShiftEverythingAndRoundTheSizeUp) {
  const Plan plain = plan_of_text(kGatedText);
  EXPECT_EQ(schedule_offset(), 512U);
  EXPECT_EQ(attend_offset({.wgmma = true}), 576U);
  EXPECT_EQ(predict_offset({.wgmma = true}), 576 + sizeof(AttendArgs));
  EXPECT_EQ(split_offset({.split = true}), sizeof(AttendArgs));
  EXPECT_EQ(predict_offset({.split = true}), sizeof(AttendArgs) + sizeof(SplitArgs));
  EXPECT_EQ(params_offset({.wgmma = true, .predict = true}),
            576 + sizeof(AttendArgs) + sizeof(PredictArgs));
  EXPECT_EQ(args_bytes(plain.program, {.wgmma = true}) % 64, 0U) << "as alignas(64) does";
  EXPECT_GE(args_bytes(plain.program, {.wgmma = true}), 576 + sizeof(AttendArgs) + 2 * kParamBytes);
}

TEST(Block, FieldsAscendAndDoNotOverlap) {
  for (const char* text : {kGatedText, kPredictedText, kGatheredText}) {
    const LaunchProgram launch = emit_launch_program(plan_of_text(text));
    std::uint32_t end = 0;
    for (const ArgField& field : launch.fields) {
      EXPECT_GE(field.offset, end) << field.name;
      const bool narrow = field.kind == FieldKind::kI32 || field.kind == FieldKind::kF32;
      end = field.offset + (field.kind == FieldKind::kParam ? kParamBytes : narrow ? 4 : 8);
    }
    EXPECT_LE(end, launch.args_bytes);
  }
}

}  // namespace
}  // namespace lacuna

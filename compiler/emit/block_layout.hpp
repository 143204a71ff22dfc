// The argument block that all kernels of a spec share, as tables of its members:
//
//   struct Args {
//     AttendMaps maps;  AttendSchedule schedule;  // of the wgmma family
//     AttendArgs attend;
//     SplitArgs split;      // where work tiles are split
//     SequenceArgs sequences;  // of a batch of sequences
//     SequenceSchedule batch_schedule;  // the same, of the wgmma family
//     PredictArgs predict;  // where a program has ops besides attend
//     KvScaleArgs kv_scales;  // of keys and values of e4m3
//     BranchArgs branch;    // where a spec has branches
//     PairArgs pairs;       // where pairs of tiles are asked before attend
//     SummaryArgs summaries;  // where summaries of key tiles may stay
//     Param<...> param_x; ...
//   };
//
// From the tables follow the fields of the LaunchProgram and the static_asserts of the generated
// kernel, so host and device cannot drift apart unnoticed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "compiler/ir/program.hpp"

namespace lacuna {

inline constexpr std::uint32_t kParamBytes = 48;      ///< sizeof(lacuna::Param<T>)
inline constexpr std::uint32_t kWideParamBytes = 64;  ///< sizeof(lacuna::Param<T, 4>)

/// How a parameter lies in the block.
FieldKind param_kind(const ParamSymbol& symbol);

/// A member of a struct of templates/args/. Members whose source is a value or a slot of the
/// workspace are filled from the value or slot of the same name; without one they stay 0.
struct BlockMember {
  const char* name;
  FieldKind kind;
  FieldSource source;
  int index = 0;  ///< of tensor sources
};

/// Where a dimension of a tensor stands in ArgField::index.
constexpr int tensor_dimension(TensorRole role, int d) { return static_cast<int>(role) * 4 + d; }

/// The tensors of lacuna::AttendMaps, in their order.
struct BlockMap {
  const char*
      name;  ///< "q": where it lies and its strides are q.data, q.stride_b, ... of AttendArgs
  TensorRole role;
};
std::span<const BlockMap> attend_maps();
std::span<const BlockMember> schedule_members();        ///< lacuna::AttendSchedule
std::span<const BlockMember> attend_members();          ///< lacuna::AttendArgs
std::span<const BlockMember> split_members();           ///< lacuna::SplitArgs
std::span<const BlockMember> sequence_members();        ///< lacuna::SequenceArgs
std::span<const BlockMember> batch_schedule_members();  ///< lacuna::SequenceSchedule
std::span<const BlockMember> predict_members();         ///< lacuna::PredictArgs
std::span<const BlockMember> kv_scale_members();        ///< lacuna::KvScaleArgs
std::span<const BlockMember> branch_members();          ///< lacuna::BranchArgs
std::span<const BlockMember> pair_members();            ///< lacuna::PairArgs
std::span<const BlockMember> summary_members();         ///< lacuna::SummaryArgs

std::uint32_t field_bytes(FieldKind kind);

/// The members with their offsets; the first one lies at `begin`, a multiple of 8.
std::vector<ArgField> lay_out(std::span<const BlockMember> members, std::uint32_t begin);

/// sizeof the struct.
std::uint32_t block_bytes(std::span<const BlockMember> members);

std::uint32_t schedule_offset();
std::uint32_t attend_offset(BlockParts parts);
std::uint32_t split_offset(BlockParts parts);
std::uint32_t sequence_offset(BlockParts parts);
std::uint32_t batch_schedule_offset(BlockParts parts);
std::uint32_t predict_offset(BlockParts parts);
std::uint32_t kv_scale_offset(BlockParts parts);
std::uint32_t branch_offset(BlockParts parts);
std::uint32_t pair_offset(BlockParts parts);
std::uint32_t summary_offset(BlockParts parts);
std::uint32_t params_offset(BlockParts parts);
/// sizeof(Args) of a program.
std::uint32_t args_bytes(const Program& program, BlockParts parts);

/// Offset of a member from the beginning of its struct.
std::uint32_t offset_in(std::span<const BlockMember> members, std::string_view name);

}  // namespace lacuna

// The argument block of an attend kernel, as the host writes it: lacuna::AttendArgs of
// templates/kernel/attend_args.cuh, then one Param for each parameter of the spec.
//
// One table; from it follow the fields of the LaunchProgram and the static_asserts of the generated
// kernel, so host and device cannot drift apart unnoticed.
#pragma once

#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "compiler/ir/program.hpp"

namespace lacuna {

inline constexpr std::uint32_t kParamBytes = 48;  ///< sizeof(ParamView), sizeof(lacuna::Param<T>)

/// Values of every launch program of an attend; indices of LaunchProgram::values.
enum class AttendValue : std::uint8_t { kQTiles, kKTiles, kHeadsPerKv, kGrid };
inline constexpr int kAttendValueCount = 4;

/// Every field with its offset; names are members of AttendArgs, those of parameters
/// `param_<name>`.
std::vector<ArgField> attend_block(const Program& program);
std::uint32_t attend_block_bytes(const Program& program);

/// sizeof(lacuna::AttendArgs): where the parameters begin.
std::uint32_t attend_args_bytes();

}  // namespace lacuna

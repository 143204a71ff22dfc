// Which format of the emulation an element type has.
#pragma once

#include "base/types.cuh"

namespace lacuna {

template <class Element>
inline constexpr ::emulation::Format kFormat = ::emulation::Format::kBF16;
template <>
inline constexpr ::emulation::Format kFormat<f16> = ::emulation::Format::kF16;

}  // namespace lacuna

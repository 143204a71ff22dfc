// The tensor maps of an argument block: how the copy engine (TMA) of a GPU sees the launch's
// tensors. They follow from the addresses and strides that stand in the block already.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/emit/launch_program.hpp"
#include "runtime/base/arguments.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/map_cache.hpp"

namespace lacuna {

/// Encodes `maps`, of the program, into `block`, which fill_argument_block has filled and which is
/// aligned to 64 bytes; the driver wants a current context for it. Those that `cache` (null: none)
/// knows are taken from there, and new ones are kept there. A tensor without elements has no map:
/// its bytes stay 0. False with kTensorArgument, which names the tensor of `kernel` and what a map
/// asks of it. Allocates nothing unless there is an error.
bool encode_tensor_maps(const Driver& driver, const LaunchProgram& program,
                        std::span<const TensorMapFields> maps, const std::string& kernel,
                        const BoundLaunch& bound, MapCache* cache, std::byte* block,
                        Diagnostics& diagnostics);

}  // namespace lacuna

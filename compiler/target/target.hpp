// Architecture facts as data. Each number has its source in target.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

enum class TargetKind : unsigned char { kCuda, kCpu };

/// What the compiler has to know of an architecture. For the CPU all limits are 0: not limited.
struct Target {
  TargetKind kind = TargetKind::kCuda;
  std::string name;            ///< "sm_90a", "cpu"
  int compute_capability = 0;  ///< 90
  int smem_bytes_per_sm = 0;
  int smem_bytes_per_block = 0;  ///< most a block can ask for (opt-in)
  int smem_bytes_reserved = 0;   ///< by the system, for each block
  int registers_per_sm = 0;
  int registers_per_thread = 0;
  int threads_per_sm = 0;
  int threads_per_block = 0;
  int blocks_per_sm = 0;
  bool overlaps_kernels = false;   ///< the next kernel of a stream can start before one has ended
  bool has_e4m3_mma = false;       ///< mma.sync multiplies e4m3
  bool has_wgmma = false;          ///< asynchronous mma of a warpgroup, and TMA
  bool converts_e4m3_mma = false;  ///< ... by converting to f16 first, which takes registers
};

/// All known targets: cpu, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a.
const std::vector<Target>& all_targets();
std::optional<Target> find_target(std::string_view name);

/// The target for a device of this compute capability (90 -> sm_90a); nullopt if unknown.
std::optional<Target> target_for_compute_capability(int compute_capability);

}  // namespace lacuna

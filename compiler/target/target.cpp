// Facts of each architecture, as data.
//
// Source of all CUDA numbers: CUDA C++ Programming Guide 13.0, "Compute Capabilities", table
// "Technical Specifications per Compute Capability". Columns, in its words:
//   smem per SM        "Maximum amount of shared memory per multiprocessor"
//   smem per block     "Maximum amount of shared memory per thread block" (opt-in; the same table)
//   reserved           "Shared memory capacity", 8.x and newer: 1 KB of each block is the system's
//   registers per SM   "Number of 32-bit registers per multiprocessor"
//   registers/thread   "Maximum number of 32-bit registers per thread"
//   threads per SM     "Maximum number of resident threads per multiprocessor"
//   threads per block  "Maximum number of threads per block"
//   blocks per SM      "Maximum number of resident blocks per multiprocessor"
//
// e4m3 mma: PTX ISA 9.0, "Warp Level Matrix Multiply-Accumulate Instructions", mma, Target ISA
// Notes: "mma with .e4m3 and .e5m2 ... requires sm_89 or higher". (Integers of 8 bits: sm_80 or
// higher.) converted: seen in what ptxas 13.0 makes of it, F2FP conversions and HMMA instead of
// QMMA; sm_90a and sm_100a have e4m3 in their asynchronous mma only.
//
// Overlapping kernels: PTX ISA 9.0, "griddepcontrol", Target ISA Notes: "Requires sm_90 or higher."
//
// wgmma: PTX ISA 9.0, "wgmma.mma_async", Target ISA Notes: "Requires sm_90a", which is no subset of
// any later architecture.
#include "compiler/target/target.hpp"

namespace lacuna {
namespace {

constexpr int kKiB = 1024;
constexpr int kFirstCapabilityOfE4M3 = 89, kFirstCapabilityOfOverlap = 90;

std::vector<Target> make_targets() {
  const auto cuda = [](const char* name, int capability, int smem_kib_per_sm, int threads_per_sm,
                       int blocks_per_sm) {
    return Target{.kind = TargetKind::kCuda,
                  .name = name,
                  .compute_capability = capability,
                  .smem_bytes_per_sm = smem_kib_per_sm * kKiB,
                  .smem_bytes_per_block = (smem_kib_per_sm - 1) * kKiB,  // all but the reserved KB
                  .smem_bytes_reserved = kKiB,
                  .registers_per_sm = 64 * kKiB,
                  .registers_per_thread = 255,
                  .threads_per_sm = threads_per_sm,
                  .threads_per_block = 1024,
                  .blocks_per_sm = blocks_per_sm,
                  .overlaps_kernels = capability >= kFirstCapabilityOfOverlap,
                  .has_e4m3_mma = capability >= kFirstCapabilityOfE4M3};
  };
  const auto converting = [](Target target) {
    target.converts_e4m3_mma = true;
    return target;
  };
  const auto with_wgmma = [](Target target) {
    target.has_wgmma = true;
    return target;
  };
  return {
      Target{.kind = TargetKind::kCpu, .name = "cpu"},
      //    name       cc   smem KiB  threads  blocks
      cuda("sm_80", 80, 164, 2048, 32),                           // A100
      cuda("sm_86", 86, 100, 1536, 16),                           // A10, RTX 30
      cuda("sm_89", 89, 100, 1536, 24),                           // L4, L40, RTX 40
      with_wgmma(converting(cuda("sm_90a", 90, 228, 2048, 32))),  // H100, H200
      converting(cuda("sm_100a", 100, 228, 2048, 32)),            // B200
      cuda("sm_120a", 120, 100, 1536, 24),                        // RTX 50, RTX PRO
  };
}

}  // namespace

const std::vector<Target>& all_targets() {
  static const std::vector<Target> targets = make_targets();
  return targets;
}

std::optional<Target> find_target(std::string_view name) {
  for (const Target& target : all_targets()) {
    if (target.name == name) return target;
  }
  return std::nullopt;
}

std::optional<Target> target_for_compute_capability(int compute_capability) {
  for (const Target& target : all_targets()) {
    if (target.kind == TargetKind::kCuda && target.compute_capability == compute_capability) {
      return target;
    }
  }
  return std::nullopt;
}

}  // namespace lacuna

// Kernels of one launch that overlap at their ends (programmatic dependent launch, sm_90 and
// later): blocks of the next one start where there is room, and wait there until this one has
// ended.
#pragma once

namespace lacuna {

/// Before a kernel's first access to global memory: until the kernel before it has ended, and all
/// that it wrote can be read.
__device__ __forceinline__ void await_kernel_before() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Behind await_kernel_before, so that no more than two kernels are under way: once all blocks have
/// come here, or ended, those of the next kernel may start.
__device__ __forceinline__ void admit_kernel_after() {
  asm volatile("griddepcontrol.launch_dependents;");
}

}  // namespace lacuna

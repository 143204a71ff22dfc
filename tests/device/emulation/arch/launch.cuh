// Stand-in for templates/arch/launch.cuh: kernels run one after the other.
#pragma once

namespace lacuna {

inline void await_kernel_before() {}
inline void admit_kernel_after() {}

}  // namespace lacuna

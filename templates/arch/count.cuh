// Counting in two instructions, where the compiler makes three of them in a row.
#pragma once

namespace lacuna {

__device__ __forceinline__ void count_if_above(int& count, int x, int bound) {
  asm("{ .reg .pred above; setp.gt.s32 above, %1, %2; @above add.s32 %0, %0, 1; }"
      : "+r"(count)
      : "r"(x), "r"(bound));
}

}  // namespace lacuna

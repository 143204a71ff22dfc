// A single key of e4m3 codes in global memory: its elements, two at a time.
#pragma once

#include "base/ints.cuh"
#include "quantise/e4m3_rows.cuh"

namespace lacuna {

struct CodedKey {
  const unsigned char* codes = nullptr;
  float scale = 1.0f;
};

/// b = the numbers of two elements and of the two 8 on; zeros where there is no such key.
template <class Element>
__device__ __forceinline__ void read_pairs(u32 (&b)[2], const CodedKey& key, int element) {
  if (key.codes == nullptr) return;
  const unsigned char* pair = key.codes + element;
  b[0] = numbers_of_two<Element>(*reinterpret_cast<const unsigned short*>(pair), key.scale);
  b[1] = numbers_of_two<Element>(*reinterpret_cast<const unsigned short*>(pair + 8), key.scale);
}

template <class Key>
inline constexpr bool kIsCoded = false;
template <>
inline constexpr bool kIsCoded<CodedKey> = true;

}  // namespace lacuna

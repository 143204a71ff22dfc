// What printed expressions of a spec call: parameters with clamped indices, integer operators that
// C++ lacks, and f32 functions on the special function unit. Meaning: compiler/expr/operators.hpp.
#pragma once

#include "arch/approx.cuh"
#include "arch/read_or.cuh"
#include "base/constant.cuh"
#include "base/math.cuh"

namespace lacuna {

// A parameter of the spec as it lies in a kernel's arguments; ParamView on the host. kRank is 3 for
// all that have fewer dimensions.
template <class T, int kRank = 3>
struct Param {
  const T* data;  // null: `value` stands for every element, and strides are 0
  T value;
  int extent[kRank];
  long long stride[kRank];  // in elements
};
static_assert(sizeof(Param<float>) == 48 && sizeof(Param<float, 4>) == 64,
              "the host writes this layout");

// A parameter in arguments of which blocks make copies: for each sequence (pipeline/sequences.cuh),
// or for each work tile of a sequence (pipeline/work_tile_args.cuh).
template <class T, int kRank = 3>
struct CopiedParam : Param<T, kRank> {};

__device__ __forceinline__ int clamp_index(int index, int extent) {
  return max(min(index, extent - 1), 0);
}

template <class T, int kRank, class... Index>
__device__ __forceinline__ long long offset_at(const Param<T, kRank>& param, Index... index) {
  long long offset = 0;
  int dim = 0;
  ((offset += clamp_index(index, param.extent[dim]) * param.stride[dim], ++dim), ...);
  return offset;
}

template <class T, int kRank, class... Index>
__device__ __forceinline__ T at(const Param<T, kRank>& param, Index... index) {
  const long long offset = offset_at(param, index...);
  // The address is selected without a branch. A branch would be copied into every unrolled score,
  // and the compiler would not see that two reads are of one element.
  const T* first = param.data == nullptr ? &param.value : param.data;
  return first[offset];
}

// This does not take the address of `value`: an address in the copy would keep all of the copy in
// memory, instead of in registers.
template <class T, int kRank, class... Index>
__device__ __forceinline__ T at(const CopiedParam<T, kRank>& param, Index... index) {
  return read_or(param.data, offset_at(param, index...), param.value);
}

// Vectors of elements, counted by the last of kDims indices: do four neighbours of `length` lie
// side by side, on a multiple of 16 bytes? The same for all of them.
template <int kDims, int kRank>
__device__ __forceinline__ bool has_quads(const Param<float, kRank>& param, int length) {
  bool has = param.data != nullptr && reinterpret_cast<unsigned long long>(param.data) % 16 == 0 &&
             param.stride[kDims - 1] == 1 && param.extent[kDims - 1] >= length;
#pragma unroll
  for (int dim = 0; dim < kDims - 1; ++dim) has = has && param.stride[dim] % 4 == 0;
  return has;
}
/// Of an element of a parameter that has data.
template <int kRank, class... Index>
__device__ __forceinline__ const float* address_at(const Param<float, kRank>& param,
                                                   Index... index) {
  return param.data + offset_at(param, index...);
}

// The elements of a table along one of its indices: `first` is element 0, and `index` where a line
// begins, which may lie outside. Elements that follow each other do so in memory, or not at all.
struct TableLine {
  const float* first;
  int index, extent;
  bool is_dense;
};

/// The line through `index` along index kDim, which alone is not clamped.
template <int kDim, int kRank, class... Index>
__device__ __forceinline__ TableLine line_at(const Param<float, kRank>& param, Index... index) {
  long long offset = 0;
  int dim = 0, begin = 0;
  ((dim == kDim ? void(begin = index)
                : void(offset += clamp_index(index, param.extent[dim]) * param.stride[dim]),
    ++dim),
   ...);
  return {param.data + offset, begin, param.extent[kDim],
          param.data != nullptr && param.stride[kDim] == 1};
}

// Indices of an element, or what one token makes of them.
template <int kDims>
struct Indices {
  int at[kDims];
};

// Index arithmetic that is meant to leave 32 bits (hashes); plain operators would be undefined.
__device__ __forceinline__ int wrap_add(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
__device__ __forceinline__ int wrap_subtract(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) - static_cast<unsigned>(b));
}
__device__ __forceinline__ int wrap_multiply(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
}

// x * 2^n and x // 2^n, for n below 0 and above 32 as for 0 and 32.
__device__ __forceinline__ int shift_left(int x, int n) {
  return n >= 32 ? 0 : static_cast<int>(static_cast<unsigned>(x) << max(n, 0));
}
__device__ __forceinline__ int shift_right(int x, int n) { return x >> min(max(n, 0), 31); }

// Toward 0; what i32 cannot hold becomes its nearest, NaN 0.
__device__ __forceinline__ int to_i32(float x) { return __float2int_rz(x); }

// MurmurHash3_x86_32 (Appleby, public domain) of the four bytes of `word`.
__device__ __forceinline__ int hash(int seed, int word) {
  unsigned mixed = static_cast<unsigned>(word) * 0xcc9e2d51u;
  mixed = (mixed << 15 | mixed >> 17) * 0x1b873593u;
  unsigned bits = static_cast<unsigned>(seed) ^ mixed;
  bits = (bits << 13 | bits >> 19) * 5 + 0xe6546b64u;
  bits ^= 4;  // bytes of the word
  bits = (bits ^ bits >> 16) * 0x85ebca6bu;
  bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
  return static_cast<int>(bits ^ bits >> 16);
}

// Toward minus infinity, by a positive constant: a shift, or a multiplication on |a|.
template <int kDivisor>
__device__ __forceinline__ int floor_divide(int a) {
  static_assert(kDivisor > 0);
  if constexpr ((kDivisor & (kDivisor - 1)) == 0) {
    int shift = 0;
    while ((1 << shift) < kDivisor) ++shift;
    return a >> shift;
  } else {
    const int sign = a >> 31;  // ~a = -1 - a makes truncation round the right way
    return static_cast<int>(static_cast<unsigned>(a ^ sign) / unsigned(kDivisor)) ^ sign;
  }
}

template <int kDivisor>
__device__ __forceinline__ int modulo(int a) {
  if constexpr ((kDivisor & (kDivisor - 1)) == 0) return a & (kDivisor - 1);
  return a - floor_divide<kDivisor>(a) * kDivisor;
}

// a // 0 is 0 and INT_MIN // -1 wraps.
__device__ __forceinline__ int floor_divide(int a, int b) {
  if (b == 0) return 0;
  if (b == -1) return wrap_subtract(0, a);
  const int quotient = a / b;
  return quotient - (a - quotient * b != 0 && (a ^ b) < 0);
}

__device__ __forceinline__ int modulo(int a, int b) {
  return wrap_subtract(a, wrap_multiply(floor_divide(a, b), b));
}

// The multiple of b, which is at least 1, that is at a or before it. No branch: equal ones are
// worked out once.
__device__ __forceinline__ int round_down(int a, int b) {
  const int sign = a >> 31;
  const unsigned quotient = static_cast<unsigned>(a ^ sign) / static_cast<unsigned>(b);
  return wrap_multiply(static_cast<int>(quotient) ^ sign, b);
}

// What dividing by `value` takes: a reciprocal of its size and a shift, exact for all that is up to
// 2^31. Prepared once for many divisions, of which each would else be some forty instructions.
struct IntegerDivisor {
  int value;
  unsigned reciprocal;  // floor((2^(32 + shift) - 1) / |value|), 0 for 0
  int shift;            // 2^shift <= |value| < 2^(shift + 1)
};

__device__ __forceinline__ IntegerDivisor divisor_of(int d) {
  const unsigned size = d < 0 ? 0u - static_cast<unsigned>(d) : static_cast<unsigned>(d);
  const int zeros = __clz(static_cast<int>(size | 1u));
  const unsigned upper = (size | static_cast<unsigned>(size == 0)) << zeros;
  // 2^63 / upper to 20 bits, from below; a step of Newton's; and at last one by one.
  constexpr float kBelow = 9.2233720e18f * (1.0f - 1.0f / (1 << 20));
  unsigned guess = static_cast<unsigned>(reciprocal_approx(static_cast<float>(upper)) * kBelow);
  constexpr unsigned long long kAll = ~0ull >> 1;
  const unsigned long long missing = kAll - static_cast<unsigned long long>(guess) * upper;
  guess += __umulhi(static_cast<unsigned>(missing >> 19), guess) >> 12;
  unsigned long long rest = kAll - static_cast<unsigned long long>(guess) * upper;
#pragma unroll
  for (int n = 0; n < 3; ++n) {
    const bool is_short = rest >= upper;
    guess += is_short;
    rest -= is_short ? upper : 0u;
  }
  return {d, size == 0 ? 0u : guess, 31 - zeros};
}

// A negative quotient is ~((|a| - 1) // |b|), which rounds down. The reciprocal is
// rounded down, so it multiplies one more than the dividend.
__device__ __forceinline__ int floor_divide(int a, const IntegerDivisor& b) {
  const unsigned size = a < 0 ? 0u - static_cast<unsigned>(a) : static_cast<unsigned>(a);
  const int sign = ((a ^ b.value) & static_cast<int>(0u - size)) >> 31;
  const unsigned quotient =
      __umulhi(size + 1u + static_cast<unsigned>(sign), b.reciprocal) >> b.shift;
  return b.value == 0 ? 0 : static_cast<int>(quotient) ^ sign;
}

__device__ __forceinline__ int modulo(int a, const IntegerDivisor& b) {
  return wrap_subtract(a, wrap_multiply(floor_divide(a, b), b.value));
}

__device__ __forceinline__ int bit_length(int a) { return 32 - __clz(abs(a)); }

// a / c for a finite constant c that is no power of two: correctly rounded without the slow path
// of a division, whose range checks c does not need.
__device__ __forceinline__ float divide_by(float a, float c) {
  const float reciprocal = 1.0f / c;
  const float quotient = a * reciprocal;
  const float corrected = fmaf(fmaf(-quotient, c, a), reciprocal, quotient);
  return fabsf(quotient) < kInfinity ? corrected : quotient;
}

__device__ __forceinline__ float exp_approx(float x) { return exp2_approx(x * kLog2E); }
__device__ __forceinline__ float log_approx(float x) { return log2_approx(x) * kLn2; }

// To about 1e-6 of the value; tanh.approx has only 11 bits.
__device__ __forceinline__ float tanh_approx(float x) {
  const float size = fabsf(x);
  const float reciprocal = reciprocal_approx(exp2_approx(size * (2 * kLog2E)) + 1.0f);
  const float far = fmaf(-2.0f, reciprocal, 1.0f);
  const float z = x * x;  // below 0.55 the difference above cancels: odd polynomial instead
  const float tail =
      fmaf(z, fmaf(z, fmaf(z, 0.0163018145f, -0.0525810234f), 0.133187190f), -0.333327860f);
  const float near = fmaf(x * z, tail, x);
  return copysignf(size < 0.55f ? near : far, x);
}

}  // namespace lacuna

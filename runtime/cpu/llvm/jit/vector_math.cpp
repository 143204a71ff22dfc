#include "runtime/cpu/llvm/jit/vector_math.hpp"

#include <array>
#include <limits>
#include <span>

namespace lacuna::host {
namespace {

using llvm::Value;

// Near-minimax fits (Chebyshev nodes), lowest power first.
// e^r = 1 + r + r^2 P(r) on |r| <= ln(2) / 2, error 8e-9.
constexpr std::array kExpTail = {0.500000001F, 0.166665766F, 0.0416664642F, 0.00836323538F,
                                 0.00139337332F};
// log(1 + f) = f - f^2 / 2 + f^3 P(f) on 1 + f in [sqrt(1/2), sqrt(2)], error 2e-9.
constexpr std::array kLogTail = {0.333333312F,  -0.24999989F,  0.20000708F,
                                 -0.166684815F, 0.14249919F,   -0.124110106F,
                                 0.116616621F,  -0.115715633F, 0.0714976306F};
// tanh(x) = x + x^3 P(x^2) on |x| <= 0.625, error 6e-10.
constexpr std::array kTanhTail = {-0.333333332F, 0.133333043F,    -0.0539594059F,
                                  0.0217699609F, -0.00834698048F, 0.00229584125F};

constexpr float kLog2E = 1.44269504F;
constexpr float kLn2 = 0.693147181F;
// ln 2 = high + low; the high part has 9 bits, so that n * high is exact.
constexpr float kLn2High = 0.693359375F;
constexpr float kLn2Low = -2.12194440e-4F;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
constexpr float kRounder = 12582912.0F;
constexpr std::uint32_t kRounderBits = 0x4b400000;
constexpr int kMantissaBits = 23;

Value* polynomial(Emitter& e, Value* x, std::span<const float> coefficients) {
  Value* sum = e.constant_like(x, coefficients.back());
  for (std::size_t n = coefficients.size() - 1; n-- > 0;)
    sum = e.fma(sum, x, e.constant_like(x, coefficients[n]));
  return sum;
}

Value* as_bits(Emitter& e, Value* x) {
  return e.ir.CreateBitCast(x, x->getType()->getWithNewType(e.i32()));
}

Value* as_float(Emitter& e, Value* x) {
  return e.ir.CreateBitCast(x, x->getType()->getWithNewType(e.f32()));
}

/// Clamps; NaN passes through.
Value* clamp(Emitter& e, Value* x, float low, float high) {
  return e.less(e.constant_like(x, high), e.greater(e.constant_like(x, low), x));
}

struct Rounded {
  Value* number;   ///< f32
  Value* integer;  ///< i32
};

Rounded round_to_nearest(Emitter& e, Value* x) {
  Value* shifted = e.ir.CreateFAdd(x, e.constant_like(x, kRounder));
  Value* bits = as_bits(e, shifted);
  return {.number = e.ir.CreateFSub(shifted, e.constant_like(x, kRounder)),
          .integer = e.ir.CreateSub(bits, e.bits_like(bits, kRounderBits))};
}

/// 2^n for n in [-127, 127]; 0 for -127.
Value* power_of_two(Emitter& e, Value* n) {
  Value* biased = e.ir.CreateAdd(n, e.bits_like(n, 127));
  return as_float(e, e.ir.CreateShl(biased, e.bits_like(n, kMantissaBits)));
}

/// e^r for |r| <= ln(2) / 2.
Value* exp_reduced(Emitter& e, Value* r) {
  Value* tail = polynomial(e, r, kExpTail);
  Value* one = e.constant_like(r, 1);
  return e.fma(e.fma(tail, r, one), r, one);
}

/// y * 2^n for n in [-252, 254], in two steps so that overflow and denormals come out right.
Value* scale(Emitter& e, Value* y, Value* n) {
  Value* half = e.ir.CreateAShr(n, e.bits_like(n, 1));
  Value* rest = e.ir.CreateSub(n, half);
  return e.ir.CreateFMul(e.ir.CreateFMul(y, power_of_two(e, half)), power_of_two(e, rest));
}

struct Decomposed {
  Value* exponent;  ///< f32
  Value* fraction;  ///< log(mantissa), mantissa in [sqrt(1/2), sqrt(2)]
};

/// log(x) = exponent * ln 2 + fraction for positive finite x.
Decomposed decompose(Emitter& e, Value* x) {
  constexpr std::uint32_t kSqrtHalfBits = 0x3f3504f3;
  Value* tiny = e.ir.CreateFCmpOLT(x, e.constant_like(x, std::numeric_limits<float>::min()));
  Value* normal = e.ir.CreateSelect(tiny, e.ir.CreateFMul(x, e.constant_like(x, 0x1p23F)), x);
  Value* bits = as_bits(e, normal);
  Value* exponent = e.ir.CreateAShr(e.ir.CreateSub(bits, e.bits_like(bits, kSqrtHalfBits)),
                                    e.bits_like(bits, kMantissaBits));
  Value* mantissa =
      as_float(e, e.ir.CreateSub(bits, e.ir.CreateShl(exponent, e.bits_like(bits, kMantissaBits))));
  Value* number = e.ir.CreateSIToFP(exponent, x->getType());
  number = e.ir.CreateSelect(
      tiny, e.ir.CreateFSub(number, e.constant_like(x, static_cast<float>(kMantissaBits))), number);
  Value* f = e.ir.CreateFSub(mantissa, e.constant_like(x, 1));
  Value* square = e.ir.CreateFMul(f, f);
  Value* tail = e.ir.CreateFMul(e.ir.CreateFMul(f, square), polynomial(e, f, kLogTail));
  Value* fraction = e.ir.CreateFAdd(f, e.fma(square, e.constant_like(x, -0.5F), tail));
  return {.exponent = number, .fraction = fraction};
}

/// -inf at 0, NaN below, inf at inf, NaN at NaN.
Value* log_edges(Emitter& e, Value* x, Value* inside) {
  Value* zero = e.constant_like(x, 0);
  Value* infinity = e.constant_like(x, kInfinity);
  Value* not_a_number = e.constant_like(x, std::numeric_limits<float>::quiet_NaN());
  Value* y = e.ir.CreateSelect(e.ir.CreateFCmpOEQ(x, infinity), infinity, inside);
  y = e.ir.CreateSelect(e.ir.CreateFCmpOEQ(x, zero), e.constant_like(x, -kInfinity), y);
  return e.ir.CreateSelect(e.ir.CreateFCmpULT(x, zero), not_a_number, y);
}

}  // namespace

Value* emit_exp2_not_positive(Emitter& e, Value* x) {
  Value* bounded = e.greater(e.constant_like(x, -127), x);
  const Rounded n = round_to_nearest(e, bounded);
  Value* r = e.ir.CreateFMul(e.ir.CreateFSub(bounded, n.number), e.constant_like(x, kLn2));
  return e.ir.CreateFMul(exp_reduced(e, r), power_of_two(e, n.integer));
}

Value* emit_exp2(Emitter& e, Value* x) {
  Value* bounded = clamp(e, x, -151, 129);
  const Rounded n = round_to_nearest(e, bounded);
  Value* r = e.ir.CreateFMul(e.ir.CreateFSub(bounded, n.number), e.constant_like(x, kLn2));
  return scale(e, exp_reduced(e, r), n.integer);
}

Value* emit_exp(Emitter& e, Value* x) {
  Value* bounded = clamp(e, x, -105, 89.5F);
  const Rounded n = round_to_nearest(e, e.ir.CreateFMul(bounded, e.constant_like(x, kLog2E)));
  Value* r = e.fma(n.number, e.constant_like(x, -kLn2High), bounded);
  r = e.fma(n.number, e.constant_like(x, -kLn2Low), r);
  return scale(e, exp_reduced(e, r), n.integer);
}

Value* emit_log(Emitter& e, Value* x) {
  const Decomposed parts = decompose(e, x);
  Value* low = e.fma(parts.exponent, e.constant_like(x, kLn2Low), parts.fraction);
  return log_edges(e, x, e.fma(parts.exponent, e.constant_like(x, kLn2High), low));
}

Value* emit_log2(Emitter& e, Value* x) {
  const Decomposed parts = decompose(e, x);
  return log_edges(e, x, e.fma(parts.fraction, e.constant_like(x, kLog2E), parts.exponent));
}

Value* emit_tanh(Emitter& e, Value* x) {
  Value* magnitude = e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* square = e.ir.CreateFMul(x, x);
  Value* cubic = e.ir.CreateFMul(e.ir.CreateFMul(square, x), polynomial(e, square, kTanhTail));
  Value* near_zero = e.ir.CreateFAdd(x, cubic);
  Value* one = e.constant_like(x, 1);
  Value* grown = emit_exp(e, e.ir.CreateFAdd(magnitude, magnitude));
  Value* far =
      e.ir.CreateFSub(one, e.ir.CreateFDiv(e.constant_like(x, 2), e.ir.CreateFAdd(grown, one)));
  far = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, far, x);
  return e.ir.CreateSelect(e.ir.CreateFCmpOLT(magnitude, e.constant_like(x, 0.625F)), near_zero,
                           far);
}

}  // namespace lacuna::host

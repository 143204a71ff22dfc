// exp, log and tanh as straight-line IR, for scalars and vectors alike: no calls into libm, so
// vectors stay vectors and results are the same on every machine with fused multiply-add.
// Accurate to 2 units in the last place (tests/host/expr_test.cpp). NaN stays NaN.
#pragma once

#include "runtime/cpu/llvm/jit/emitter.hpp"

namespace lacuna::host {

llvm::Value* emit_exp(Emitter& e, llvm::Value* x);
llvm::Value* emit_exp2(Emitter& e, llvm::Value* x);
llvm::Value* emit_log(Emitter& e, llvm::Value* x);
llvm::Value* emit_log2(Emitter& e, llvm::Value* x);
llvm::Value* emit_tanh(Emitter& e, llvm::Value* x);

/// 2^x for x <= 0, the case of softmax: results below the smallest normal number become 0.
llvm::Value* emit_exp2_not_positive(Emitter& e, llvm::Value* x);

}  // namespace lacuna::host

// The innermost loops: a block of rows times a panel, accumulated in registers.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cpu/llvm/attend/panels.hpp"
#include "runtime/cpu/llvm/jit/emitter.hpp"

namespace lacuna::host {

/// Accumulators of a block: [row * vectors + vector].
using Accumulators = std::vector<llvm::Value*>;

/// Which terms of a product count: all, or those with an element of A that is not 0, whatever the
/// panel holds there (0 * inf would be NaN).
enum class Terms : std::uint8_t { kAll, kNonzero };

/// acc += A[rows][depth] * panel[depth][columns]. `a` points at the first of `block.rows` rows that
/// lie `a_stride` floats apart; `depth` is an i64.
Accumulators emit_block_product(Emitter& e, const Block& block, Terms terms, llvm::Value* a,
                                std::int64_t a_stride, llvm::Value* panel, llvm::Value* depth,
                                const Accumulators& acc);

/// The vectors at rows `stride` floats apart, beginning at `pointer`.
Accumulators emit_load_block(Emitter& e, const Block& block, llvm::Value* pointer,
                             std::int64_t stride);
void emit_store_block(Emitter& e, const Block& block, llvm::Value* pointer, std::int64_t stride,
                      const Accumulators& acc);

}  // namespace lacuna::host

#include "runtime/cpu/llvm/attend/microkernel.hpp"

namespace lacuna::host {

using llvm::Value;

Accumulators emit_block_product(Emitter& e, const Block& block, Terms terms, Value* a,
                                std::int64_t a_stride, Value* panel, Value* depth,
                                const Accumulators& acc) {
  const auto rows = static_cast<std::size_t>(block.rows);
  const auto vectors = static_cast<std::size_t>(block.vectors);
  return e.loop(e.index(0), depth, 1, acc, [&](Value* step, const Accumulators& in) {
    Value* row = e.at(e.f32(), panel, e.ir.CreateMul(step, e.index(block.columns())));
    std::vector<Value*> right;
    for (std::size_t v = 0; v < vectors; ++v)
      right.push_back(
          e.load_vector(e.at(e.f32(), row, e.index(static_cast<std::int64_t>(v) * block.width))));
    Value* column = e.at(e.f32(), a, step);
    Accumulators out(in.size());
    for (std::size_t r = 0; r < rows; ++r) {
      Value* at = e.at(e.f32(), column, e.index(static_cast<std::int64_t>(r) * a_stride));
      Value* left = e.splat(e.load(e.f32(), at, 4));
      for (std::size_t n = r * vectors; n < (r + 1) * vectors; ++n) {
        out[n] = e.fma(left, right[n - r * vectors], in[n]);
        if (terms == Terms::kAll) continue;
        Value* counts = e.ir.CreateFCmpUNE(left, e.constant_like(left, 0));
        out[n] = e.ir.CreateSelect(counts, out[n], in[n]);
      }
    }
    return out;
  });
}

Accumulators emit_load_block(Emitter& e, const Block& block, Value* pointer, std::int64_t stride) {
  Accumulators acc;
  for (int r = 0; r < block.rows; ++r)
    for (int v = 0; v < block.vectors; ++v)
      acc.push_back(e.load_vector(
          e.at(e.f32(), pointer, e.index(r * stride + std::int64_t{v} * block.width))));
  return acc;
}

void emit_store_block(Emitter& e, const Block& block, Value* pointer, std::int64_t stride,
                      const Accumulators& acc) {
  std::size_t n = 0;
  for (int r = 0; r < block.rows; ++r)
    for (int v = 0; v < block.vectors; ++v)
      e.store(acc[n++], e.at(e.f32(), pointer, e.index(r * stride + std::int64_t{v} * block.width)),
              4);
}

}  // namespace lacuna::host

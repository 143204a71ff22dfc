// S = score(scale * Q K^T) under the mask, and the row maxima, one register block at a time.
#include <cstddef>
#include <limits>

#include "runtime/cpu/llvm/attend/attend.hpp"
#include "runtime/cpu/llvm/attend/frame_access.hpp"
#include "runtime/cpu/llvm/attend/microkernel.hpp"
#include "runtime/cpu/llvm/jit/lower_expr.hpp"

namespace lacuna::host {
namespace {

using llvm::Value;

/// What stays the same for all blocks of one call.
struct ScoreTile {
  const Attend& attend;
  const Shape& shape;
  ExprScope scope;
  Value *q, *k, *s, *tile_max;
  Value* scale;                                       ///< f32, of the softmax
  Value *q_scale, *k_scale, *row_bias, *column_bias;  ///< of quantised attention
  Value* gathered;                                    ///< true index of each key
  Value* first_row;                                   ///< q0 without clamping, i32
  Value* first_key;                                   ///< i32
  Value* keys;                                        ///< keys that exist, i32
  Value* unmasked;                                    ///< i1: every existing key is visible
  bool partial;
};

/// One vector of a block: its row, and its first key in the tile.
struct Place {
  Value* row;     ///< i64
  Value* column;  ///< i64
};

/// Integer dot products -> products of what was quantised.
Value* dequantise(Emitter& e, const ScoreTile& tile, Value* dot, const Place& place) {
  const auto of_row = [&](Value* array) {
    return e.splat(e.load(e.f32(), e.at(e.f32(), array, place.row), 4));
  };
  const auto of_keys = [&](Value* array) {
    return e.load_vector(e.at(e.f32(), array, place.column));
  };
  Value* scale = e.ir.CreateFMul(of_row(tile.q_scale), of_keys(tile.k_scale));
  Value* bias = e.ir.CreateFAdd(of_row(tile.row_bias), of_keys(tile.column_bias));
  return e.fma(dot, scale, bias);
}

/// The token index of each key of a vector.
Value* key_tokens(Emitter& e, const ScoreTile& tile, const Place& place, Value* lane) {
  if (tile.attend.columns < 0) return e.ir.CreateAdd(e.splat(tile.first_key), lane);
  return e.load(e.vector_of(e.i32()), e.at(e.i32(), tile.gathered, place.column), 4);
}

/// Logits of one vector of keys: scaled, scored, masked.
Value* finish_logits(Emitter& e, const ScoreTile& tile, Value* dot, const Place& place) {
  ExprScope scope = tile.scope;
  Value* query = e.ir.CreateAdd(tile.first_row, e.ir.CreateTrunc(place.row, e.i32()));
  Value* lane = e.ir.CreateAdd(e.splat(e.ir.CreateTrunc(place.column, e.i32())), e.lane_numbers());
  if (tile.attend.q_scale >= 0) dot = dequantise(e, tile, dot, place);
  Value* s = e.ir.CreateFMul(dot, e.splat(tile.scale));
  Value* key = key_tokens(e, tile, place, lane);
  scope[Variable::kQ] = query;
  scope[Variable::kK] = key;
  scope[Variable::kS] = s;
  if (!tile.attend.score.empty()) s = e.splat(lower_expr(e, tile.attend.score, scope));
  if (!tile.partial) return s;
  Value* visible = e.ir.CreateICmpSLT(lane, e.splat(tile.keys));
  if (!tile.attend.mask.empty()) {
    Value* seen = e.splat(lower_expr(e, tile.attend.mask, scope));
    visible = e.ir.CreateAnd(visible, e.ir.CreateOr(seen, e.splat(tile.unmasked)));
  }
  // What has weight 0.
  const float unseen =
      tile.attend.normalise == Weights::kNone ? 0.0F : -std::numeric_limits<float>::infinity();
  return e.ir.CreateSelect(visible, s, e.constant_like(s, unseen));
}

/// tile_max[row] = max over this block's keys, and over the panels before it. NaN counts as -inf.
void update_tile_max(Emitter& e, const ScoreTile& tile, Value* row, Value* panel,
                     llvm::ArrayRef<Value*> logits) {
  Value* lowest = e.constant(-std::numeric_limits<float>::infinity());
  Value* largest = e.splat(lowest);
  for (Value* s : logits) largest = e.greater(s, largest);
  Value* maximum = e.horizontal(largest, [&](Value* a, Value* b) { return e.greater(a, b); });
  Value* place = e.at(e.f32(), tile.tile_max, row);
  if (tile.shape.keys.count > 1) {
    Value* first = e.ir.CreateICmpEQ(panel, e.index(0));
    Value* before = e.ir.CreateSelect(first, lowest, e.load(e.f32(), place, 4));
    maximum = e.greater(before, maximum);
  }
  e.store(maximum, place, 4);
}

void emit_score_block(Emitter& e, const ScoreTile& tile, Value* row, Value* panel) {
  const Panels& keys = tile.shape.keys;
  const Block& block = keys.block;
  const std::int64_t d = tile.shape.head_dim;
  Value* a = e.at(e.f32(), tile.q, e.ir.CreateMul(row, e.index(d)));
  Value* b = e.at(e.f32(), tile.k, e.ir.CreateMul(panel, e.index(keys.panel_floats())));
  const auto size = static_cast<std::size_t>(block.rows) * static_cast<std::size_t>(block.vectors);
  Accumulators acc(size, e.splat(e.constant(0.0F)));
  acc = emit_block_product(e, block, Terms::kAll, a, d, b, e.index(d), acc);

  Value* column = e.ir.CreateMul(panel, e.index(block.columns()));
  for (int r = 0; r < block.rows; ++r) {
    Value* this_row = e.ir.CreateAdd(row, e.index(r));
    const std::size_t begin = static_cast<std::size_t>(r) * static_cast<std::size_t>(block.vectors);
    for (int v = 0; v < block.vectors; ++v) {
      const Place place = {
          .row = this_row,
          .column = e.ir.CreateAdd(column, e.index(std::int64_t{v} * block.width))};
      Value*& s = acc[begin + static_cast<std::size_t>(v)];
      s = finish_logits(e, tile, s, place);
    }
    const llvm::ArrayRef<Value*> logits(&acc[begin], static_cast<std::size_t>(block.vectors));
    update_tile_max(e, tile, this_row, panel, logits);
  }
  const std::int64_t stride = keys.padded_columns();
  Value* target =
      e.at(e.f32(), tile.s, e.ir.CreateAdd(e.ir.CreateMul(row, e.index(stride)), column));
  emit_store_block(e, block, target, stride, acc);
}

}  // namespace

void emit_scores(Emitter& e, const Attend& attend, const Shape& shape, bool partial) {
  llvm::Type* i64 = e.ir.getInt64Ty();
  llvm::Function* function = e.begin_function(partial ? "scores_partial" : "scores_full",
                                              e.ir.getVoidTy(), {e.ir.getPtrTy(), i64, i64});
  const FrameAccess frame(e, function->getArg(0));
  Value* k0 = frame.word(offsetof(Frame, k0));
  Value* k1 = frame.word(offsetof(Frame, k1));
  const ScoreTile tile = {
      .attend = attend,
      .shape = shape,
      .scope = frame.tile_scope(),
      .q = frame.pointer(offsetof(Frame, q)),
      .k = frame.pointer(offsetof(Frame, k)),
      .s = frame.pointer(offsetof(Frame, s)),
      .tile_max = frame.pointer(offsetof(Frame, tile_max)),
      .scale = frame.real(offsetof(Frame, scale)),
      .q_scale = frame.pointer(offsetof(Frame, q_scale)),
      .k_scale = frame.pointer(offsetof(Frame, k_scale)),
      .row_bias = frame.pointer(offsetof(Frame, row_bias)),
      .column_bias = frame.pointer(offsetof(Frame, column_bias)),
      .gathered = frame.pointer(offsetof(Frame, gathered)),
      .first_row = frame.word(offsetof(Frame, q0)),
      .first_key = k0,
      .keys = e.ir.CreateAdd(e.ir.CreateSub(k1, k0), e.constant(1)),
      .unmasked = e.ir.CreateICmpEQ(frame.word(offsetof(Frame, apply_mask)), e.constant(0)),
      .partial = partial,
  };
  e.loop(e.index(0), e.index(shape.keys.count), 1, [&](Value* panel) {
    e.loop(function->getArg(1), function->getArg(2), shape.keys.block.rows,
           [&](Value* row) { emit_score_block(e, tile, row, panel); });
  });
  e.ir.CreateRetVoid();
}

}  // namespace lacuna::host

// Online softmax over the logits of a tile, and O += P V.
#include <cstddef>
#include <limits>

#include "runtime/cpu/llvm/attend/attend.hpp"
#include "runtime/cpu/llvm/attend/frame_access.hpp"
#include "runtime/cpu/llvm/jit/vector_math.hpp"

namespace lacuna::host {
namespace {

using llvm::Value;
constexpr float kLog2OfE = 1.44269504F;

/// A probability -> kWeightRange * p, rounded to e4m3 (to nearest even): three bits after the
/// leading one, but no finer than the denormals' 2^-9. Adding 1.5 * 2^20 times the power of two at
/// or below x leaves just those bits.
Value* emit_weight_e4m3(Emitter& e, Value* p) {
  constexpr std::uint32_t kExponentMask = 0x7f800000, kLeastExponent = (127 - 6) << 23;
  constexpr std::uint32_t kShift = 20U << 23, kHalf = 1U << 22;
  Value* x = e.ir.CreateFMul(p, e.constant_like(p, kWeightRange));
  Value* bits = e.ir.CreateBitCast(x, x->getType()->getWithNewType(e.i32()));
  Value* exponent = e.ir.CreateAnd(bits, e.bits_like(bits, kExponentMask));
  exponent = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, exponent,
                                        e.bits_like(bits, kLeastExponent));
  Value* magic =
      e.ir.CreateOr(e.ir.CreateAdd(exponent, e.bits_like(bits, kShift)), e.bits_like(bits, kHalf));
  Value* large = e.ir.CreateBitCast(magic, x->getType());
  Value* rounded = e.ir.CreateFSub(e.ir.CreateFAdd(x, large), large);
  return e.ir.CreateSelect(e.ir.CreateFCmpUNO(x, x), x, rounded);
}

struct RowArrays {
  Value *tile_max, *row_max, *row_sum, *row_shift, *pending;
};

/// New running maxima of a vector of rows; what was summed so far is rescaled to them.
void emit_rescale(Emitter& e, const RowArrays& rows, Value* row) {
  const auto vector = [&](Value* array) { return e.at(e.f32(), array, row); };
  Value* before = e.load_vector(vector(rows.row_max));
  Value* now = e.greater(e.load_vector(vector(rows.tile_max)), before);
  Value* lowest = e.constant_like(now, -std::numeric_limits<float>::infinity());
  Value* shift = e.ir.CreateSelect(e.ir.CreateFCmpOEQ(now, lowest), e.constant_like(now, 0), now);
  Value* exponent = e.ir.CreateFMul(e.ir.CreateFSub(before, shift), e.constant_like(now, kLog2OfE));
  Value* factor = emit_exp2_not_positive(e, exponent);
  e.store(now, vector(rows.row_max), 4);
  e.store(shift, vector(rows.row_shift), 4);
  for (Value* array : {rows.row_sum, rows.pending})
    e.store(e.ir.CreateFMul(e.load_vector(vector(array)), factor), vector(array), 4);
}

/// Logits of one row -> probabilities, added to the denominator; what is multiplied with V may be
/// their rounded form.
void emit_row_probabilities(Emitter& e, const RowArrays& rows, Value* row, Value* logits,
                            const Panels& keys, bool rounds) {
  Value* shift = e.splat(e.load(e.f32(), e.at(e.f32(), rows.row_shift, row), 4));
  const auto add_panel = [&](Value* first, const Emitter::Values& carried) {
    Value* total = carried[0];
    for (int column = 0; column < keys.block.columns(); column += e.width) {
      Value* place = e.at(e.f32(), logits, e.ir.CreateAdd(first, e.index(column)));
      Value* distance = e.ir.CreateFSub(e.load_vector(place), shift);
      Value* p =
          emit_exp2_not_positive(e, e.ir.CreateFMul(distance, e.constant_like(distance, kLog2OfE)));
      e.store(rounds ? emit_weight_e4m3(e, p) : p, place, 4);
      total = e.ir.CreateFAdd(total, p);
    }
    return Emitter::Values{total};
  };
  const Emitter::Values totals =
      e.loop(e.index(0), e.index(keys.padded_columns()), keys.block.columns(),
             {e.splat(e.constant(0.0F))}, add_panel);
  Value* sum = e.horizontal(totals[0], [&](Value* a, Value* b) { return e.ir.CreateFAdd(a, b); });
  Value* place = e.at(e.f32(), rows.row_sum, row);
  e.store(e.ir.CreateFAdd(e.load(e.f32(), place, 4), sum), place, 4);
}

/// Of the magnitude, so that no exponential overflows: t / (1 + t) or 1 / (1 + t).
Value* emit_sigmoid(Emitter& e, Value* x) {
  Value* magnitude = e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* t =
      emit_exp2_not_positive(e, e.ir.CreateFMul(magnitude, e.constant_like(magnitude, -kLog2OfE)));
  Value* one = e.constant_like(x, 1);
  Value* is_negative = e.ir.CreateFCmpOLT(x, e.constant_like(x, 0));
  Value* numerator = e.ir.CreateSelect(is_negative, t, one);
  return e.ir.CreateFDiv(numerator, e.ir.CreateFAdd(one, t));
}

}  // namespace

void emit_softmax(Emitter& e, const Shape& shape, bool rounds) {
  llvm::Type* i64 = e.ir.getInt64Ty();
  llvm::Function* function =
      e.begin_function("softmax", e.ir.getVoidTy(), {e.ir.getPtrTy(), i64, i64});
  const FrameAccess frame(e, function->getArg(0));
  const RowArrays rows = {
      .tile_max = frame.pointer(offsetof(Frame, tile_max)),
      .row_max = frame.pointer(offsetof(Frame, row_max)),
      .row_sum = frame.pointer(offsetof(Frame, row_sum)),
      .row_shift = frame.pointer(offsetof(Frame, row_shift)),
      .pending = frame.pointer(offsetof(Frame, pending)),
  };
  Value* s = frame.pointer(offsetof(Frame, s));
  Value* begin = function->getArg(1);
  Value* end = function->getArg(2);
  e.loop(begin, end, e.width, [&](Value* row) { emit_rescale(e, rows, row); });
  e.loop(begin, end, 1, [&](Value* row) {
    Value* offset = e.ir.CreateMul(row, e.index(shape.keys.padded_columns()));
    emit_row_probabilities(e, rows, row, e.at(e.f32(), s, offset), shape.keys, rounds);
  });
  e.ir.CreateRetVoid();
}

void emit_plain_weights(Emitter& e, const Shape& shape, Weights weights) {
  llvm::Type* i64 = e.ir.getInt64Ty();
  llvm::Function* function =
      e.begin_function("softmax", e.ir.getVoidTy(), {e.ir.getPtrTy(), i64, i64});
  const FrameAccess frame(e, function->getArg(0));
  Value* s = frame.pointer(offsetof(Frame, s));
  Value* row_sum = frame.pointer(offsetof(Frame, row_sum));
  e.loop(function->getArg(1), function->getArg(2), 1, [&](Value* row) {
    e.store(e.constant(1.0F), e.at(e.f32(), row_sum, row), 4);
    if (weights == Weights::kNone) return;
    Value* logits = e.at(e.f32(), s, e.ir.CreateMul(row, e.index(shape.keys.padded_columns())));
    e.loop(e.index(0), e.index(shape.keys.padded_columns()), e.width, [&](Value* column) {
      Value* place = e.at(e.f32(), logits, column);
      e.store(emit_sigmoid(e, e.load_vector(place)), place, 4);
    });
  });
  e.ir.CreateRetVoid();
}

void emit_accumulate(Emitter& e, const Shape& shape, Terms terms) {
  llvm::Type* i64 = e.ir.getInt64Ty();
  llvm::Function* function =
      e.begin_function(terms == Terms::kAll ? "accumulate" : "accumulate_nonzero", e.ir.getVoidTy(),
                       {e.ir.getPtrTy(), i64, i64});
  const FrameAccess frame(e, function->getArg(0));
  const Panels& values = shape.values;
  // Few tiles hold NaN or infinity: what serves them is quick to compile rather than to run.
  const bool is_rare = terms == Terms::kNonzero;
  if (is_rare) function->addFnAttr(llvm::Attribute::OptimizeForSize);
  const Block block = {.rows = is_rare ? 1 : values.block.rows,
                       .vectors = values.block.vectors,
                       .width = values.block.width};
  const std::int64_t p_stride = shape.keys.padded_columns();
  const std::int64_t o_stride = values.padded_columns();
  Value* v = frame.pointer(offsetof(Frame, v));
  Value* s = frame.pointer(offsetof(Frame, s));
  Value* o = frame.pointer(offsetof(Frame, o));
  Value* pending = frame.pointer(offsetof(Frame, pending));
  Value* last = e.ir.CreateSub(frame.word(offsetof(Frame, k1)), frame.word(offsetof(Frame, k0)));
  Value* keys = e.ir.CreateAdd(e.ir.CreateSExt(last, i64), e.index(1));
  Value* begin = function->getArg(1);
  Value* end = function->getArg(2);

  e.loop(e.index(0), e.index(values.count), 1, [&](Value* panel) {
    Value* columns = e.at(e.f32(), v, e.ir.CreateMul(panel, e.index(values.panel_floats())));
    e.loop(begin, end, block.rows, [&](Value* row) {
      Value* column = e.ir.CreateMul(panel, e.index(block.columns()));
      Value* target =
          e.at(e.f32(), o, e.ir.CreateAdd(e.ir.CreateMul(row, e.index(o_stride)), column));
      Accumulators acc = emit_load_block(e, block, target, o_stride);
      for (std::size_t n = 0; n < acc.size(); ++n) {
        const auto r = static_cast<std::int64_t>(n) / block.vectors;
        Value* place = e.at(e.f32(), pending, e.ir.CreateAdd(row, e.index(r)));
        acc[n] = e.ir.CreateFMul(acc[n], e.splat(e.load(e.f32(), place, 4)));
      }
      Value* a = e.at(e.f32(), s, e.ir.CreateMul(row, e.index(p_stride)));
      acc = emit_block_product(e, block, terms, a, p_stride, columns, keys, acc);
      emit_store_block(e, block, target, o_stride, acc);
    });
  });
  Value* one = e.splat(e.constant(1.0F));
  e.loop(begin, end, e.width, [&](Value* row) { e.store(one, e.at(e.f32(), pending, row), 4); });
  e.ir.CreateRetVoid();
}

}  // namespace lacuna::host

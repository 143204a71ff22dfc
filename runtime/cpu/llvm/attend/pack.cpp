// Between the caller's tensors (any dtype, strided rows) and the f32 panels the products run on.
#include <cstddef>

#include "runtime/cpu/llvm/attend/attend.hpp"
#include "runtime/cpu/llvm/attend/frame_access.hpp"

namespace lacuna::host {
namespace {

using llvm::Value;

llvm::Type* storage_type(Emitter& e, DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return e.ir.getInt16Ty();
    case DType::kF16:
      return e.ir.getHalfTy();
    case DType::kF32:
      break;
  }
  return e.f32();
}

/// Element or vector of elements -> f32, exactly.
Value* widen(Emitter& e, DType dtype, Value* x) {
  if (dtype == DType::kF32) return x;
  llvm::Type* real = x->getType()->getWithNewType(e.f32());
  if (dtype == DType::kF16) return e.ir.CreateFPExt(x, real);
  Value* bits = e.ir.CreateZExt(x, x->getType()->getWithNewType(e.i32()));
  return e.ir.CreateBitCast(e.ir.CreateShl(bits, e.bits_like(bits, 16)), real);
}

/// f32 -> storage, to nearest even. bf16 by integer arithmetic: the machine's own conversion
/// flushes denormals.
Value* narrow(Emitter& e, DType dtype, Value* x) {
  if (dtype == DType::kF32) return x;
  if (dtype == DType::kF16)
    return e.ir.CreateFPTrunc(x, x->getType()->getWithNewType(e.ir.getHalfTy()));
  Value* bits = e.ir.CreateBitCast(x, x->getType()->getWithNewType(e.i32()));
  Value* sixteen = e.bits_like(bits, 16);
  Value* high = e.ir.CreateLShr(bits, sixteen);
  Value* odd = e.ir.CreateAnd(high, e.bits_like(bits, 1));
  Value* rounded = e.ir.CreateAdd(e.ir.CreateAdd(bits, e.bits_like(bits, 0x7fff)), odd);
  Value* quiet = e.ir.CreateOr(high, e.bits_like(bits, 0x40));
  Value* result =
      e.ir.CreateSelect(e.ir.CreateFCmpUNO(x, x), quiet, e.ir.CreateLShr(rounded, sixteen));
  return e.ir.CreateTrunc(result, bits->getType()->getWithNewType(e.ir.getInt16Ty()));
}

unsigned alignment_of(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

/// Calls body(column, is_vector) for all columns: whole vectors, then single elements.
void for_columns(Emitter& e, int columns, const std::function<void(Value*, bool)>& body) {
  const int whole = columns / e.width * e.width;
  e.loop(e.index(0), e.index(whole), e.width, [&](Value* column) { body(column, true); });
  if (whole < columns)
    e.loop(e.index(whole), e.index(columns), 1, [&](Value* column) { body(column, false); });
}

/// The same with a vector carried along: next = body(column, is_vector, vector). Returns the last.
Value* for_columns(Emitter& e, int columns, Value* carried,
                   const std::function<Value*(Value*, bool, Value*)>& body) {
  const int whole = columns / e.width * e.width;
  const auto run = [&](int begin, int end, int step, bool is_vector) {
    carried = e.loop(e.index(begin), e.index(end), step, {carried},
                     [&](Value* column, const Emitter::Values& in) {
                       return Emitter::Values{body(column, is_vector, in[0])};
                     })[0];
  };
  run(0, whole, e.width, true);
  if (whole < columns) run(whole, columns, 1, false);
  return carried;
}

Value* load_wide(Emitter& e, DType dtype, Value* row, Value* column, bool is_vector) {
  llvm::Type* element = storage_type(e, dtype);
  Value* place = e.at(element, row, column);
  return widen(e, dtype,
               e.load(is_vector ? e.vector_of(element) : element, place, alignment_of(dtype)));
}

/// Transposes a square of `width` vectors: log2(width) rounds of exchanging halves of pairs.
std::vector<Value*> transpose(Emitter& e, std::vector<Value*> rows) {
  for (int distance = 1; distance < e.width; distance *= 2) {
    std::vector<int> low, high;
    for (int lane = 0; lane < e.width; ++lane) {
      const bool upper = (lane & distance) != 0;
      low.push_back(upper ? lane - distance + e.width : lane);
      high.push_back(upper ? lane + e.width : lane + distance);
    }
    std::vector<Value*> next(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto partner = r | static_cast<std::size_t>(distance);
      if (partner == r) continue;
      next[r] = e.ir.CreateShuffleVector(rows[r], rows[partner], low);
      next[partner] = e.ir.CreateShuffleVector(rows[r], rows[partner], high);
    }
    rows = std::move(next);
  }
  return rows;
}

llvm::Function* begin_pack(Emitter& e, const char* name, llvm::Type* result) {
  llvm::Type* pointer = e.ir.getPtrTy();
  llvm::Type* i64 = e.ir.getInt64Ty();
  return e.begin_function(name, result, {pointer, i64, i64, pointer});
}

}  // namespace

void emit_pack_q(Emitter& e, const Shape& shape, DType dtype) {
  llvm::Function* function = begin_pack(e, "pack_q", e.ir.getVoidTy());
  Value* stride = function->getArg(1);
  e.loop(e.index(0), function->getArg(2), 1, [&](Value* row) {
    Value* from = e.at(storage_type(e, dtype), function->getArg(0), e.ir.CreateMul(row, stride));
    Value* to = e.at(e.f32(), function->getArg(3), e.ir.CreateMul(row, e.index(shape.head_dim)));
    for_columns(e, shape.head_dim, [&](Value* column, bool is_vector) {
      e.store(load_wide(e, dtype, from, column, is_vector), e.at(e.f32(), to, column), 4);
    });
  });
  e.ir.CreateRetVoid();
}

void emit_pack_k(Emitter& e, const Shape& shape, DType dtype) {
  llvm::Function* function = begin_pack(e, "pack_k", e.ir.getVoidTy());
  Value* source = function->getArg(0);
  Value* stride = function->getArg(1);
  Value* last_key = e.ir.CreateSub(function->getArg(2), e.index(1));
  const Panels& keys = shape.keys;
  const std::int64_t columns = keys.block.columns();
  const auto least = [&](Value* a, Value* b) {
    return e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  };
  e.loop(e.index(0), e.index(keys.padded_columns()), e.width, [&](Value* first) {
    std::vector<Value*> rows;
    for (int lane = 0; lane < e.width; ++lane) {
      Value* key = least(e.ir.CreateAdd(first, e.index(lane)), last_key);
      rows.push_back(e.at(storage_type(e, dtype), source, e.ir.CreateMul(key, stride)));
    }
    Value* panel = e.ir.CreateUDiv(first, e.index(columns));
    Value* to = e.at(e.f32(), function->getArg(3),
                     e.ir.CreateAdd(e.ir.CreateMul(panel, e.index(keys.panel_floats())),
                                    e.ir.CreateURem(first, e.index(columns))));
    e.loop(e.index(0), e.index(shape.head_dim), e.width, [&](Value* begin) {
      // The last square overlaps the one before it rather than leaving the row.
      Value* d = least(begin, e.index(shape.head_dim - e.width));
      std::vector<Value*> square;
      square.reserve(rows.size());
      for (Value* row : rows) square.push_back(load_wide(e, dtype, row, d, true));
      square = transpose(e, std::move(square));
      for (int lane = 0; lane < e.width; ++lane) {
        Value* row = e.ir.CreateMul(e.ir.CreateAdd(d, e.index(lane)), e.index(columns));
        e.store(square[static_cast<std::size_t>(lane)], e.at(e.f32(), to, row), 4);
      }
    });
  });
  e.ir.CreateRetVoid();
}

void emit_pack_v(Emitter& e, const Shape& shape, DType dtype) {
  llvm::Function* function = begin_pack(e, "pack_v", e.i32());
  function->addFnAttr(llvm::Attribute::OptimizeForSize);  // memory limits it, not its loops
  const Panels& values = shape.values;
  const std::int64_t columns = values.block.columns();
  const auto pack_key = [&](Value* key, const Emitter::Values& carried) {
    Value* from =
        e.at(storage_type(e, dtype), function->getArg(0), e.ir.CreateMul(key, function->getArg(1)));
    Value* to = e.at(e.f32(), function->getArg(3), e.ir.CreateMul(key, e.index(columns)));
    const auto pack = [&](Value* column, bool is_vector, Value* zeros) {
      Value* panel = e.ir.CreateUDiv(column, e.index(columns));
      Value* place = e.ir.CreateAdd(e.ir.CreateMul(panel, e.index(values.panel_floats())),
                                    e.ir.CreateURem(column, e.index(columns)));
      Value* x = load_wide(e, dtype, from, column, is_vector);
      e.store(x, e.at(e.f32(), to, place), 4);
      // 0 times what is finite remains 0; NaN and infinity leave NaN.
      return e.fma(e.splat(x), e.constant_like(zeros, 0), zeros);
    };
    return Emitter::Values{for_columns(e, shape.head_dim_v, carried[0], pack)};
  };
  Value* zeros =
      e.loop(e.index(0), function->getArg(2), 1, {e.splat(e.constant(0.0F))}, pack_key)[0];
  Value* sum = e.horizontal(zeros, [&](Value* a, Value* b) { return e.ir.CreateFAdd(a, b); });
  e.ir.CreateRet(e.ir.CreateZExt(e.ir.CreateFCmpORD(sum, sum), e.i32()));
}

void emit_store_o(Emitter& e, const Shape& shape, DType dtype, bool scales_v) {
  llvm::Type* pointer = e.ir.getPtrTy();
  llvm::Type* i64 = e.ir.getInt64Ty();
  llvm::Function* function =
      e.begin_function("store_o", e.ir.getVoidTy(), {pointer, pointer, i64, i64});
  const FrameAccess frame(e, function->getArg(0));
  Value* o = frame.pointer(offsetof(Frame, o));
  Value* row_sum = frame.pointer(offsetof(Frame, row_sum));
  Value* pending = frame.pointer(offsetof(Frame, pending));
  Value* v_scale = frame.pointer(offsetof(Frame, v_scale));
  e.loop(e.index(0), function->getArg(3), 1, [&](Value* row) {
    Value* sum = e.load(e.f32(), e.at(e.f32(), row_sum, row), 4);
    Value* empty = e.ir.CreateFCmpOEQ(sum, e.constant(0.0F));
    Value* factor = e.ir.CreateFDiv(e.load(e.f32(), e.at(e.f32(), pending, row), 4), sum);
    Value* from = e.at(e.f32(), o, e.ir.CreateMul(row, e.index(shape.values.padded_columns())));
    Value* to =
        e.at(storage_type(e, dtype), function->getArg(1), e.ir.CreateMul(row, function->getArg(2)));
    for_columns(e, shape.head_dim_v, [&](Value* column, bool is_vector) {
      Value* place = e.at(e.f32(), from, column);
      const auto load = [&](Value* at) {
        return is_vector ? e.load_vector(at) : e.load(e.f32(), at, 4);
      };
      Value* x = load(place);
      if (scales_v) {
        Value* channel = load(e.at(e.f32(), v_scale, column));
        x = e.ir.CreateFMul(
            x, e.ir.CreateFMul(channel, e.constant_like(channel, 1.0F / kWeightRange)));
      }
      Value* scaled = e.ir.CreateFMul(x, is_vector ? e.splat(factor) : factor);
      scaled = e.ir.CreateSelect(empty, llvm::Constant::getNullValue(scaled->getType()), scaled);
      e.store(narrow(e, dtype, scaled), e.at(storage_type(e, dtype), to, column),
              alignment_of(dtype));
    });
  });
  e.ir.CreateRetVoid();
}

}  // namespace lacuna::host

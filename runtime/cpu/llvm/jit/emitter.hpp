// Small vocabulary over llvm::IRBuilder, shared by everything that generates CPU code: vectors of
// one width, loops as lambdas, typed loads and stores. Scalars and vectors mix freely (`match`).
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lacuna::host {

struct Emitter {
  llvm::Module& module;
  llvm::IRBuilder<> ir;
  int width;  ///< f32 lanes of a vector

  Emitter(llvm::Module& target, int lanes)
      : module(target), ir(target.getContext()), width(lanes) {}

  // Types and constants.
  llvm::Type* f32() { return ir.getFloatTy(); }
  llvm::Type* i32() { return ir.getInt32Ty(); }
  llvm::Type* vector_of(llvm::Type* element) {
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(width));
  }
  llvm::Value* constant(float x) { return llvm::ConstantFP::get(f32(), static_cast<double>(x)); }
  llvm::Value* constant(int x) { return ir.getInt32(static_cast<std::uint32_t>(x)); }
  llvm::Value* index(std::int64_t x) { return ir.getInt64(static_cast<std::uint64_t>(x)); }
  /// `x` in every lane of a value shaped like `like` (scalar or vector).
  llvm::Value* constant_like(llvm::Value* like, float x);
  llvm::Value* bits_like(llvm::Value* like, std::uint32_t x);

  // Shapes.
  llvm::Value* splat(llvm::Value* scalar);
  /// Splats the scalar ones if any of the values is a vector.
  void match(std::initializer_list<llvm::Value**> values);
  /// 0, 1, 2, ... as i32 lanes.
  llvm::Value* lane_numbers();

  // Arithmetic.
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  /// a if a > b else b: of two values one of which is NaN, b.
  llvm::Value* greater(llvm::Value* a, llvm::Value* b);
  llvm::Value* less(llvm::Value* a, llvm::Value* b);
  llvm::Value* horizontal(llvm::Value* vector,
                          const std::function<llvm::Value*(llvm::Value*, llvm::Value*)>& combine);

  // Memory. `offset` counts elements and is an i64.
  llvm::Value* at(llvm::Type* element, llvm::Value* base, llvm::Value* offset) {
    return ir.CreateGEP(element, base, offset);
  }
  llvm::Value* load(llvm::Type* type, llvm::Value* pointer, unsigned alignment);
  void store(llvm::Value* value, llvm::Value* pointer, unsigned alignment);
  llvm::Value* load_vector(llvm::Value* pointer) { return load(vector_of(f32()), pointer, 4); }

  // Control flow.
  using Body = std::function<void(llvm::Value* index)>;
  /// for (i64 x = begin; x < end; x += step) body(x);
  void loop(llvm::Value* begin, llvm::Value* end, std::int64_t step, const Body& body);
  /// The same with values carried from one iteration to the next; returns the final ones.
  using Values = std::vector<llvm::Value*>;
  Values loop(llvm::Value* begin, llvm::Value* end, std::int64_t step, const Values& carried,
              const std::function<Values(llvm::Value*, const Values&)>& body);

  /// Opens a function; the builder stands in its entry block. Pointer arguments are noalias if
  /// `distinct`.
  llvm::Function* begin_function(const std::string& name, llvm::Type* result,
                                 const std::vector<llvm::Type*>& arguments);
};

}  // namespace lacuna::host

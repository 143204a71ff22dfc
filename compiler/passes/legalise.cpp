// Rejects what the target cannot compute, before tiles are chosen for it.
#include <algorithm>
#include <iterator>
#include <string>

#include "compiler/passes/pass.hpp"

namespace lacuna {
namespace {

constexpr int kMmaHeadDims[] = {64, 96, 128, 256};

void check_dtype(const Program& program, const PassContext& context) {
  if (program.dtype != DType::kF32) return;
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, "/attention/dtype", Code::kUnsupported, Severity::kError,
               "dtype: expected bf16 or f16 on " + context.target.name + ", got f32"));
  d.notes.push_back("the mma family multiplies 16-bit elements");
  d.helps.push_back("f32 runs on the target cpu");
}

void check_head_dim(const Program& program, const PassContext& context) {
  if (std::ranges::count(kMmaHeadDims, program.head_dim) > 0) return;
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, "/attention/head_dim", Code::kUnsupported, Severity::kError,
               "head_dim: expected 64, 96, 128 or 256 on " + context.target.name + ", got " +
                   std::to_string(program.head_dim)));
  d.notes.push_back("the mma family is laid out and tested for these head dimensions");
  // The legal neighbours: the next smaller and the next larger, where there are such.
  const auto above = std::ranges::upper_bound(kMmaHeadDims, program.head_dim);
  std::string nearest;
  if (above != std::begin(kMmaHeadDims)) nearest = std::to_string(*std::prev(above));
  if (above != std::end(kMmaHeadDims))
    nearest += (nearest.empty() ? "" : ", ") + std::to_string(*above);
  d.helps.push_back("nearest legal values: " + nearest);
}

}  // namespace

Program legalise(Program program, const PassContext& context) {
  if (context.target.kind == TargetKind::kCuda) {
    check_dtype(program, context);
    check_head_dim(program, context);
  }
  return program;
}

}  // namespace lacuna

// Runs the interpreter on random tensors and compares it with the naive reference.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/program.hpp"
#include "runtime/cpu/host_backend.hpp"
#include "tests/runtime/cpu/interpreter_reference.hpp"

namespace lacuna {

/// Spec text -> Program with tiles, for the CPU. Diagnostics fail the test.
Program plan_for_cpu(const std::string& spec, int head_dim, DType dtype);

/// A tensor in the layout [b, n, h, d] with padding after each token, to use every stride.
struct StridedTensor {
  std::vector<std::uint16_t> halves;
  std::vector<float> floats;
  HostTensor host;
  StridedTensor(DType dtype, int b, int h, int n, int d);
  float get(DType dtype, int b, int h, int n, int c) const;
  void set(DType dtype, int b, int h, int n, int c, float value);
  bool padding_is_untouched(int d) const;

 private:
  std::size_t offset(int b, int h, int n, int c) const;
};

inline constexpr int kPadding = 5;  ///< elements after each token

struct Trial {
  Program program;
  Shape shape;
  StridedTensor q, k, v, o;
  std::vector<float> lse;
  std::vector<std::int32_t> counts;
  std::vector<std::uint8_t> tiles;
  std::vector<std::int32_t> list_indices, list_counts;
  std::vector<ParamView> params;
  int threads = 2;

  Trial(const std::string& spec, const Shape& shape, DType dtype = DType::kF32);
  int q_tiles() const;
  int k_tiles() const;
  void set_param(std::string_view name, const void* data, std::initializer_list<int> extents);
  void run();

  /// The values that were passed, contiguous [b, h, n, d].
  std::vector<float> values_of(const StridedTensor& tensor, int heads, int n) const;
  ReferenceResult reference(ReferenceMethod method) const;  ///< tiles and order are filled in
  /// Compares o, lse, tile mask and counts with the reference.
  void expect_equal(const ReferenceMethod& method) const;
};

}  // namespace lacuna

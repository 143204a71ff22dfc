#include "tests/runtime/cpu/interpreter_harness.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/target/plan.hpp"
#include "runtime/base/half.hpp"
#include "runtime/cpu/interpreter/interpreter.hpp"
#include "tests/runtime/contiguous.hpp"

namespace lacuna {
namespace {

constexpr std::uint16_t kUntouchedHalf = 0x5a5a;
constexpr float kUntouchedFloat = -12345.5F;

void fill_randomly(StridedTensor& tensor, DType dtype, int b, int h, int n, int d,
                   std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (int x = 0; x < b * h * n * d; ++x) {
    tensor.set(dtype, x / d / n / h, x / d / n % h, x / d % n, x % d, normal(random));
  }
}

/// Absolute bound on an error of o, whose values are of order 1.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return 1e-2;
    case DType::kF16:
      return 1.5e-3;
    case DType::kF32:
      return 1e-5;
  }
  return 0;
}

}  // namespace

Program plan_for_cpu(const std::string& spec, int head_dim, DType dtype) {
  Diagnostics diagnostics;
  const SpecDocument document = read_spec({"<test>", spec}, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  Plan plan = make_plan(document, {head_dim, dtype}, *find_target("cpu"), diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  return std::move(plan.program);
}

StridedTensor::StridedTensor(DType dtype, int b, int h, int n, int d) {
  const std::int64_t token = d + kPadding;
  const auto size = static_cast<std::size_t>(b * h * n * token);
  if (dtype == DType::kF32) {
    floats.assign(size, kUntouchedFloat);
    host.data = floats.data();
  } else {
    halves.assign(size, kUntouchedHalf);
    host.data = halves.data();
  }
  host.stride[0] = n * h * token;
  host.stride[1] = token;
  host.stride[2] = h * token;
  host.stride[3] = 1;
}

std::size_t StridedTensor::offset(int b, int h, int n, int c) const {
  return static_cast<std::size_t>(b * host.stride[0] + h * host.stride[1] + n * host.stride[2] + c);
}

float StridedTensor::get(DType dtype, int b, int h, int n, int c) const {
  const std::size_t at = offset(b, h, n, c);
  if (dtype == DType::kF32) return floats[at];
  return dtype == DType::kBF16 ? bf16_to_f32(halves[at]) : f16_to_f32(halves[at]);
}

void StridedTensor::set(DType dtype, int b, int h, int n, int c, float value) {
  const std::size_t at = offset(b, h, n, c);
  if (dtype == DType::kF32) {
    floats[at] = value;
  } else {
    halves[at] = dtype == DType::kBF16 ? f32_to_bf16(value) : f32_to_f16(value);
  }
}

bool StridedTensor::padding_is_untouched(int d) const {
  const auto token = static_cast<std::size_t>(d + kPadding);
  for (std::size_t x = 0; x < floats.size(); ++x) {
    if (x % token >= static_cast<std::size_t>(d) && floats[x] != kUntouchedFloat) return false;
  }
  for (std::size_t x = 0; x < halves.size(); ++x) {
    if (x % token >= static_cast<std::size_t>(d) && halves[x] != kUntouchedHalf) return false;
  }
  return true;
}

Trial::Trial(const std::string& spec, const Shape& s, DType dtype)
    : program(plan_for_cpu(spec, s.d, dtype)),
      shape(s),
      q(dtype, s.b, s.h, s.n_q, s.d),
      k(dtype, s.b, s.h_kv, s.n_k, s.d),
      v(dtype, s.b, s.h_kv, s.n_k, s.d),
      o(dtype, s.b, s.h, s.n_q, s.d) {
  std::mt19937 random(7);
  fill_randomly(q, dtype, s.b, s.h, s.n_q, s.d, random);
  fill_randomly(k, dtype, s.b, s.h_kv, s.n_k, s.d, random);
  fill_randomly(v, dtype, s.b, s.h_kv, s.n_k, s.d, random);
  lse.assign(product({s.b, s.h, s.n_q}), kUntouchedFloat);
  counts.assign(product({s.b, s.h, q_tiles(), 3}), -1);
  tiles.assign(product({s.b, s.h, q_tiles(), k_tiles()}), 77);
  for (const ParamSpec& param : program.params) {
    ParamView view;
    if (param.symbol.type == ExprType::kF32) {
      view.value.f32 = static_cast<float>(param.default_value);
    } else {
      view.value.i32 = static_cast<std::int32_t>(param.default_value);
    }
    params.push_back(view);
  }
}

int Trial::q_tiles() const {
  const int tile = attend_of(program).tile_q;
  return (shape.n_q + tile - 1) / tile;
}

int Trial::k_tiles() const {
  const int tile = attend_of(program).tile_k;
  return (shape.n_k + tile - 1) / tile;
}

void Trial::set_param(std::string_view name, const void* data, std::initializer_list<int> extents) {
  for (std::size_t p = 0; p < params.size(); ++p) {
    if (program.params[p].symbol.name != name) continue;
    params[p].data = data;
    std::int64_t stride = 1;
    for (std::size_t x = extents.size(); x-- > 0;) {
      params[p].extent[x] = extents.begin()[x];
      params[p].stride[x] = stride;
      stride *= extents.begin()[x];
    }
    return;
  }
  FAIL() << "no parameter " << name;
}

void Trial::run() {
  HostArgs args;
  args.n_b = shape.b;
  args.n_h = shape.h;
  args.n_h_kv = shape.h_kv;
  args.n_q = shape.n_q;
  args.n_k = shape.n_k;
  args.q = q.host;
  args.k = k.host;
  args.v = v.host;
  args.o = o.host;
  args.lse = contiguous(lse.data(), shape.h, shape.n_q, 1);
  args.counts = contiguous(counts.data(), shape.h, q_tiles(), 3);
  args.tile_mask = contiguous(tiles.data(), shape.h, q_tiles(), k_tiles());
  if (!list_counts.empty()) {
    const auto capacity = static_cast<std::int64_t>(list_indices.size() / list_counts.size());
    args.list_indices = contiguous(list_indices.data(), shape.h, q_tiles(), capacity);
    args.list_counts = contiguous(list_counts.data(), shape.h, q_tiles(), 1);
  }
  args.params = params.data();
  args.threads = threads;
  run_interpreted(program, args);
}

std::vector<float> Trial::values_of(const StridedTensor& tensor, int heads, int n) const {
  std::vector<float> values;
  for (int x = 0; x < shape.b * heads * n * shape.d; ++x) {
    const int token = x / shape.d;
    values.push_back(
        tensor.get(program.dtype, token / n / heads, token / n % heads, token % n, x % shape.d));
  }
  return values;
}

ReferenceResult Trial::reference(ReferenceMethod method) const {
  const Attend& attend = attend_of(program);
  method.tile_q = attend.tile_q;
  method.tile_k = attend.tile_k;
  method.descending = attend.order == TileOrder::kDescending;
  if (method.gate && method.gate->scope_rows == 0) method.gate->scope_rows = attend.tile_q;
  return reference_attention(shape, method, values_of(q, shape.h, shape.n_q),
                             values_of(k, shape.h_kv, shape.n_k),
                             values_of(v, shape.h_kv, shape.n_k));
}

void Trial::expect_equal(const ReferenceMethod& method) const {
  const ReferenceResult expected = reference(method);
  const std::vector<float> actual = values_of(o, shape.h, shape.n_q);
  const double bound = tolerance(program.dtype);
  ASSERT_EQ(actual.size(), expected.o.size());
  for (std::size_t x = 0; x < actual.size(); ++x) {
    ASSERT_NEAR(actual[x], expected.o[x], bound * std::max(1.0, std::abs(expected.o[x])))
        << "o, element " << x;
  }
  for (std::size_t x = 0; x < lse.size(); ++x) {
    if (std::isinf(expected.lse[x])) {
      ASSERT_EQ(lse[x], expected.lse[x]) << "lse, row " << x;
    } else {
      ASSERT_NEAR(lse[x], expected.lse[x], 2e-5) << "lse, row " << x;
    }
  }
  EXPECT_EQ(tiles, expected.tiles);
  EXPECT_EQ(counts, std::vector<std::int32_t>(expected.counts.begin(), expected.counts.end()));
  EXPECT_TRUE(o.padding_is_untouched(shape.d));
}

}  // namespace lacuna

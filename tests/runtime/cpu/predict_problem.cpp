#include "tests/runtime/cpu/predict_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "compiler/expr/text/parse.hpp"
#include "runtime/cpu/interpreter/interpreter.hpp"
#include "tests/runtime/contiguous.hpp"

namespace lacuna {
namespace {

const float* row_of(const std::vector<float>& x, int heads, int tokens, int d, int b, int h,
                    int n) {
  return x.data() + (std::ptrdiff_t{b} * heads + h) * tokens * d + std::ptrdiff_t{n} * d;
}

}  // namespace

PredictProblem::PredictProblem(const PredictShape& s, std::uint32_t seed) : shape(s) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto fill = [&](std::vector<float>& x, std::size_t count) {
    x.resize(count);
    for (float& value : x) value = normal(random);
  };
  fill(q, product({s.n_b, s.n_h, s.n_q, s.d}));
  fill(k, product({s.n_b, s.n_h_kv, s.n_k, s.d}));
  fill(v, product({s.n_b, s.n_h_kv, s.n_k, s.d}));
  fill(previous_lse, product({s.n_b, s.n_h, s.n_q}));
  o.assign(q.size(), -77.0F);
  lse.assign(previous_lse.size(), -77.0F);
  order.resize(static_cast<std::size_t>(s.n_q));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  args.n_b = s.n_b, args.n_h = s.n_h, args.n_h_kv = s.n_h_kv, args.n_q = s.n_q, args.n_k = s.n_k;
  args.q = contiguous(q.data(), s.n_h, s.n_q, s.d);
  args.k = contiguous(k.data(), s.n_h_kv, s.n_k, s.d);
  args.v = contiguous(v.data(), s.n_h_kv, s.n_k, s.d);
  args.o = contiguous(o.data(), s.n_h, s.n_q, s.d);
  args.lse = contiguous(lse.data(), s.n_h, s.n_q, 1);
  args.previous_lse = contiguous(previous_lse.data(), s.n_h, s.n_q, 1);
  args.order.data = order.data();
  args.threads = 2;
}

predict::Array PredictProblem::queries() const {
  return predict::view_array(args.q, Element::kF32, shape.n_b, shape.n_h, shape.n_q, shape.d);
}
predict::Array PredictProblem::keys() const {
  return predict::view_array(args.k, Element::kF32, shape.n_b, shape.n_h_kv, shape.n_k, shape.d);
}
predict::Array PredictProblem::values() const {
  return predict::view_array(args.v, Element::kF32, shape.n_b, shape.n_h_kv, shape.n_k, shape.d);
}

void PredictProblem::set_param(float value) {
  ParamView view;
  view.value.f32 = value;
  params.push_back(view);
}

void PredictProblem::run(const Program& program, KeptBits kept) {
  const Attend& attend = attend_of(program);
  report_rows_ = ceil_div(shape.n_q, attend.tile_q);
  report_tiles_ = ceil_div(shape.n_k, attend.columns >= 0 ? attend.keep_k : attend.tile_k);
  counts.assign(product({shape.n_b, shape.n_h, report_rows_, 3}), -1);
  tile_mask.assign(product({shape.n_b, shape.n_h, report_rows_, report_tiles_}), 77);
  args.counts = contiguous(counts.data(), shape.n_h, report_rows_, 3);
  args.tile_mask = contiguous(tile_mask.data(), shape.n_h, report_rows_, report_tiles_);
  args.params = params.data();
  PreparedLaunch prepared;
  run_ops_before_attend(program, args, kept, prepared);
  run_interpreted(program, prepared.args);
  run_ops_behind_attend(program, args, prepared);
}

std::uint8_t PredictProblem::report(int b, int h, int i, int j) const {
  return tile_mask[static_cast<std::size_t>(
      ((b * shape.n_h + h) * report_rows_ + i) * report_tiles_ + j)];
}

const float* PredictProblem::query(int b, int h, int n) const {
  return row_of(q, shape.n_h, shape.n_q, shape.d, b, h, n);
}
const float* PredictProblem::key(int b, int h, int n) const {
  return row_of(k, shape.n_h_kv, shape.n_k, shape.d, b, h / (shape.n_h / shape.n_h_kv), n);
}
const float* PredictProblem::value(int b, int h, int n) const {
  return row_of(v, shape.n_h_kv, shape.n_k, shape.d, b, h / (shape.n_h / shape.n_h_kv), n);
}

Program program_of(const std::string& text) {
  Diagnostics diagnostics;
  const SourceText source{"<test>", text};
  Program program = parse_program(source, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, source);
  return program;
}

Program program_of_body(int head_dim, const std::string& body, const std::string& params) {
  return program_of("program @test(head_dim=" + std::to_string(head_dim) + ", dtype=f32) {\n" +
                    params +
                    "  %q = input name=\"q\" : [batch, heads, n_q, d] f32\n"
                    "  %k = input name=\"k\" : [batch, heads_kv, n_k, d] f32\n"
                    "  %v = input name=\"v\" : [batch, heads_kv, n_k, d] f32\n" +
                    body + "}\n");
}

Expr expr_of(const std::string& text, Site site) {
  ParsedExpr parsed = parse_expr(text, site, {});
  EXPECT_TRUE(parsed.errors.empty()) << text;
  return std::move(parsed.expr);
}

double dot(const float* a, const float* b, int d) {
  double sum = 0;
  for (int c = 0; c < d; ++c) sum += double{a[c]} * double{b[c]};
  return sum;
}

DenseHead dense_attention(const PredictProblem& problem, int b, int h, double scale,
                          const PairMask& mask) {
  const auto& [n_b, n_h, n_h_kv, n_q, n_k, d] = problem.shape;
  DenseHead result;
  for (int q = 0; q < n_q; ++q) {
    std::vector<double> row(static_cast<std::size_t>(d));
    double sum = 0;
    for (int k = 0; k < n_k; ++k) {
      if (!mask(b, h, q, k)) continue;
      const double weight = std::exp(scale * dot(problem.query(b, h, q), problem.key(b, h, k), d));
      sum += weight;
      for (std::size_t c = 0; c < row.size(); ++c) {
        row[c] += weight * double{problem.value(b, h, k)[c]};
      }
    }
    for (const double value : row) result.o.push_back(sum == 0 ? 0.0 : value / sum);
    result.lse.push_back(std::log(sum));
  }
  return result;
}

void expect_attention(const PredictProblem& problem, double scale, const PairMask& mask,
                      double tolerance) {
  const PredictShape& s = problem.shape;
  for (int b = 0; b < s.n_b; ++b) {
    for (int h = 0; h < s.n_h; ++h) {
      const DenseHead expected = dense_attention(problem, b, h, scale, mask);
      const auto row = static_cast<std::size_t>((b * s.n_h + h) * s.n_q);
      const float* o = problem.o.data() + row * static_cast<std::size_t>(s.d);
      for (std::size_t x = 0; x < expected.o.size(); ++x) {
        ASSERT_NEAR(o[x], expected.o[x], tolerance) << "b=" << b << " h=" << h << " x=" << x;
      }
      for (std::size_t n = 0; n < expected.lse.size(); ++n) {
        const double actual = double{problem.lse[row + n]};
        if (std::isinf(expected.lse[n])) {
          ASSERT_EQ(actual, expected.lse[n]) << "lse of row " << n;
        } else {
          ASSERT_NEAR(actual, expected.lse[n], tolerance) << "lse of row " << n;
        }
      }
    }
  }
}

}  // namespace lacuna

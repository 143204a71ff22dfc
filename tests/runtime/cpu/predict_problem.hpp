// Random tensors for the CPU's ops, and straightforward double arithmetic to compare with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/program.hpp"
#include "runtime/cpu/ops/array.hpp"
#include "runtime/cpu/ops/run_ops.hpp"

namespace lacuna {

struct PredictShape {
  int n_b = 1, n_h = 2, n_h_kv = 1, n_q = 100, n_k = 130, d = 16;
};

/// The caller's tensors, f32 and contiguous.
struct PredictProblem {
  PredictShape shape;
  std::vector<float> q, k, v, o, lse, previous_lse;
  std::vector<std::int32_t> order;
  std::vector<std::int32_t> counts;
  std::vector<std::uint8_t> tile_mask;
  std::vector<ParamView> params;
  HostArgs args;

  explicit PredictProblem(const PredictShape& shape, std::uint32_t seed = 1);
  PredictProblem(const PredictProblem&) = delete;
  PredictProblem& operator=(const PredictProblem&) = delete;

  predict::Array queries() const;
  predict::Array keys() const;
  predict::Array values() const;
  void set_param(float value);  ///< one more parameter, the same everywhere

  /// Ops, interpreter, ops; reports are asked for.
  void run(const Program& program, KeptBits kept = {});
  std::uint8_t report(int b, int h, int i, int j) const;
  int report_tiles() const { return report_tiles_; }  ///< along the keys

  const float* query(int b, int h, int n) const;
  const float* key(int b, int h, int n) const;    ///< h: query head
  const float* value(int b, int h, int n) const;  ///< h: query head

 private:
  int report_rows_ = 0, report_tiles_ = 0;
};

/// A program from its text; diagnostics fail the test.
Program program_of(const std::string& text);

/// "program @test(head_dim=.., dtype=f32) {" and the inputs q, k, v, then `body`, then "}".
Program program_of_body(int head_dim, const std::string& body, const std::string& params = "");

/// An expression without parameters.
Expr expr_of(const std::string& text, Site site);

using PairMask = std::function<bool(int b, int h, int q, int k)>;

/// Attention of one query head over the pairs of `mask`, in double: o [n_q, d], then lse [n_q].
struct DenseHead {
  std::vector<double> o, lse;
};
DenseHead dense_attention(const PredictProblem& problem, int b, int h, double scale,
                          const PairMask& mask);

/// o and lse equal dense attention over the pairs of `mask`.
void expect_attention(const PredictProblem& problem, double scale, const PairMask& mask,
                      double tolerance);

double dot(const float* a, const float* b, int d);

}  // namespace lacuna

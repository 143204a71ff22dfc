// A small attention problem on the CPU whose right answer is known.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lacuna/lacuna.hpp"

namespace lacuna::dense_problem {

inline constexpr int kHeads = 4, kHeadsKv = 2, kQueries = 37, kKeys = 70, kDim = 64;

inline std::string spec_path(const std::string& name) {
  return LACUNA_SOURCE_DIR "/specs/" + name + ".json";
}

/// Inputs that vary over every index, without a random generator.
inline std::vector<float> wave(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(step * static_cast<float>(i % 9973));
  return values;
}

struct Problem {
  std::vector<float> q = wave(std::size_t{kHeads} * kQueries * kDim, 0.37F);
  std::vector<float> k = wave(std::size_t{kHeadsKv} * kKeys * kDim, 0.53F);
  std::vector<float> v = wave(std::size_t{kHeadsKv} * kKeys * kDim, 0.71F);
  std::vector<float> o = std::vector<float>(q.size(), -1);
  std::vector<float> lse = std::vector<float>(std::size_t{kHeads} * kQueries, -1);

  LaunchArgs arguments() {
    LaunchArgs args;
    args.q = Tensor(q.data(), f32, {1, kHeads, kQueries, kDim});
    args.k = Tensor(k.data(), f32, {1, kHeadsKv, kKeys, kDim});
    args.v = Tensor(v.data(), f32, {1, kHeadsKv, kKeys, kDim});
    args.o = Tensor(o.data(), f32, {1, kHeads, kQueries, kDim});
    args.lse = Tensor(lse.data(), f32, {1, kHeads, kQueries});
    return args;
  }

  /// Softmax attention in f64, every query sees every key.
  double error_against_dense() const {
    double worst = 0;
    for (int h = 0; h < kHeads; ++h) {
      for (int i = 0; i < kQueries; ++i) worst = std::max(worst, row_error(h, i));
    }
    return worst;
  }

 private:
  double row_error(int h, int i) const {
    const std::size_t row = static_cast<std::size_t>(h * kQueries + i);
    const std::size_t keys = static_cast<std::size_t>(h / (kHeads / kHeadsKv)) * kKeys * kDim;
    std::vector<double> expected(kDim, 0);
    double sum = 0;
    for (std::size_t j = 0; j < kKeys; ++j) {
      double dot = 0;
      for (std::size_t d = 0; d < kDim; ++d) {
        dot += double{q[row * kDim + d]} * double{k[keys + j * kDim + d]};
      }
      const double p = std::exp(dot / std::sqrt(double{kDim}));
      sum += p;
      for (std::size_t d = 0; d < kDim; ++d) expected[d] += p * double{v[keys + j * kDim + d]};
    }
    double worst = std::abs(std::log(sum) - double{lse[row]});
    for (std::size_t d = 0; d < kDim; ++d) {
      worst = std::max(worst, std::abs(expected[d] / sum - double{o[row * kDim + d]}));
    }
    return worst;
  }
};

inline Engine cpu_engine() {
  EngineOptions options;
  options.device = "cpu";
  options.threads = 2;
  return Engine::create(options);
}

}  // namespace lacuna::dense_problem

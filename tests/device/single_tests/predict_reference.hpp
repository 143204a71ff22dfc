// Kernels of predictors against scalar double-precision code: random operands for a configuration
// of single/predict/predict_cases.hpp, the launch on emulated blocks, and what the kernel gave
// `keep` compared with the definition of Estimate and Select (compiler/ir/program.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/device/emulation/block.hpp"
#include "tests/device/emulation/cuda.hpp"
// After the keywords of device code are gone.
#include "tests/device/single/predict/predict_cases.hpp"

namespace lacuna::device {

inline int tiles_in(int n, int tile) { return (n + tile - 1) / tile; }
inline std::size_t offset_of(long long index) { return static_cast<std::size_t>(index); }

struct PredictShape {
  int n_b = 1, n_h = 2, heads_per_kv = 2;
  int n_q = 1, n_k = 1;
};

enum class PredictFill { kNormal, kTies, kSharp };

class PredictProblem {
 public:
  PredictProblem(const PredictCase& c, const PredictShape& shape, PredictFill fill,
                 std::uint32_t seed);

  PredictKernelArgs& args() { return args_; }
  /// A NaN in this token of the first head.
  void poison_query(int q);
  /// The logits of the first head's first query tile become infinite, if its row is a summary.
  void blow_up_summary() { q_summary_[0] = std::numeric_limits<float>::infinity(); }
  /// Forgets what an earlier run left behind.
  void reset(long long scratch_floats);
  /// Runs one kernel; "" or the emulation's fault.
  std::string run(emulation::Kernel kernel, int blocks, int smem_bytes,
                  const emulation::Schedule& schedule, int threads = 256) const;

  /// Everything that is wrong with what the kernels recorded and kept, by the first few tiles.
  /// `slack`: how many times the usual error is allowed.
  std::string check(double slack = 1) const;

  int rows() const { return shape_.n_b * shape_.n_h * args_.predict.keep_q_tiles; }
  /// Of so many neighbouring query tiles.
  int groups(int q_tiles) const {
    return shape_.n_b * shape_.n_h * ((args_.predict.keep_q_tiles + q_tiles - 1) / q_tiles);
  }
  int columns() const { return args_.predict.keep_k_tiles; }
  const std::vector<unsigned>& kept() const { return kept_; }
  const std::vector<TileRecord>& records() const { return records_; }
  std::vector<float>& column_bias() { return column_bias_; }
  std::vector<float>& query_scales() { return q_scale_; }
  /// Tiles whose bit is set.
  int kept_count() const;

 private:
  struct Tile {
    double score, p;
    bool is_visible;
  };

  void fill_tokens(PredictFill fill, std::uint32_t seed);
  void fill_summaries();
  void fill_integers(std::uint32_t seed);
  void set_pointers();

  bool pair_visible(int q, int k) const;
  bool range_visible(int q1, int k0) const;
  double token_dot(int b, int h, int q, int k) const;
  double dot(int b, int h, int i, int r, int c) const;
  double reference_lse(int b, int h, int q) const;
  double value_of(std::uint16_t bits) const;
  int row_count(int i) const;
  int row_token(int i, int r) const;
  std::vector<Tile> work_tile_index(int b, int h, int i) const;
  std::string check_row(int row, const std::vector<Tile>& tiles, double slack) const;
  std::string check_first(int row, const std::vector<Tile>& tiles) const;
  bool is_kept(int row, int j) const {
    const long long word = static_cast<long long>(row) * args_.predict.keep_words + j / 32;
    return (kept_[static_cast<std::size_t>(word)] >> (j % 32) & 1U) != 0;
  }

  PredictCase case_;
  PredictShape shape_;
  int n_h_kv_;
  PredictKernelArgs args_{};
  std::vector<std::uint16_t> q_, k_;
  std::vector<float> q_summary_, k_summary_, q_similarity_, k_similarity_;
  std::vector<signed char> q_values_, k_values_;
  std::vector<float> q_scale_, k_scale_, row_bias_, column_bias_, previous_lse_;
  std::vector<float> scratch_;
  std::vector<unsigned> kept_;
  std::vector<TileRecord> records_;
};

}  // namespace lacuna::device

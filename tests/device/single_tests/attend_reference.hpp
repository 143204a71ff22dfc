// Quantised and gathered attention computed tile by tile in plain double precision, with the
// roundings the semantics prescribe (integers of q and k, e4m3 values and weights) and no others
// but that of the weights to 16 bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/device/single/attend/attend_variants.hpp"
#include "tests/device/single/run_single.hpp"

namespace lacuna::device {

struct AttendShapeOf {
  int n_b = 1, n_h = 1, n_h_kv = 1, n_q = 1, n_k = 1;
  std::string text() const;
};

/// A problem for a variant: tensors, what the kernels before attend would have made of them, and
/// the argument block that points to all of it.
struct AttendProblem {
  AttendProblem(const single::AttendChoice& of, const AttendShapeOf& shape, std::uint32_t seed);
  AttendProblem(const AttendProblem&) = delete;
  AttendProblem& operator=(const AttendProblem&) = delete;
  ~AttendProblem() = default;

  single::AttendChoice choice;
  AttendShapeOf shape;
  int q_tiles = 0, k_tiles = 0;  ///< k_tiles: of columns where keys are gathered
  int q_padded = 0, k_padded = 0;
  Tensor q, k, v, o;
  Guarded<float> lse;
  Guarded<int> counts;
  Guarded<unsigned char> tile_mask;
  std::vector<signed char> q_values, k_values;
  std::vector<float> q_scale, k_scale, row_bias, column_bias, v_scale;
  std::vector<unsigned char> v_values;
  std::vector<unsigned> kept;
  Guarded<int> gathered;
  SingleArgs args;

  emulation::Format format() const;
  bool is_kept(int b, int h, int i, int column) const;  ///< by a head of the group if shared
  /// The value that attend sees: rounded to e4m3 if it is to be.
  double value(int b, int h_kv, int token, int channel) const;
  /// The logit of attend's operands after the score hook; the mask is not asked.
  double logit(int b, int h, int q_token, int k_token) const;
  bool is_visible(int q_token, int k_token) const;

 private:
  void make_keys_uneven();  ///< so that gates find something to skip
  void quantise(bool is_query);
  void quantise_values();
  void choose_columns(std::mt19937& random);
  void fill_args();
};

struct AttendResults {
  std::vector<double> o, lse;  ///< [n_b, n_h, n_q, d], [n_b, n_h, n_q]
  std::vector<int> counts;
  std::vector<unsigned char> tile_mask;
  bool operator==(const AttendResults&) const = default;
};

AttendResults reference(const AttendProblem& problem);

}  // namespace lacuna::device

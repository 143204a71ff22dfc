// What a predictor's kernels are given: random operands, and the launch on emulated blocks.
#include <cmath>
#include <limits>
#include <random>

#include "tests/device/emulation/matrix.hpp"
#include "tests/device/single_tests/predict_reference.hpp"

namespace lacuna::device {
namespace {

int padded_tokens(int n) { return tiles_in(n, 256) * 256; }

emulation::Format format_of(const PredictCase& c) {
  return c.is_f16 ? emulation::Format::kF16 : emulation::Format::kBF16;
}

}  // namespace

PredictProblem::PredictProblem(const PredictCase& c, const PredictShape& shape, PredictFill fill,
                               std::uint32_t seed)
    : case_(c), shape_(shape), n_h_kv_(shape.n_h / shape.heads_per_kv) {
  AttendArgs& attend = args_.attend;
  attend.n_b = shape.n_b, attend.n_h = shape.n_h, attend.heads_per_kv = shape.heads_per_kv;
  attend.n_q = shape.n_q, attend.n_k = shape.n_k;
  attend.scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  PredictArgs& predict = args_.predict;
  predict.q_padded = padded_tokens(shape.n_q), predict.k_padded = padded_tokens(shape.n_k);
  predict.keep_q_tiles = tiles_in(shape.n_q, c.tile_q);
  predict.keep_k_tiles = tiles_in(shape.n_k, c.tile_k);
  predict.keep_words = tiles_in(predict.keep_k_tiles, 32);
  args_.tau = 0.02F, args_.theta = 0.3F, args_.mass = 0.8F, args_.top = 3;
  args_.sink = 8, args_.local = 24;
  fill_tokens(fill, seed);
  fill_summaries();
  fill_integers(seed + 1);
  set_pointers();
}

void PredictProblem::fill_tokens(PredictFill fill, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const float size = fill == PredictFill::kSharp ? 3.0F : 1.0F;
  const auto draw = [&](std::vector<std::uint16_t>& x, int heads, int n) {
    x.resize(offset_of(shape_.n_b * heads) * offset_of(n) * offset_of(case_.head_dim));
    for (std::uint16_t& bits : x) {
      bits = emulation::round_to(format_of(case_), size * normal(random));
    }
  };
  draw(q_, shape_.n_h, shape_.n_q);
  draw(k_, n_h_kv_, shape_.n_k);
  if (fill == PredictFill::kTies) {  // every key twice, at a distance of half a tile or more
    const std::size_t d = offset_of(case_.head_dim),
                      period = d * offset_of(std::max(case_.tile_k, 4));
    for (std::size_t x = period; x < k_.size(); ++x) k_[x] = k_[x % period];
  }
  previous_lse_.resize(offset_of(shape_.n_b * shape_.n_h) * offset_of(shape_.n_q));
  for (float& lse : previous_lse_) lse = 3.0F + normal(random);
  previous_lse_[0] = -std::numeric_limits<float>::infinity();
}

void PredictProblem::poison_query(int q) {
  q_[offset_of(q) * offset_of(case_.head_dim) + 5] =
      emulation::round_to(format_of(case_), std::numeric_limits<float>::quiet_NaN());
}

double PredictProblem::value_of(std::uint16_t bits) const {
  return emulation::to_float(format_of(case_), bits);
}

void PredictProblem::fill_summaries() {
  const int d = case_.head_dim;
  const auto average = [&](std::vector<float>& means, const std::vector<std::uint16_t>& x,
                           int heads, int n, int tile) {
    for (int head = 0; head < shape_.n_b * heads; ++head)
      for (int n0 = 0; n0 < n; n0 += tile)
        for (int column = 0; column < d; ++column) {
          double sum = 0;
          const int end = std::min(n0 + tile, n);
          for (int row = n0; row < end; ++row)
            sum += value_of(x[offset_of((static_cast<long long>(head) * n + row) * d + column)]);
          means.push_back(static_cast<float>(4 * sum / (end - n0)));  // larger: sharper rows
        }
  };
  average(q_summary_, q_, shape_.n_h, shape_.n_q, case_.tile_q);
  average(k_summary_, k_, n_h_kv_, shape_.n_k, case_.tile_k);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform;
  q_similarity_.resize(offset_of(shape_.n_b * shape_.n_h * args_.predict.keep_q_tiles));
  k_similarity_.resize(offset_of(shape_.n_b * n_h_kv_ * args_.predict.keep_k_tiles));
  for (float& x : q_similarity_) x = 0.2F + uniform(random);
  for (float& x : k_similarity_) x = uniform(random);
}

void PredictProblem::fill_integers(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform;
  const int largest = case_.bits == 4 ? 7 : 127;
  std::uniform_int_distribution<int> integer(-largest, largest);
  const PredictArgs& predict = args_.predict;
  const auto draw = [&](std::vector<signed char>& values, std::vector<float>& scales,
                        std::vector<float>& bias, int heads, int bias_heads, int n) {
    values.resize(offset_of(shape_.n_b * heads) * offset_of(n) * offset_of(case_.head_dim));
    for (signed char& x : values) x = static_cast<signed char>(integer(random));
    scales.resize(offset_of(shape_.n_b * heads) * offset_of(n));
    for (float& x : scales) x = (0.5F + uniform(random)) * 2 / static_cast<float>(largest);
    bias.resize(offset_of(shape_.n_b * bias_heads) * offset_of(n));
    for (float& x : bias) x = 4 * uniform(random);
  };
  draw(q_values_, q_scale_, row_bias_, shape_.n_h, shape_.n_h, predict.q_padded);
  draw(k_values_, k_scale_, column_bias_, n_h_kv_, shape_.n_h, predict.k_padded);
}

void PredictProblem::set_pointers() {
  const long long d = case_.head_dim;
  AttendArgs& attend = args_.attend;
  attend.q = {q_.data(), shape_.n_h * shape_.n_q * d, shape_.n_q * d, d};
  attend.k = {k_.data(), n_h_kv_ * shape_.n_k * d, shape_.n_k * d, d};
  PredictArgs& predict = args_.predict;
  predict.previous_lse = {previous_lse_.data(), static_cast<long long>(shape_.n_h) * shape_.n_q,
                          shape_.n_q};
  predict.q_summary = q_summary_.data(), predict.k_summary = k_summary_.data();
  predict.q_similarity = q_similarity_.data(), predict.k_similarity = k_similarity_.data();
  predict.estimate_q_values = q_values_.data(), predict.estimate_k_values = k_values_.data();
  predict.estimate_q_scale = q_scale_.data(), predict.estimate_k_scale = k_scale_.data();
  predict.estimate_q_groups = predict.q_padded, predict.estimate_k_groups = predict.k_padded;
  predict.row_bias = row_bias_.data(), predict.column_bias = column_bias_.data();
}

void PredictProblem::reset(long long scratch_floats) {
  scratch_.assign(offset_of(scratch_floats), std::numeric_limits<float>::quiet_NaN());
  kept_.assign(offset_of(rows()) * offset_of(args_.predict.keep_words), 0xffffffffU);
  records_.assign(offset_of(rows()) * offset_of(columns()), {});
  args_.predict.scores = scratch_.data();
  args_.predict.kept = kept_.data();
  args_.records = records_.data();
}

std::string PredictProblem::run(emulation::Kernel kernel, int blocks, int smem_bytes,
                                const emulation::Schedule& schedule, int threads) const {
  for (int block = 0; block < blocks; ++block) {
    std::string fault =
        emulation::run_block({kernel, &args_, block, threads, smem_bytes, blocks}, schedule);
    if (!fault.empty()) return "block " + std::to_string(block) + ": " + fault;
  }
  return "";
}

}  // namespace lacuna::device

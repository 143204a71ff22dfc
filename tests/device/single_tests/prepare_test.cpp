// prepare/prepare.cuh on emulated blocks, against scalar arithmetic.
#include "tests/device/single/prepare/prepare.hpp"

#include <cmath>
#include <limits>

#include "tests/device/single/run_single.hpp"

namespace lacuna::device {
namespace {

using single::PrepareShape;
using single::PrepareVariant;

constexpr int kPaddedTo = 256;
constexpr float kNoneSimilar = -std::numeric_limits<float>::infinity();

int rounded_up(int n, int unit) { return (n + unit - 1) / unit * unit; }
std::size_t size_of(int a, int b, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

struct TokensOfHeads {
  int n_b, n_h, heads_per_kv, n;
  bool is_token_major;
  float factor = 1;  ///< of all numbers
};

/// Tokens that share a scale, as compiler/ir/program.hpp has it: an equal number, an equal
/// scale.
int group_of(int group, bool is_query, int tile, int token) {
  const int in_tile = token % tile, first = token / tile;
  if (group == 2 && is_query) return first * (tile / 2) + in_tile / 16 * 8 + in_tile % 8;
  if (group == 2) return first * (tile / 8) + in_tile / 32 * 4 + in_tile % 8 / 2;
  if (group == 1 && is_query) return first * (tile / 16) + in_tile / 16;
  return first;
}
int groups_of(int group, bool is_query, int tile, int tokens) {
  const int of_tile = group == 2               ? tile / (is_query ? 2 : 8)
                      : group == 1 && is_query ? tile / 16
                                               : 1;
  return tokens / tile * of_tile;
}

/// One side of a problem: the tensor, what the kernel reads, and everything it may write.
struct Side {
  PrepareShape config;
  TokensOfHeads shape;
  int heads, copies, padded, tiles, groups = 0, estimate_groups = 0;
  Tensor x;
  std::vector<float> mean, onto;  ///< [b, heads, d] of this side, of the other
  Guarded<float> summary, similarity, scale, estimate_scale, bias;
  Guarded<signed char> values, estimate_values;

  Side(const PrepareShape& c, const TokensOfHeads& s)
      : config(c),
        shape(s),
        heads(c.is_query ? s.n_h : s.n_h / s.heads_per_kv),
        copies(c.is_query ? 1 : s.heads_per_kv),
        padded(rounded_up(s.n, kPaddedTo)),
        tiles(tile() == 0 ? 0 : rounded_up(s.n, tile()) / tile()),
        groups(c.bits == 0 ? 0 : groups_of(c.group, c.is_query, c.tile, padded)),
        estimate_groups(c.estimate_bits == 0
                            ? 0
                            : groups_of(c.estimate_group, c.is_query, c.estimate_tile, padded)),
        x(random_tensor(s.n_b, heads, s.n, c.head_dim,
                        c.is_bf16 ? emulation::Format::kBF16 : emulation::Format::kF16,
                        s.is_token_major, 21, s.factor)),
        summary(size_of(all_heads(), tiles, c.head_dim)),
        similarity(size_of(all_heads(), tiles)),
        scale(size_of(all_heads(), groups)),
        estimate_scale(size_of(all_heads(), estimate_groups)),
        bias(size_of(all_heads(), copies, padded)),
        values(size_of(all_heads(), padded, c.head_dim)),
        estimate_values(values.size()) {
    std::mt19937 random(22);
    std::normal_distribution<float> normal;
    mean.resize(size_of(all_heads(), c.head_dim));
    onto.resize(size_of(s.n_b, s.n_h, c.head_dim));
    for (float& value : mean) value = normal(random);
    for (float& value : onto) value = normal(random);
    set_zeros();
  }

  /// Some tokens, and whole tiles of the last head, are zero once the mean is taken away.
  void set_zeros() {
    const auto format = config.is_bf16 ? emulation::Format::kBF16 : emulation::Format::kF16;
    for (float& value : mean) value *= shape.factor;
    for (float& value : mean)
      value = emulation::to_float(format, emulation::round_to(format, value));
    for (int head = 0; head < all_heads(); ++head)
      for (int token = 0; token < shape.n; ++token) {
        const bool is_in_zero_tile = head == all_heads() - 1 && token >= 64 && token < 192;
        if (token % 7 != 3 && !is_in_zero_tile) continue;
        for (int column = 0; column < config.head_dim; ++column)
          x.set(head / heads, head % heads, token, column,
                config.smooth ? mean[at(head, column)] : 0.0F);
      }
  }
  std::size_t at(int head, int column) const {
    return size_of(head, config.head_dim) + static_cast<std::size_t>(column);
  }

  /// The tiles of the predictor: of what is asked for, else none.
  int tile() const {
    return config.summary_tile != 0 ? config.summary_tile : config.similarity_tile;
  }
  int all_heads() const { return shape.n_b * heads; }

  SingleArgs args() {
    SingleArgs args;
    AttendArgs& a = args.attend;
    PredictArgs& p = args.predict;
    a.n_b = shape.n_b, a.n_h = shape.n_h, a.heads_per_kv = shape.heads_per_kv;
    a.n_q = a.n_k = shape.n;
    p.q_padded = p.k_padded = padded;
    p.keep_q_tiles = p.keep_k_tiles = tiles;
    p.q_groups = p.k_groups = groups;
    p.estimate_q_groups = p.estimate_k_groups = estimate_groups;
    (config.is_query ? a.q : a.k) = x.arg();
    p.q_mean = config.is_query ? mean.data() : onto.data();
    p.k_mean = config.is_query ? onto.data() : mean.data();
    (config.is_query ? p.q_summary : p.k_summary) = summary.data();
    (config.is_query ? p.q_similarity : p.k_similarity) = similarity.data();
    (config.is_query ? p.q_values : p.k_values) = values.data();
    (config.is_query ? p.q_scale : p.k_scale) = scale.data();
    (config.is_query ? p.estimate_q_values : p.estimate_k_values) = estimate_values.data();
    (config.is_query ? p.estimate_q_scale : p.estimate_k_scale) = estimate_scale.data();
    (config.is_query ? p.row_bias : p.column_bias) = bias.data();
    return args;
  }

  std::string run(const PrepareVariant& variant, const emulation::Schedule& schedule) {
    return run_single(variant.kernel, args(), all_heads() * (padded / config.tokens), 32768,
                      schedule);
  }

  /// x - mean as the kernel has it, in f32; `head` counts all batch entries.
  float smoothed(int head, int token, int column, bool smooth) const {
    const float value = x.at(head / heads, head % heads, token, column);
    return smooth ? value - mean[at(head, column)] : value;
  }
};

void expect_near(double got, double expected, double magnitude, const std::string& what) {
  constexpr double kSmallest = std::numeric_limits<float>::denorm_min();
  if (std::abs(got - expected) <= 2e-6 * magnitude + kSmallest) return;
  ADD_FAILURE() << what << ": " << got << ", expected " << expected;
}

std::string place(int head, int token) {
  return "head " + std::to_string(head) + ", " + std::to_string(token);
}

void check_summaries(const Side& side) {
  const int tile = side.config.summary_tile, d = side.config.head_dim;
  for (int head = 0; tile != 0 && head < side.all_heads(); ++head)
    for (int first = 0; first < side.shape.n; first += tile)
      for (int column = 0; column < d; ++column) {
        double sum = 0, magnitude = 0;
        const int end = std::min(first + tile, side.shape.n);
        for (int token = first; token < end; ++token) {
          const double x = side.smoothed(head, token, column, side.config.smooth_summary);
          sum += x, magnitude += std::abs(x);
        }
        const double got = side.summary[side.at(head * side.tiles + first / tile, column)];
        expect_near(got, sum / (end - first), magnitude / (end - first),
                    "summary of " + place(head, first));
      }
}

double similarity_of(const Side& side, int head, int first, int end) {
  const int d = side.config.head_dim;
  std::vector<double> sums(static_cast<std::size_t>(d));
  double longest = 0;
  int tokens = 0;
  for (int token = first; token < end; ++token) {
    double square = 0;
    for (int column = 0; column < d; ++column)
      square += std::pow(side.smoothed(head, token, column, side.config.smooth), 2);
    if (square == 0) continue;
    ++tokens;
    longest = std::max(longest, square);
    for (int column = 0; column < d; ++column)
      sums[static_cast<std::size_t>(column)] +=
          side.smoothed(head, token, column, side.config.smooth) /
          (side.config.gram_max ? 1 : std::sqrt(square));
  }
  double square = 0;
  for (const double sum : sums) square += std::pow(sum / tokens, 2);
  if (tokens == 0) return kNoneSimilar;
  return side.config.gram_max ? square / longest : square;
}

void check_similarities(const Side& side) {
  const int tile = side.config.similarity_tile;
  for (int head = 0; tile != 0 && head < side.all_heads(); ++head)
    for (int first = 0; first < side.shape.n; first += tile) {
      const double expected =
          similarity_of(side, head, first, std::min(first + tile, side.shape.n));
      const auto number = static_cast<std::size_t>(head * side.tiles + first / tile);
      if (std::isinf(expected)) {
        EXPECT_EQ(side.similarity[number], kNoneSimilar) << place(head, first);
      } else {
        expect_near(side.similarity[number], expected, 1, "similarity of " + place(head, first));
      }
    }
}

/// Scales and integers are those of f32 arithmetic to the last bit.
void check_integers(const Side& side, int bits, int group, int tile, int groups,
                    const Guarded<float>& scales, const Guarded<signed char>& values) {
  const int n = side.shape.n, d = side.config.head_dim;
  const float range = bits == 8 ? 127.0F : 7.0F;
  for (int head = 0; bits != 0 && head < side.all_heads(); ++head) {
    std::vector<float> largest(static_cast<std::size_t>(groups));
    const auto largest_of = [&](int token) -> float& {
      return largest[static_cast<std::size_t>(group_of(group, side.config.is_query, tile, token))];
    };
    for (int token = 0; token < n; ++token)
      for (int column = 0; column < d; ++column)
        largest_of(token) = std::max(
            largest_of(token), std::abs(side.smoothed(head, token, column, side.config.smooth)));
    for (int number = 0; number < groups; ++number) {
      const float m = largest[static_cast<std::size_t>(number)];
      ASSERT_EQ(scales[static_cast<std::size_t>(head * groups + number)], m == 0 ? 1 : m / range)
          << "group " << number << " of head " << head;
    }
    for (int token = 0; token < side.padded; ++token) {
      const float scale = largest_of(token) == 0 ? 1 : largest_of(token) / range;
      for (int column = 0; column < d; ++column) {
        const float x = token < n ? side.smoothed(head, token, column, side.config.smooth) : 0.0F;
        ASSERT_EQ(values[side.at(head * side.padded + token, column)],
                  static_cast<int>(std::round(x / scale)))
            << place(head, token) << ", column " << column;
      }
    }
  }
}

void check_biases(const Side& side) {
  const int d = side.config.head_dim, n_h = side.heads * side.copies;
  for (int head = 0; side.config.bias && head < side.shape.n_b * n_h; ++head) {
    const int own = head / side.copies;
    const int other = side.config.is_query ? head / side.shape.heads_per_kv : head;
    const bool smooth = side.config.smooth && !side.config.is_query;
    for (int token = 0; token < side.padded; ++token) {
      double dot = 0, magnitude = 0;
      for (int column = 0; token < side.shape.n && column < d; ++column) {
        const double term = double{side.smoothed(own, token, column, smooth)} *
                            double{side.onto[side.at(other, column)]};
        dot += term, magnitude += std::abs(term);
      }
      expect_near(side.bias[size_of(head, side.padded) + static_cast<std::size_t>(token)], dot,
                  magnitude, "bias of " + place(head, token));
    }
  }
}

void check(const Side& side) {
  check_summaries(side);
  check_similarities(side);
  const PrepareShape& c = side.config;
  check_integers(side, c.bits, c.group, c.tile, side.groups, side.scale, side.values);
  check_integers(side, c.estimate_bits, c.estimate_group, c.estimate_tile, side.estimate_groups,
                 side.estimate_scale, side.estimate_values);
  check_biases(side);
  EXPECT_TRUE(side.summary.is_margin_intact() && side.similarity.is_margin_intact());
  EXPECT_TRUE(side.scale.is_margin_intact() && side.values.is_margin_intact());
  EXPECT_TRUE(side.estimate_scale.is_margin_intact() && side.estimate_values.is_margin_intact());
  EXPECT_TRUE(side.bias.is_margin_intact());
}

class Prepare : public testing::TestWithParam<PrepareVariant> {};

TEST_P(Prepare, AgreesWithScalarArithmetic) {
  for (const TokensOfHeads& shape :
       {TokensOfHeads{1, 2, 1, 1, false}, TokensOfHeads{1, 4, 4, 63, true},
        TokensOfHeads{2, 4, 2, 129, true}, TokensOfHeads{1, 2, 2, 1000, false}}) {
    SCOPED_TRACE("n = " + std::to_string(shape.n));
    Side side(GetParam().shape, shape);
    ASSERT_EQ(side.run(GetParam(), kPlainSchedule), "");
    check(side);
  }
}

TEST_P(Prepare, GivesTheSameBitsUnderAnySchedule) {
  Side plain(GetParam().shape, {1, 2, 2, 300, false});
  ASSERT_EQ(plain.run(GetParam(), kPlainSchedule), "");
  for (const emulation::Schedule& schedule : kOtherSchedules) {
    Side other(GetParam().shape, {1, 2, 2, 300, false});
    ASSERT_EQ(other.run(GetParam(), schedule), "");
    EXPECT_TRUE(plain.summary == other.summary && plain.similarity == other.similarity);
    EXPECT_TRUE(plain.scale == other.scale && plain.values == other.values);
    EXPECT_TRUE(plain.estimate_scale == other.estimate_scale);
    EXPECT_TRUE(plain.estimate_values == other.estimate_values && plain.bias == other.bias);
  }
}

/// Far from 1, where squares and reciprocals leave the range of f32.
TEST_P(Prepare, IsExactForTinyAndHugeNumbers) {
  const bool is_bf16 = GetParam().shape.is_bf16;
  for (const float factor : {is_bf16 ? 0x1p-130F : 0x1p-20F, is_bf16 ? 0x1p-80F : 0x1p-10F,
                             is_bf16 ? 0x1p100F : 0x1p11F}) {
    SCOPED_TRACE(factor);
    Side side(GetParam().shape, {1, 2, 1, 150, false, factor});
    ASSERT_EQ(side.run(GetParam(), kPlainSchedule), "");
    check(side);
  }
}

/// What other tokens have of their own does not change: integers, biases, other tiles. The sums of
/// its own tile stay numbers.
TEST_P(Prepare, KeepsWhatIsNotFiniteInItsToken) {
  using Limits = std::numeric_limits<float>;
  constexpr int kToken = 77;
  const TokensOfHeads shape = {1, 1, 1, 300, false};
  for (const float value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    SCOPED_TRACE(value);
    Side plain(GetParam().shape, shape), other(GetParam().shape, shape);
    const int d = plain.config.head_dim;
    for (int column = 0; column < d; ++column) {
      plain.x.set(0, 0, kToken, column, plain.config.smooth ? plain.mean[plain.at(0, column)] : 0);
      other.x.set(0, 0, kToken, column, value);
    }
    ASSERT_EQ(plain.run(GetParam(), kPlainSchedule), "");
    ASSERT_EQ(other.run(GetParam(), kPlainSchedule), "");
    EXPECT_TRUE(plain.scale == other.scale && plain.estimate_scale == other.estimate_scale);
    for (std::size_t n = 0; n < plain.values.size(); ++n) {
      if (static_cast<int>(n) / d == kToken && std::isinf(value)) continue;  // saturates
      ASSERT_EQ(plain.values[n], other.values[n]) << n;
      ASSERT_EQ(plain.estimate_values[n], other.estimate_values[n]) << n;
    }
    for (std::size_t n = 0; n < plain.bias.size(); ++n)
      ASSERT_TRUE(n == kToken || plain.bias[n] == other.bias[n]) << n;
    for (std::size_t n = 0; n < plain.summary.size(); ++n) {
      const bool has_token = static_cast<int>(n) / d == kToken / plain.tile();
      ASSERT_TRUE(has_token ? std::isfinite(other.summary[n])
                            : plain.summary[n] == other.summary[n])
          << n;
    }
    for (std::size_t n = 0; n < plain.similarity.size(); ++n)
      ASSERT_EQ(std::isfinite(plain.similarity[n]), std::isfinite(other.similarity[n])) << n;
  }
}

std::string name_of(const testing::TestParamInfo<PrepareVariant>& info) {
  const PrepareShape& c = info.param.shape;
  return std::string(c.is_query ? "q" : "k") + "_d" + std::to_string(c.head_dim) + "_" +
         std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(Variants, Prepare, testing::ValuesIn(single::prepare_variants()), name_of);

}  // namespace
}  // namespace lacuna::device

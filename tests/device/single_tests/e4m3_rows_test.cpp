// Keys and values of e4m3 in the mma family: the bits of a kernel that is given, in 16 bits, the
// numbers that the codes stand for. Hand-configured kernels on emulated blocks.
#include "tests/device/single/attend/e4m3_rows.hpp"

#include <algorithm>
#include <random>

#include "args/kv_scale_args.cuh"
#include "tests/device/emulation/byte_matrix.hpp"
#include "tests/device/single/run_single.hpp"

namespace single {
void PrintTo(const RowsVariant& variant, std::ostream* out);  // found by GoogleTest
void PrintTo(const RowsVariant& variant, std::ostream* out) { *out << variant.name; }
}  // namespace single

namespace lacuna::device {
namespace {

using single::RowsVariant;

struct RowsShape {
  int n_b, n_h, n_h_kv, n_q, n_k;
};

/// Layout of lacuna::Args of single/attend/e4m3_rows.cpp.
struct RowsArgs {
  AttendArgs attend{};
  KvScaleArgs kv_scales{};
};

/// Rows of codes [n_b, heads, n, d], with unused bytes between rows, which are NaN.
struct Codes {
  int heads, n, d, row;
  std::vector<std::uint8_t> bytes;
  std::vector<float> scales;  ///< [n_b, heads]

  Codes(int n_b, int heads, int n, int d, std::mt19937& random)
      : heads(heads), n(n), d(d), row(d + 16), bytes(size(n_b) + 16, 0x7f), scales() {
    std::uniform_int_distribution<int> any(0, 255);
    std::uniform_real_distribution<float> scale(0.003F, 0.02F);
    for (int r = 0; r < n_b * heads * n; ++r) {
      for (int c = 0; c < d; ++c) {
        const int code = any(random);
        at(r, c) = static_cast<std::uint8_t>((code & 0x7f) == 0x7f ? 0 : code);
      }
    }
    for (int h = 0; h < n_b * heads; ++h) scales.push_back(scale(random));
  }
  std::size_t size(int n_b) const {
    return static_cast<std::size_t>(n_b) * static_cast<std::size_t>(heads) *
           static_cast<std::size_t>(n) * static_cast<std::size_t>(row);
  }
  /// First byte at a multiple of 16.
  std::uint8_t* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    return bytes.data() + (16 - address % 16) % 16;
  }
  std::uint8_t& at(int r, int c) {
    return data()[static_cast<std::size_t>(r) * static_cast<std::size_t>(row) +
                  static_cast<std::size_t>(c)];
  }
  TensorArg arg() {
    const long long head = static_cast<long long>(n) * row;
    return {data(), heads * head, head, row};
  }
  /// The numbers in 16 bits; scales of 1 without `scaled`.
  Tensor numbers(int n_b, emulation::Format format, bool scaled) {
    Tensor tensor(n_b, heads, n, d, format, false);
    for (int b = 0; b < n_b; ++b)
      for (int h = 0; h < heads; ++h)
        for (int token = 0; token < n; ++token)
          for (int c = 0; c < d; ++c) {
            const float scale = scaled ? scales[static_cast<std::size_t>(b * heads + h)] : 1.0F;
            tensor.set(b, h, token, c,
                       emulation::e4m3_to_float(at((b * heads + h) * n + token, c)) * scale);
          }
    return tensor;
  }
};

struct Results {
  std::vector<std::uint16_t> o;
  std::vector<float> lse;
  std::vector<int> counts;
  bool operator==(const Results&) const = default;
};

class Launch {
 public:
  Launch(const RowsVariant& variant, const RowsShape& shape, bool has_scales)
      : variant_(variant),
        s_(shape),
        has_scales_(has_scales),
        format_(variant.is_bf16 ? emulation::Format::kBF16 : emulation::Format::kF16),
        random_(7),
        k_(s_.n_b, s_.n_h_kv, s_.n_k, variant.head_dim, random_),
        v_(s_.n_b, s_.n_h_kv, s_.n_k, variant.head_dim, random_),
        q_(random_tensor(s_.n_b, s_.n_h, s_.n_q, variant.head_dim, format_, true, 3)) {}

  /// Fails the test on a fault.
  Results run(bool of_e4m3, const emulation::Schedule& schedule = kPlainSchedule) {
    const int tiles = (s_.n_q + variant_.tile_q - 1) / variant_.tile_q;
    Tensor o(s_.n_b, s_.n_h, s_.n_q, variant_.head_dim, format_, false);
    Tensor k = k_.numbers(s_.n_b, format_, has_scales_),
           v = v_.numbers(s_.n_b, format_, has_scales_);
    Results results;
    results.lse.resize(static_cast<std::size_t>(s_.n_b * s_.n_h * s_.n_q));
    results.counts.resize(static_cast<std::size_t>(s_.n_b * s_.n_h * tiles * 3));
    RowsArgs args;
    args.attend.q = q_.arg(), args.attend.o = o.arg();
    args.attend.k = of_e4m3 ? k_.arg() : k.arg(), args.attend.v = of_e4m3 ? v_.arg() : v.arg();
    args.attend.lse = {results.lse.data(), s_.n_h * s_.n_q, s_.n_q};
    args.attend.counts = results.counts.data();
    args.attend.n_b = s_.n_b, args.attend.n_h = s_.n_h,
    args.attend.heads_per_kv = s_.n_h / s_.n_h_kv;
    args.attend.n_q = s_.n_q, args.attend.n_k = s_.n_k, args.attend.q_tiles = tiles;
    args.attend.k_tiles = (s_.n_k + variant_.tile_k - 1) / variant_.tile_k;
    args.attend.scale = has_scales_ ? 0.5F : 1e-4F;
    if (has_scales_)
      args.kv_scales = {k_.scales.data(), s_.n_h_kv, 1, v_.scales.data(), s_.n_h_kv, 1};
    const int blocks = s_.n_b * s_.n_h * tiles;
    for (int block = 0; block < blocks; ++block) {
      EXPECT_EQ(
          emulation::run_block(
              {of_e4m3 ? variant_.of_e4m3 : variant_.of_16_bits, &args, block, variant_.tile_q * 2,
               of_e4m3 ? variant_.smem_bytes_e4m3 : variant_.smem_bytes_16_bits, blocks},
              schedule),
          "");
    }
    for (int b = 0; b < s_.n_b; ++b)
      for (int h = 0; h < s_.n_h; ++h)
        for (int token = 0; token < s_.n_q; ++token)
          for (int c = 0; c < variant_.head_dim; ++c)
            results.o.push_back(o.element(b, h, token, c));
    return results;
  }

 private:
  const RowsVariant& variant_;
  RowsShape s_;
  bool has_scales_;
  emulation::Format format_;
  std::mt19937 random_;
  Codes k_, v_;
  Tensor q_;
};

class E4m3Rows : public testing::TestWithParam<RowsVariant> {};

TEST_P(E4m3Rows, AreTheNumbersThatTheirCodesStandFor) {
  for (const RowsShape& shape :
       {RowsShape{1, 1, 1, 1, 1}, {2, 4, 2, 65, 129}, {1, 2, 1, 130, 300}, {1, 2, 2, 1, 200}}) {
    for (const bool has_scales : {true, false}) {
      SCOPED_TRACE(shape.n_k);
      Launch launch(GetParam(), shape, has_scales);
      const Results got = launch.run(true);
      EXPECT_TRUE(got == launch.run(false));
      EXPECT_GT(std::ranges::count_if(got.o, [](std::uint16_t x) { return (x & 0x7fff) != 0; }), 0);
    }
  }
}

TEST_P(E4m3Rows, GiveTheSameBitsUnderAnySchedule) {
  Launch launch(GetParam(), {1, 2, 1, 140, 300}, true);
  const Results expected = launch.run(true);
  for (const emulation::Schedule& schedule : kOtherSchedules)
    EXPECT_TRUE(launch.run(true, schedule) == expected);
}

INSTANTIATE_TEST_SUITE_P(Mma, E4m3Rows, testing::ValuesIn(single::rows_variants()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lacuna::device

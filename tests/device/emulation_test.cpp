// The emulation itself: its instructions against plain arithmetic, and that it shows what it is
// there to show - races, missing waits, diverged warps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "tests/device/emulation/cuda.hpp"

namespace emulation {
namespace {

constexpr int kSmemBytes = 1024;

/// Runs `body` as the kernel of one block; its argument is `result`.
template <class Result>
std::string run(void (*body)(const void*), Result& result, int threads = kWarpLanes,
                const Schedule& schedule = {}) {
  alignas(128) static unsigned char smem[kSmemBytes + 16];
  return run_block({{body, smem}, &result, 0, threads, kSmemBytes}, schedule);
}

template <class Result>
Result& result_of(const void* args) {
  return *static_cast<Result*>(const_cast<void*>(args));
}

// ---- Instructions. ----

struct Matrices {
  std::array<std::array<float, 16>, 16> a;  ///< [row][depth]
  std::array<std::array<float, 8>, 16> b;   ///< [depth][column]
  std::array<std::array<float, 8>, 16> c;   ///< [row][column]
};

Matrices small_integers() {
  Matrices m{};
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t x = 0; x < 16; ++x) m.a[row][x] = static_cast<float>((row * 7 + x * 3) % 11);
    for (std::size_t x = 0; x < 8; ++x) m.b[row][x] = static_cast<float>((row * 5 + x) % 9) - 4;
  }
  return m;
}

/// The layouts of a, b and c as the PTX manual gives them for the fragments of
/// mma.m16n8k16 with 16-bit elements.
void multiply(const void* args) {
  auto& m = result_of<Matrices>(args);
  const std::size_t group = threadIdx.x / 4, in_group = threadIdx.x % 4;
  const auto pack = [](float low, float high) {
    return round_to(Format::kBF16, low) | std::uint32_t{round_to(Format::kBF16, high)} << 16;
  };
  std::uint32_t a[4], b[2];
  for (std::size_t i = 0; i < 8; i += 2) {
    const std::size_t row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
    const std::size_t column = in_group * 2 + (i < 4 ? 0 : 8);
    a[i / 2] = pack(m.a[row][column], m.a[row][column + 1]);
  }
  for (std::size_t i = 0; i < 4; i += 2) {
    const std::size_t row = in_group * 2 + (i < 2 ? 0 : 8);
    b[i / 2] = pack(m.b[row][group], m.b[row + 1][group]);
  }
  float c[4] = {1, 1, 1, 1};
  multiply_matrices(Format::kBF16, c, a, b[0], b[1]);
  for (std::size_t i = 0; i < 4; ++i) m.c[i < 2 ? group : group + 8][in_group * 2 + i % 2] = c[i];
}

TEST(Instructions, MmaMultiplies) {
  Matrices m = small_integers();
  ASSERT_EQ(run(multiply, m), "");
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t column = 0; column < 8; ++column) {
      float expected = 1;
      for (std::size_t x = 0; x < 16; ++x) expected += m.a[row][x] * m.b[x][column];
      EXPECT_EQ(m.c[row][column], expected) << row << ", " << column;
    }
}

struct Loaded {
  std::uint32_t plain[kWarpLanes][4], transposed[kWarpLanes][4];
};

/// Element (row, column) of matrix m is 64 m + 8 row + column; row r of matrix m lies at 16 times
/// its number, counted from the back.
void load(const void* args) {
  auto& loaded = result_of<Loaded>(args);
  const unsigned lane = threadIdx.x, address = (31 - lane) * 16;
  std::uint16_t row[8];
  for (unsigned column = 0; column < 8; ++column)
    row[column] = static_cast<std::uint16_t>(lane * 8 + column);
  std::memcpy(shared_memory(address, 16), row, 16);
  __syncwarp();
  load_matrices(loaded.plain[lane], address, false);
  load_matrices(loaded.transposed[lane], address, true);
}

TEST(Instructions, LdmatrixDealsRowsOrColumns) {
  Loaded loaded{};
  ASSERT_EQ(run(load, loaded), "");
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane)
    for (std::uint32_t m = 0; m < 4; ++m) {
      const std::uint32_t row = lane / 4, column = lane % 4 * 2, first = m * 64;
      const std::uint32_t plain = first + row * 8 + column, turned = first + column * 8 + row;
      EXPECT_EQ(loaded.plain[lane][m], plain | (plain + 1) << 16) << lane << ", " << m;
      EXPECT_EQ(loaded.transposed[lane][m], turned | (turned + 8) << 16) << lane << ", " << m;
    }
}

TEST(Instructions, RoundToNearestEven) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(round_to(Format::kBF16, 1.0F), 0x3f80);
  EXPECT_EQ(round_to(Format::kBF16, 1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(round_to(Format::kBF16, 1.0F + 0x3p-8F), 0x3f82);
  EXPECT_EQ(round_to(Format::kBF16, nan), 0x7fff);
  EXPECT_EQ(round_to(Format::kF16, 65504.0F), 0x7bff);
  EXPECT_EQ(round_to(Format::kF16, 65520.0F), 0x7c00);
  EXPECT_EQ(round_to(Format::kF16, 0x1p-25F), 0);
  EXPECT_EQ(to_float(Format::kF16, 0x0001), 0x1p-24F);
  EXPECT_EQ(to_float(Format::kBF16, 0xc000), -2.0F);
}

struct Votes {
  unsigned ballot;
  int any, all[2], received[kWarpLanes];
};

void vote(const void* args) {
  auto& votes = result_of<Votes>(args);
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes);
  votes.ballot = __ballot_sync(~0U, lane % 3 == 0);
  votes.any = __any_sync(~0U, lane == 17);
  votes.received[lane] = __shfl_xor_sync(~0U, 100 + lane, 5);
  votes.all[0] = __syncthreads_and(threadIdx.x != 40);
  votes.all[1] = __syncthreads_and(true);
}

TEST(Instructions, VotesAndShufflesReachTheirScope) {
  Votes votes{};
  ASSERT_EQ(run(vote, votes, 64), "");
  EXPECT_EQ(votes.ballot, 0x49249249U);
  EXPECT_EQ(votes.any, 1);
  EXPECT_EQ(votes.all[0], 0);
  EXPECT_EQ(votes.all[1], 1);
  for (int lane = 0; lane < kWarpLanes; ++lane) EXPECT_EQ(votes.received[lane], 100 + (lane ^ 5));
}

/// Every element of a, b and c named by its place; bytes are small integers, as e4m3 exact too.
struct ByteMatrices {
  int a[16][32], b[32][8], c[16][8];
  bool is_float;
};

/// The layouts of a, b and c as the PTX manual gives them for the fragments of mma.m16n8k32.
void multiply_bytes(const void* args) {
  auto& m = result_of<ByteMatrices>(args);
  const std::size_t group = threadIdx.x / 4, in_group = threadIdx.x % 4;
  const auto byte = [&](int value) -> std::uint32_t {
    return m.is_float ? round_to_e4m3(static_cast<float>(value)) : static_cast<std::uint8_t>(value);
  };
  std::uint32_t a[4] = {}, b[2] = {};
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;
    a[i / 4] |= byte(m.a[row][in_group * 4 + (i & 3) + (i < 8 ? 0 : 16)]) << (i % 4 * 8);
  }
  for (std::size_t i = 0; i < 8; ++i)
    b[i / 4] |= byte(m.b[in_group * 4 + (i & 3) + (i < 4 ? 0 : 16)][group]) << (i % 4 * 8);
  float sums[4] = {1, 1, 1, 1};
  int c[4] = {1, 1, 1, 1};
  if (m.is_float) {
    multiply_e4m3(sums, a, b[0], b[1]);
  } else {
    multiply_s8(c, a, b[0], b[1]);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    m.c[i < 2 ? group : group + 8][in_group * 2 + i % 2] =
        m.is_float ? static_cast<int>(sums[i]) : c[i];
  }
}

TEST(Instructions, MmaMultipliesBytes) {
  for (const bool is_float : {false, true}) {
    ByteMatrices m{};
    m.is_float = is_float;
    for (int row = 0; row < 16; ++row)
      for (int x = 0; x < 32; ++x) m.a[row][x] = (row * 7 + x * 3) % 11 - 5;
    for (int x = 0; x < 32; ++x)
      for (int column = 0; column < 8; ++column) m.b[x][column] = (x * 5 + column) % 9 - 4;
    ASSERT_EQ(run(multiply_bytes, m), "");
    for (std::size_t row = 0; row < 16; ++row)
      for (std::size_t column = 0; column < 8; ++column) {
        int expected = 1;
        for (std::size_t x = 0; x < 32; ++x) expected += m.a[row][x] * m.b[x][column];
        EXPECT_EQ(m.c[row][column], expected) << row << ", " << column << ", " << is_float;
      }
  }
}

TEST(Instructions, E4m3RoundsToNearestEvenAndSaturates) {
  for (unsigned code = 0; code < 0x100; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    const auto byte = static_cast<std::uint8_t>(code);
    EXPECT_EQ(round_to_e4m3(e4m3_to_float(byte)), code);
    if ((code & 0x7f) >= 0x7e) continue;
    const float middle =
        (e4m3_to_float(byte) + e4m3_to_float(static_cast<std::uint8_t>(code + 1))) / 2;
    EXPECT_EQ(round_to_e4m3(middle), code + code % 2) << middle;
  }
  EXPECT_EQ(e4m3_to_float(0x38), 1.0F);
  EXPECT_EQ(e4m3_to_float(0x01), 0x1p-9F);
  EXPECT_EQ(e4m3_to_float(0xfe), -448.0F);
  EXPECT_EQ(round_to_e4m3(1e9F), 0x7e);
  EXPECT_EQ(round_to_e4m3(-std::numeric_limits<float>::infinity()), 0xfe);
  EXPECT_EQ(round_to_e4m3(std::numeric_limits<float>::quiet_NaN()), 0x7f);
}

struct Neighbours {
  int up[kWarpLanes], down[kWarpLanes];
  long long wide[kWarpLanes];
  int any, count;
};

void look_around(const void* args) {
  auto& seen = result_of<Neighbours>(args);
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes);
  seen.up[lane] = __shfl_up_sync(~0U, lane, 3);
  seen.down[lane] = __shfl_down_sync(~0U, lane, 3);
  seen.wide[lane] = __shfl_sync(~0U, (1LL << 40) + lane, 7);
  seen.any = __syncthreads_or(threadIdx.x == 40);
  seen.count = __syncthreads_count(threadIdx.x % 4 == 0);
}

TEST(Instructions, ShufflesStopAtTheEndsOfTheWarp) {
  Neighbours seen{};
  ASSERT_EQ(run(look_around, seen, 64), "");
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    EXPECT_EQ(seen.up[lane], lane < 3 ? lane : lane - 3);
    EXPECT_EQ(seen.down[lane], lane > 28 ? lane : lane + 3);
    EXPECT_EQ(seen.wide[lane], (1LL << 40) + 7);
  }
  EXPECT_EQ(seen.any, 1);
  EXPECT_EQ(seen.count, 16);
}

// ---- Schedules. ----

constexpr Schedule kEarly{Landing::kEarly, WarpOrder::kAscending, 0};
constexpr Schedule kLate{Landing::kLate, WarpOrder::kAscending, 0};
constexpr Schedule kDescending{Landing::kEarly, WarpOrder::kDescending, 0};

struct Seen {
  unsigned char byte;
};

/// Thread 0 writes, the last warp reads, with or without a barrier in between.
template <bool kHasBarrier>
void pass_a_byte(const void* args) {
  if (threadIdx.x == 0) *shared_memory(0, 1) = 7;
  if (kHasBarrier) __syncthreads();
  if (threadIdx.x == 63) result_of<Seen>(args).byte = *shared_memory(0, 1);
}

TEST(Schedules, ShowARaceBetweenWarps) {
  Seen ascending{}, descending{};
  ASSERT_EQ(run(pass_a_byte<false>, ascending, 64, kEarly), "");
  ASSERT_EQ(run(pass_a_byte<false>, descending, 64, kDescending), "");
  EXPECT_EQ(ascending.byte, 7);
  EXPECT_EQ(descending.byte, 0xff);
  ASSERT_EQ(run(pass_a_byte<true>, descending, 64, kDescending), "");
  EXPECT_EQ(descending.byte, 7);
}

/// One copy in each of two groups; the second is waited for only if asked.
template <int kPending>
void copy_two(const void* args) {
  alignas(16) static const std::array<unsigned char, 32> source{5, 0, 0, 0, 0, 0, 0, 0, 0,
                                                                0, 0, 0, 0, 0, 0, 0, 6};
  if (threadIdx.x == 0) {
    start_copy(0, source.data());
    commit_work(Engine::kCopies);
    start_copy(16, source.data() + 16);
    commit_work(Engine::kCopies);
    wait_for_work(Engine::kCopies, kPending);
    result_of<Seen>(args).byte = *shared_memory(16, 1);
  }
}

TEST(Schedules, ShowAMissingWait) {
  Seen early{}, late{};
  ASSERT_EQ(run(copy_two<1>, early, kWarpLanes, kEarly), "");
  ASSERT_EQ(run(copy_two<1>, late, kWarpLanes, kLate), "");
  EXPECT_EQ(early.byte, 6);
  EXPECT_EQ(late.byte, 0xff);
  ASSERT_EQ(run(copy_two<0>, late, kWarpLanes, kLate), "");
  EXPECT_EQ(late.byte, 6);
}

// ---- Faults. ----

std::string fault_of(void (*body)(const void*)) {
  Seen nothing{};
  return run(body, nothing, 64);
}

TEST(Faults, LanesThatAreMissing) {
  EXPECT_EQ(fault_of([](const void*) {
              if (threadIdx.x != 3) __syncwarp();
            }),
            "block 0, thread 0: waits in a warp instruction for lanes that are at a barrier or "
            "have ended");
  EXPECT_EQ(fault_of([](const void*) {
              if (threadIdx.x < 8) {
                __syncwarp();
              } else {
                __ballot_sync(~0U, true);
              }
            }),
            "block 0, thread 8: the lanes of the warp meet in different instructions");
}

TEST(Faults, AWarpInstructionOfSomeLanes) {
  EXPECT_EQ(fault_of([](const void*) { __syncwarp(0xffU); }),
            "block 0, thread 0: a warp instruction of some lanes only");
}

TEST(Faults, ThreadsThatMissABarrier) {
  EXPECT_EQ(fault_of([](const void*) {
              if (threadIdx.x < 32) __syncthreads();
            }),
            "block 0, 32 of 64 threads wait at a barrier, the others have ended");
}

TEST(Faults, SharedMemory) {
  EXPECT_EQ(fault_of([](const void*) { shared_memory(kSmemBytes - 8, 16); }),
            "block 0, thread 0: address 1016 of shared memory is past its end");
  EXPECT_EQ(fault_of([](const void*) { *(shared_memory(0, 1) + kSmemBytes) = 0; }),
            "block 0, wrote past the end of shared memory");
  EXPECT_EQ(fault_of([](const void* args) { shared_address(args); }),
            "block 0, thread 0: takes the shared address of what lies elsewhere");
}

TEST(Faults, Alignment) {
  EXPECT_EQ(fault_of([](const void*) { start_copy(8, nullptr); }),
            "block 0, thread 0: cp.async between addresses that are no multiples of 16");
  EXPECT_EQ(fault_of([](const void*) {
              std::uint32_t matrices[4];
              load_matrices(matrices, 8, false);
            }),
            "block 0, thread 31: ldmatrix of an address that is no multiple of 16");
}

}  // namespace
}  // namespace emulation

// Every mismatch of a launch is named: field, expected, got; all of them at once.
#include "tests/runtime/arguments.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "runtime/launch/param_promises.hpp"

namespace lacuna {
namespace {

TEST(Monotone, IsLookedAtAlongTheLastDimensionAndInAnyStride) {
  const std::int32_t values[] = {1, 9, 4, 9, 4, 8, 0, 8, 2, 9};  // two rows of five, interleaved
  ParamView view;
  view.data = values;
  view.extent[0] = 2, view.extent[1] = 5;
  view.stride[0] = 1, view.stride[1] = 2;
  const ParamSpec start = param("start", ExprType::kI32, {ParamAxis::kBatch, ParamAxis::kNQ});
  EXPECT_EQ(first_fall(start.symbol, view),
            "value 0 at [0, 3] is not at least 4, the one before it");
  view.extent[1] = 3;
  EXPECT_EQ(first_fall(start.symbol, view),
            "value 8 at [1, 2] is not at least 9, the one before it");
  view.extent[1] = 2;
  EXPECT_FALSE(first_fall(start.symbol, view));
}

/// Arguments that fit: batch 2, heads 8 over 2, n_q 300, n_k 200; 3 query tiles, 4 key tiles.
TEST(Arguments, WhatFitsIsBound) {
  Arguments a;
  BoundLaunch bound;
  ASSERT_EQ(a.check(contract(), &bound), "");
  EXPECT_EQ(bound.shape.n_b, 2);
  EXPECT_EQ(bound.shape.n_h, 8);
  EXPECT_EQ(bound.shape.n_h_kv, 2);
  EXPECT_EQ(bound.shape.n_q, 300);
  EXPECT_EQ(bound.shape.n_k, 200);
  EXPECT_EQ(bound[TensorRole::kQ].data, a.at(0x10000));
  EXPECT_EQ(bound[TensorRole::kQ].stride[1], 300 * 64);
  EXPECT_EQ(bound[TensorRole::kLse].data, nullptr);
  EXPECT_EQ(bound.params[0].data, a.at(0x50000));
  EXPECT_EQ(bound.params[0].extent[1], 3);
  EXPECT_EQ(bound.params[0].stride[0], 3);
  EXPECT_EQ(bound.params[1].data, nullptr);
  EXPECT_EQ(bound.params[1].value.i32, 4);
}

TEST(Arguments, AllMismatchesAreReportedAtOnce) {
  Arguments a;
  a.k = Tensor(a.at(0x20000), f16, {2, 3, 200, 32});
  a.v = Tensor();
  a.o = Tensor(a.at(0x40000), bf16, {2, 8, 300});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument k: dtype expected bf16, got f16\n"
            "kernel bsfa, argument k: d expected 64, got 32\n"
            "kernel bsfa, argument v: expected a tensor, got null\n"
            "kernel bsfa, argument o: rank expected 4 [batch, heads, n_q, d], got 3\n");
}

TEST(Arguments, AnOrderIsTakenByThoseThatPermute) {
  Arguments a;
  a.order = Tensor(a.at(0x60000), i32, {300});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument order: expected null, got a tensor: the spec has no "
            "\"permute\"\n");
  LaunchContract permuting = contract();
  permuting.takes_order = true;
  EXPECT_EQ(a.check(permuting),
            "kernel bsfa, shape: n_k expected 300 (n_q: queries and keys are permuted alike), got "
            "200\n");
  a.k = Tensor(a.at(0x20000), bf16, {2, 2, 300, 64});
  a.v = a.k;
  BoundLaunch bound;
  EXPECT_EQ(a.check(permuting, &bound), "");
  EXPECT_EQ(bound[TensorRole::kOrder].data, a.at(0x60000));
  a.order = Tensor(a.at(0x60000), f32, {200});
  EXPECT_EQ(a.check(permuting),
            "kernel bsfa, argument order: dtype expected i32, got f32\n"
            "kernel bsfa, argument order: n_q expected 300, got 200\n");
  a.order = Tensor();
  EXPECT_EQ(
      a.check(permuting),
      "kernel bsfa, argument order: expected a tensor, got null\n"
      "help: lacuna_token_order makes the order of a grid, in Python kernel.tokens_in_order(n)\n");
}

TEST(Arguments, ThePreviousLseIsTakenByThoseThatNormaliseWithIt) {
  Arguments a;
  a.previous_lse = Tensor(a.at(0x60000), f32, {2, 8, 300});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument previous_lse: expected null, got a tensor: the spec does not "
            "say \"normalise\": \"previous_lse\"\n");
  LaunchContract normalising = contract();
  normalising.takes_previous_lse = true;
  EXPECT_EQ(a.check(normalising), "");
  a.previous_lse = Tensor();
  EXPECT_EQ(a.check(normalising),
            "kernel bsfa, argument previous_lse: expected a tensor, got null\n");
}

/// Of which single rows are copied: their places are numbers of 32 bits, in 16 bytes.
TEST(Arguments, PagesLieWithinReachOfTheirPlaces) {
  Arguments a;
  a.q = Tensor(a.at(0x10000), bf16, {1, 8, 300, 64});
  a.o = Tensor(a.at(0x40000), bf16, {1, 8, 300, 64});
  const Tensor begins(a.at(0x60000), i32, {2}), n_k(a.at(0x60000), i32, {1}),
      pages(a.at(0x60000), i32, {1, 20});
  const DLTensor numbers = begins.view(), lengths = n_k.view(), table = pages.view();
  lacuna_sequences sequences{};
  sequences.struct_size = sizeof sequences;
  sequences.count = 1, sequences.max_n_q = 300, sequences.max_n_k = 320;
  sequences.q_begin = &numbers, sequences.n_k = &lengths, sequences.pages = &table;
  a.sequences = &sequences;
  LaunchContract paged = contract();
  paged.batch = BatchLayout::kPages;
  constexpr std::int64_t kPageBytes = std::int64_t{2} * 16 * 64 * 2,
                         kMost = (std::int64_t{1} << 36);
  for (const bool copies : {false, true}) {
    paged.copies_from_pages = copies;
    a.k = Tensor(a.at(0x20000), bf16, {kMost / kPageBytes, 2, 16, 64});
    a.v = a.k;
    EXPECT_EQ(a.check(paged), "");
    a.v = Tensor(a.at(0x30000), bf16, {kMost / kPageBytes + 1, 2, 16, 64});
    a.k = a.v;
    const std::string text =
        "pages expected within 68719476720 bytes, because single rows are copied from them, got "
        "68719478656 to the last row\n";
    EXPECT_EQ(
        a.check(paged),
        copies ? "kernel bsfa, argument k: " + text + "kernel bsfa, argument v: " + text : "");
  }
}

TEST(Arguments, HeadsMustBeAMultipleOfHeadsKv) {
  Arguments a;
  a.k = Tensor(a.at(0x20000), bf16, {2, 3, 200, 64});
  a.v = a.k;
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, shape: heads expected a multiple of heads_kv (3), got 8\n");
}

TEST(Arguments, KAndVMustAgree) {
  Arguments a;
  a.v = Tensor(a.at(0x30000), bf16, {1, 2, 201, 64});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument v: batch expected 2, got 1\n"
            "kernel bsfa, argument v: n_k expected 200, got 201\n");
}

TEST(Arguments, TensorsMustBeWhereTheKernelRuns) {
  Arguments a;
  const LaunchContract gpu = contract({kDLCUDA, 1});
  a.threshold = Tensor(a.at(0x50000), f32, {8, 3}, cuda(0));
  a.params = {{"threshold", a.threshold}};
  EXPECT_EQ(a.check(gpu),
            "kernel bsfa, argument q: device expected cuda:1, got cpu\n"
            "kernel bsfa, argument k: device expected cuda:1, got cpu\n"
            "kernel bsfa, argument v: device expected cuda:1, got cpu\n"
            "kernel bsfa, argument o: device expected cuda:1, got cpu\n"
            "kernel bsfa, parameter threshold: device expected cuda:1, got cuda:0\n");
}

TEST(Arguments, TheGpuNeedsRowsOfSixteenAlignedBytes) {
  Arguments a(cuda(0));
  a.q = Tensor(a.at(0x10004), bf16, {2, 8, 300, 64}, cuda(0), {300 * 8 * 64, 64, 516, 1});
  const LaunchContract gpu = contract({kDLCUDA, 0});
  EXPECT_EQ(a.check(gpu),
            "kernel bsfa, argument q: stride of n_q expected a multiple of 8 elements, got 516\n"
            "kernel bsfa, argument q: data expected aligned to 16 bytes, got an address 4 bytes "
            "past that\n");
  // The CPU does not.
  Arguments host;
  host.q = Tensor(host.at(0x10004), bf16, {2, 8, 300, 64}, cpu(), {300 * 8 * 64, 64, 516, 1});
  EXPECT_EQ(host.check(contract()), "");
}

TEST(Arguments, RowsLieSoCloseOnTheGpuThatTheirDistanceIsANumberOf31Bits) {
  constexpr std::int64_t kFar = std::int64_t{1} << 30;
  Arguments a(cuda(0));
  a.q = Tensor(a.at(0x10000), bf16, {2, 8, 300, 64}, cuda(0), {512, 64, kFar, 1});
  const LaunchContract gpu = contract({kDLCUDA, 0});
  EXPECT_EQ(a.check(gpu),
            "kernel bsfa, argument q: stride of n_q expected at most 1073741823 elements, got "
            "1073741824\n");
  a.q = Tensor(a.at(0x10000), bf16, {2, 8, 300, 64}, cuda(0), {512, 64, kFar - 8, 1});
  EXPECT_EQ(a.check(gpu), "");
}

TEST(Arguments, HeadDimensionMustBeContiguousAndResultsDistinct) {
  Arguments a;
  a.q = Tensor(a.at(0x10000), bf16, {2, 8, 300, 64}, cpu(), {300 * 8 * 128, 300 * 128, 128, 2});
  a.o = Tensor(a.at(0x40000), bf16, {2, 8, 300, 64}, cpu(), {0, 300 * 64, 64, 1});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument q: stride of d expected 1, got 2\n"
            "kernel bsfa, argument o: stride of batch expected not 0: results would overwrite one "
            "another\n");
}

TEST(Arguments, KeysMayBeBroadcast) {
  Arguments a;
  a.k = Tensor(a.at(0x20000), bf16, {2, 2, 200, 64}, cpu(), {0, 200 * 64, 64, 1});
  EXPECT_EQ(a.check(contract()), "");
}

TEST(Arguments, ReportsMustBeContiguousAndOfTheirTileShape) {
  Arguments a;
  a.lse = Tensor(a.at(0x60000), f32, {2, 8, 300}, cpu(), {8 * 300, 1, 8});
  a.counts = Tensor(a.at(0x70000), i32, {2, 8, 3, 2});
  a.tile_mask = Tensor(a.at(0x80000), u8, {2, 8, 3, 5});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument lse: stride of n_q expected 1 (contiguous), got 8\n"
            "kernel bsfa, argument counts: 3 expected 3, got 2\n"
            "kernel bsfa, argument tile_mask: k_tiles expected 4, got 5\n");
}

TEST(Arguments, ListsBelongToSpecsWithAnExternalMask) {
  Arguments a;
  a.list_counts = Tensor(a.at(0x60000), i32, {2, 8, 3});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument list_counts: expected null, got a tensor: the spec does not say "
            "\"mask\": \"external\"\n");
  LaunchContract external = contract();
  external.takes_lists = true;
  a.list_counts = Tensor();
  EXPECT_EQ(a.check(external),
            "kernel bsfa, argument list_indices: expected a tensor, got null\n"
            "kernel bsfa, argument list_counts: expected a tensor, got null\n");
  a.list_indices = Tensor(a.at(0x60000), i32, {2, 8, 3, 17});
  a.list_counts = Tensor(a.at(0x70000), i32, {2, 8, 3});
  EXPECT_EQ(a.check(external), "");
}

TEST(Arguments, LseOnlyIfTheSpecHasIt) {
  Arguments a;
  a.lse = Tensor(a.at(0x60000), f32, {2, 8, 300});
  LaunchContract without = contract();
  without.has_lse = false;
  EXPECT_EQ(a.check(without),
            "kernel bsfa, argument lse: expected null, got a tensor: the spec says \"lse\": "
            "false\n");
}

TEST(Arguments, UnknownParametersGetASuggestion) {
  Arguments a;
  a.params.emplace_back("treshold", 1.0);
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, parameter treshold: is not a parameter of this kernel; it has threshold, "
            "sink\nhelp: did you mean \"threshold\"?\n");
}

TEST(Arguments, AParameterWithoutDefaultMustBePassed) {
  Arguments a;
  a.params.clear();
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, parameter threshold: is missing: expected f32 [heads, q_tiles]; it has "
            "no default\n");
}

TEST(Arguments, ParametersOfWrongTypeShapeOrRange) {
  Arguments a;
  a.params = {{"threshold", Tensor(a.at(0x50000), i32, {8, 4})}, {"sink", -1.0}};
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, parameter threshold: dtype expected f32, got i32\n"
            "kernel bsfa, parameter threshold: q_tiles expected 3, got 4\n"
            "kernel bsfa, parameter sink: expected a value in [0, inf], got -1\n");
  a.params = {{"threshold", 0.5}, {"sink", 1.5}};
  EXPECT_EQ(a.check(contract()), "kernel bsfa, parameter sink: expected an i32, got 1.5\n");
  a.params = {{"threshold", 0.5}, {"sink", 3.0}, {"sink", 4.0}};
  EXPECT_EQ(a.check(contract()), "kernel bsfa, parameter sink: is passed twice\n");
  a.params = {{"threshold", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, parameter threshold: expected a value in [-inf, inf], got nan\n");
}

TEST(Arguments, OneNumberStandsForAllElements) {
  Arguments a;
  a.params = {{"threshold", -2.5}, {"sink", 7.0}};
  BoundLaunch bound;
  ASSERT_EQ(a.check(contract(), &bound), "");
  EXPECT_EQ(bound.params[0].data, nullptr);
  EXPECT_EQ(bound.params[0].value.f32, -2.5F);
  EXPECT_EQ(bound.params[0].extent[0], 1);
  EXPECT_EQ(bound.params[1].value.i32, 7);
}

TEST(Arguments, EmptyTensorsNeedNoData) {
  Arguments a;
  a.q = Tensor(nullptr, bf16, {2, 8, 0, 64});
  a.o = Tensor(nullptr, bf16, {2, 8, 0, 64});
  a.params = {{"threshold", 0.0}};
  BoundLaunch bound;
  ASSERT_EQ(a.check(contract(), &bound), "");
  EXPECT_TRUE(bound.empty());
  a.q = Tensor(nullptr, bf16, {2, 8, 1, 64});
  a.o = Tensor(a.at(0x40000), bf16, {2, 8, 1, 64});
  EXPECT_EQ(a.check(contract()), "kernel bsfa, argument q: data expected a pointer, got null\n");
}

TEST(Arguments, AGridBeyondThirtyOneBitsIsRefused) {
  Diagnostics diagnostics;
  EXPECT_FALSE(check_shape(contract(), {1 << 15, 1 << 15, 1, 129, 1}, diagnostics));
  ASSERT_EQ(diagnostics.items.size(), 1U);
  EXPECT_EQ(diagnostics.items[0].message,
            "kernel bsfa, shape: batch * heads * q_tiles expected at most 2147483647, got more");
}

TEST(Arguments, ExtentsBeyondThirtyOneBitsAreRefused) {
  constexpr std::int64_t kTooMany = std::int64_t{1} << 31;
  Arguments a;
  a.q = Tensor(a.at(0x10000), bf16, {2, 8, kTooMany, 64});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument q: n_q expected 0 to 2147483647, got 2147483648\n");
  a = Arguments();
  a.k = Tensor(a.at(0x20000), bf16, {2, std::int64_t{1} << 32, 200, 64});
  a.v = Tensor(a.at(0x30000), bf16, {2, 2, -1, 64});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument k: heads_kv expected 0 to 2147483647, got 4294967296\n"
            "kernel bsfa, argument v: n_k expected 0 to 2147483647, got -1\n");
  a = Arguments();
  a.params = {{"threshold", Tensor(a.at(0x50000), f32, {8, kTooMany + 3})}};
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, parameter threshold: q_tiles expected 0 to 2147483647, got "
            "2147483651\n");
}

TEST(Arguments, NoExtentOverflowsTheArithmetic) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  Arguments a;
  a.q = Tensor(a.at(0x10000), bf16, {kLargest, 8, kLargest, 64});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument q: batch expected 0 to 2147483647, got 9223372036854775807\n"
            "kernel bsfa, argument q: n_q expected 0 to 2147483647, got 9223372036854775807\n");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  a = Arguments();
  a.k = Tensor(a.at(0x20000), bf16, {2, kMost, kMost, 64});
  a.v = Tensor(a.at(0x30000), bf16, {2, kMost, kMost, 64}, cpu(), {0, 0, 64, 1});
  EXPECT_EQ(a.check(contract()),
            "kernel bsfa, argument k: expected at most 9223372036854775807 elements, got more\n"
            "kernel bsfa, argument v: expected at most 9223372036854775807 elements, got more\n");
}

TEST(Arguments, ByteOffsetCounts) {
  Arguments a;
  DLTensor view = a.q.view();
  view.byte_offset = 32;
  a.q = Tensor(view);
  BoundLaunch bound;
  ASSERT_EQ(a.check(contract(), &bound), "");
  EXPECT_EQ(bound[TensorRole::kQ].data, a.at(0x10020));
}

}  // namespace
}  // namespace lacuna

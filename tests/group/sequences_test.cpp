// Batches of sequences: heads go to ranks, all tokens of them, and each launch says where its
// sequences begin.
#include <gtest/gtest.h>

#include <array>

#include "tests/group/harness.hpp"

namespace lacuna::test {
namespace {

/// Of 512 queries and 704 keys: one sequence is short, one has no queries, one shares its keys.
Whole ragged_whole(std::int32_t heads, std::int32_t heads_kv) {
  Whole whole = make_whole({1, heads, heads_kv, 512, 704});
  whole.ragged = {.max_n_q = 300,
                  .max_n_k = 320,
                  .q_begin = {0, 20, 300, 300, 512},
                  .n_k = {20, 300, 64, 320},
                  .k_begin = {0, 20, 0, 384}};
  return whole;
}

/// Reads all that a rank sees of the whole: heads and their number, parameters of heads and of
/// tokens.
Spec heads_spec() {
  return Spec::parse(R"({
    "version": 1, "name": "heads",
    "attention": {
      "mask": "k <= q + n_k - n_q and k >= first[q]",
      "score": "s + slope * (q - k) / n_q + 0.1 * h / n_h + 0.01 * b"
    },
    "params": {
      "first": {"type": "i32", "shape": "[batch, n_q]", "doc": "the first key that a query sees"},
      "slope": {"shape": "[heads]", "doc": "of the logits"},
      "threshold": {"shape": "[heads, q_tiles]", "doc": "of the gate"}
    },
    "gate": {
      "scope": "tile", "skip": "tile_max < threshold and n_i - i > 1",
      "exempt": "h == 1 or k1 >= q0 + n_k - n_q", "skips": ["v_load", "exp", "pv"]
    },
    "tile": {"q": 64, "k": 64}
  })",
                     "heads.json");
}

std::vector<Param> heads_params() {
  constexpr std::int32_t kMostQueries = 300, kTiles = 5;
  static std::vector<std::int32_t> first(std::size_t{4} * kMostQueries);
  static std::vector<float> slope(6), threshold(std::size_t{6} * kTiles);
  for (std::size_t q = 0; q < first.size(); ++q) first[q] = static_cast<std::int32_t>(q % 300 / 90);
  for (std::size_t h = 0; h < slope.size(); ++h) slope[h] = -0.3F * static_cast<float>(h);
  for (std::size_t t = 0; t < threshold.size(); ++t)
    threshold[t] = static_cast<float>(t % 7) - 2.0F;
  return {{"first", Tensor(first.data(), i32, {4, kMostQueries})},
          {"slope", Tensor(slope.data(), f32, {6})},
          {"threshold", Tensor(threshold.data(), f32, {6, kTiles})}};
}

/// Heads that attend to means and to what a predictor keeps.
Spec branches_of_heads() {
  return Spec::parse(R"({
    "version": 1, "name": "heads-branches",
    "attention": {"mask": "k <= q + n_k - n_q", "score": "s + 0.1 * h"},
    "branches": [
      {"name": "means", "means": 16, "weight": "0.25 + 0.01 * h"},
      {"name": "kept", "weight": "0.5",
       "predictor": {"tile": {"q": 32, "k": 64}, "estimate": {}, "keep": "rank < 2 or h == 1"}}
    ]
  })",
                     "heads-branches.json");
}

void expect_as_alone(const Whole& whole, const Spec& spec, const MakeParams& params = no_params) {
  const Results alone = run_alone(whole, spec, params);
  bool by_messages = false;
  for (const Layout layout : {Layout::kContiguous, Layout::kStriped, Layout::kHeads}) {
    for (const int ranks : {2, 3}) {
      by_messages = !by_messages;
      GroupCase c{.ranks = ranks, .layout = layout, .stripe = 48, .token_major = ranks == 3};
      c.exchange =
          by_messages != (layout == Layout::kStriped) ? Exchange::kMessages : Exchange::kCopies;
      SCOPED_TRACE(name_of(c));
      const GroupRun run = run_together(whole, spec, c, params);
      for (const std::string& error : run.errors) EXPECT_EQ(error, "");
      EXPECT_TRUE(run.results == alone);
    }
  }
}

TEST(GroupSequences, AreThoseOfOneEngine) {
  expect_as_alone(ragged_whole(4, 4), shipped("window"));
}

TEST(GroupSequences, SeeHeadsAndParametersOfTheWhole) {
  expect_as_alone(ragged_whole(6, 3), heads_spec(), heads_params);
}

TEST(GroupSequences, HavePredictors) {
  expect_as_alone(ragged_whole(6, 3), shipped("sparge-topk"));
}

TEST(GroupSequences, HaveBranches) { expect_as_alone(ragged_whole(4, 2), branches_of_heads()); }

TEST(GroupSequences, OtherLengthsTakeTheSamePlan) {
  Whole whole = ragged_whole(4, 4);
  const Spec spec = shipped("window");
  const GroupRun first = run_together(whole, spec, {});
  whole.ragged.q_begin = {0, 300, 310, 500, 512};
  whole.ragged.n_k = {320, 0, 200, 12};
  const GroupRun second = run_together(whole, spec, {});
  EXPECT_EQ(first.plans, second.plans);
  EXPECT_TRUE(second.results == run_alone(whole, spec));
}

TEST(GroupSequences, StayWhole) {
  GroupCase c{.scheme = Scheme::kRows};
  const GroupRun run = run_together(ragged_whole(4, 4), shipped("window"), c);
  EXPECT_NE(run.errors[0].find("each launch says where its sequences begin"), std::string::npos)
      << run.errors[0];
}

TEST(GroupSequences, WhatDoesNotFitIsNamed) {
  const auto error_of = [](Whole whole, const GroupCase& c = {}) {
    return run_together(whole, shipped("window"), c).errors[0];
  };
  Whole whole = ragged_whole(4, 4);
  whole.shape.batch = 2;
  EXPECT_NE(error_of(whole).find("shape.batch: of sequences expected 1"), std::string::npos)
      << error_of(whole);
  whole = ragged_whole(4, 4);
  whole.ragged.max_n_q = -1;
  EXPECT_NE(error_of(whole).find("max_n_q"), std::string::npos) << error_of(whole);
  whole = ragged_whole(4, 4);
  const std::string counted = error_of(whole, {.with_counts = true});
  EXPECT_NE(counted.find("counts: a group has none of sequences"), std::string::npos) << counted;
  const std::string dealt = error_of(whole, {.work = {1, 2}});
  EXPECT_NE(dealt.find("work: of sequences expected none"), std::string::npos) << dealt;
}

/// The error of a rank whose plan has the limits of ragged_whole, and whose launch has others.
std::string error_of_launch(Ragged passed) {
  return in_threads(1, [&](int) {
    Whole whole = ragged_whole(2, 2);
    const Loopback loopback(1);
    const Engine engine = cpu_engine();
    const Group group = Group::create(engine, {.rank = 0, .size = 1, .loopback = &loopback});
    const GroupKernel kernel = group.compile(
        shipped("window"), {.head_dim = 64, .dtype = f32, .batch = Batch::kSequences});
    const GroupPlan plan = kernel.plan({.shape = whole.shape,
                                        .sequences = whole.ragged.count(),
                                        .max_n_q = whole.ragged.max_n_q,
                                        .max_n_k = whole.ragged.max_n_k});
    std::vector<float> o(whole.q.size());
    LaunchArgs args;
    args.q = Tensor(whole.q.data(), f32, {1, 2, 512, 64});
    args.k = Tensor(whole.k.data(), f32, {1, 2, 704, 64});
    args.v = Tensor(whole.v.data(), f32, {1, 2, 704, 64});
    args.o = Tensor(o.data(), f32, {1, 2, 512, 64});
    args.sequences = sequences_of(passed);
    plan.launch(args);
  })[0];
}

TEST(GroupSequences, ALaunchHasTheLimitsOfItsPlan) {
  const Ragged planned = ragged_whole(2, 2).ragged;
  const auto expect_named = [](const Ragged& passed, const std::string& text) {
    const std::string error = error_of_launch(passed);
    EXPECT_NE(error.find("argument sequences: " + text), std::string::npos) << error;
  };
  Ragged fewer = planned;
  fewer.q_begin.pop_back();
  fewer.n_k.pop_back();
  fewer.k_begin.pop_back();
  expect_named(fewer, "count expected 4 (rank 0), got 3");
  Ragged longer = planned;
  longer.max_n_q = 310;
  expect_named(longer, "max_n_q expected 300 (rank 0), got 310");
  longer = planned;
  longer.max_n_k = 330;
  expect_named(longer, "max_n_k expected 320 (rank 0), got 330");
}

TEST(GroupSequences, OfOtherLimitsAreAnErrorOnAllRanks) {
  for (const std::size_t other : {0, 1, 2}) {
    const Loopback loopback(2);
    const auto errors = in_threads(2, [&](int rank) {
      const Engine engine = cpu_engine();
      const Group group = Group::create(engine, {.rank = rank, .size = 2, .loopback = &loopback});
      std::array<std::int32_t, 3> limits{4, 300, 320};
      if (rank == 1) ++limits[other];
      group.compile(shipped("window"), {.head_dim = 64, .dtype = f32, .batch = Batch::kSequences})
          .plan({.shape = {1, 2, 2, 512, 704},
                 .sequences = limits[0],
                 .max_n_q = limits[1],
                 .max_n_k = limits[2]});
    });
    for (const std::string& error : errors)
      EXPECT_NE(error.find("E0506"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace lacuna::test

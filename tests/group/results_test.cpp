// What a group computes is what one engine computes: the same bits, since each row is computed
// whole.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/group/harness.hpp"
#include "tests/tier.hpp"

namespace lacuna::test {
namespace {

/// A spec, and where its work may be cut.
struct Subject {
  std::string name;
  Spec spec;
  std::int32_t unit = 1;     ///< 1: shares may begin anywhere
  bool cuts_queries = true;  ///< within a head
  MakeParams params = no_params;
};

/// Reads everything that a rank has to see as it is in the whole.
Spec positions_spec() {
  return Spec::parse(R"({
    "version": 1, "name": "positions",
    "attention": {
      "mask": "k <= q + n_k - n_q and k >= first[q]",
      "score": "s + slope * (q - k) / n_q + 0.1 * h"
    },
    "params": {
      "first": {"type": "i32", "shape": "[n_q]", "doc": "the first key that a query sees"},
      "slope": {"shape": "[heads]", "doc": "of the logits"},
      "threshold": {"shape": "[heads, q_tiles]", "doc": "of the gate"}
    },
    "gate": {
      "scope": "tile", "skip": "tile_max < threshold and i != 1 and n_i - i > 1",
      "exempt": "h == 1 or k1 >= q0 + n_k - n_q", "skips": ["v_load", "exp", "pv"]
    },
    "tile": {"q": 64, "k": 64}
  })",
                     "positions.json");
}

constexpr std::int32_t kTokens = 1536;
const Shape kShape{1, 6, 3, kTokens, kTokens};

std::vector<Param> positions_params() {
  static std::vector<std::int32_t> first(kTokens);
  static std::vector<float> slope(6), threshold(6 * (kTokens / 64));
  for (std::size_t q = 0; q < first.size(); ++q) first[q] = static_cast<std::int32_t>(q / 300 * 40);
  for (std::size_t h = 0; h < slope.size(); ++h) slope[h] = -0.3F * static_cast<float>(h);
  for (std::size_t t = 0; t < threshold.size(); ++t)
    threshold[t] = static_cast<float>(t % 7) - 2.0F;
  return {{"first", Tensor(first.data(), i32, {kTokens})},
          {"slope", Tensor(slope.data(), f32, {6})},
          {"threshold", Tensor(threshold.data(), f32, {6, kTokens / 64})}};
}

/// Of branches that read what branches_params has.
Spec with_branches(const std::string& name, const std::string& branches) {
  return Spec::parse(R"({
    "version": 1, "name": ")" +
                         name +
                         R"(",
    "attention": {
      "mask": "k <= q + n_k - n_q", "score": "s + slope * (q - k) / n_q + 0.1 * h"
    },
    "params": {
      "slope": {"shape": "[heads]", "doc": "of the logits"},
      "gates": {"shape": "[batch, heads, n_q, 3]", "doc": "what the branches count"}
    },
    "branches": [)" + branches +
                         "]}",
                     name + ".json");
}

/// The same of branches, each with tiles of its own: a band with a gate, means, a predictor.
Spec branches_spec() {
  return with_branches("positions-branches", R"(
      {"name": "band", "dims": "16:48", "weight": "gates[q, 0] + 0.5 * q / n_q",
       "gate": {"scope": "tile", "skip": "i % 3 == 1 and j + 2 < n_i - i",
                "exempt": "h == 1 or k1 >= q0 + n_k - n_q", "skips": ["v_load", "exp", "pv"]},
       "tile": {"q": 64, "k": 64}},
      {"name": "means", "means": 24, "weight": "gates[q, 1] + 0.01 * h"},
      {"name": "kept", "weight": "gates[q, 2]",
       "predictor": {"tile": {"q": 32, "k": 64}, "estimate": {},
                     "keep": "rank < 3 or i % 5 == j % 5 or n_i - i < 2"}}
  )");
}

/// Means of queries, whose formulas stand at their first token in the whole.
Spec pooled_spec() {
  return with_branches("positions-pooled", R"(
      {"name": "both", "means": 24, "query_means": 4, "weight": "gates[q, 0] + 0.5 * q / n_q"},
      {"name": "queries", "query_means": 2, "weight": "gates[q, 1] + 0.01 * h"},
      {"name": "tokens", "weight": "gates[q, 2]", "tile": {"q": 64, "k": 64}}
  )");
}

std::vector<Param> branches_params() {
  static std::vector<float> slope(6), gates(6 * kTokens * 3);
  for (std::size_t h = 0; h < slope.size(); ++h) slope[h] = -0.3F * static_cast<float>(h);
  for (std::size_t n = 0; n < gates.size(); ++n) gates[n] = static_cast<float>(n * 7 % 23) / 23.0F;
  return {{"slope", Tensor(slope.data(), f32, {6})},
          {"gates", Tensor(gates.data(), f32, {1, 6, kTokens, 3})}};
}

std::vector<Param> few_blocks() { return {{"blocks", 4.0}}; }

std::vector<Subject> subjects() {
  static const std::vector<Subject> all = [] {
    std::vector<Subject> list;
    list.push_back({"dense", shipped("dense")});
    list.push_back({"causal", Spec::parse(R"({"version": 1, "name": "causal",
                    "attention": {"mask": "k <= q + n_k - n_q"}})")});
    list.push_back({"window", shipped("window")});
    list.push_back({"alibi", shipped("alibi")});
    list.push_back({"positions", positions_spec(), 64, true, [] { return positions_params(); }});
    list.push_back({"topk-blocks", shipped("topk-blocks"), 64, true, few_blocks});
    list.push_back({"relmax", shipped("relmax"), 128});
    list.push_back({"sparge-topk", shipped("sparge-topk"), 128});
    list.push_back({"sale", shipped("sale"), 128, false});  // subtracts the mean of all queries
    list.push_back({"minference-vertical-slash", shipped("minference-vertical-slash"), 128, false});
    list.push_back({"branches", branches_spec(), 64, true, [] { return branches_params(); }});
    list.push_back({"pooled", pooled_spec(), 64, true, [] { return branches_params(); }});
    list.push_back({"merged-branches",
                    Spec::load(LACUNA_SOURCE_DIR "/tests/device/specs/merged-branches.json"), 64});
    return list;
  }();
  return all;
}

/// Does every share begin at a tile of the subject?
bool begins_at_tiles(const Subject& subject, const GroupCase& c) {
  if (c.layout == Layout::kHeads) return true;
  if (c.layout == Layout::kStriped) return c.stripe % subject.unit == 0;
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (kTokens * rank / c.ranks % subject.unit != 0) return false;
  }
  return true;
}

bool can_be(const Subject& subject, const GroupCase& c) {
  if (c.scheme == Scheme::kAuto || c.scheme == Scheme::kHeads) return true;
  if (c.scheme == Scheme::kRows) return subject.cuts_queries;
  if (c.layout == Layout::kHeads) return true;
  return subject.cuts_queries && begins_at_tiles(subject, c);
}

/// All that can be combined for one spec with positions, one with a predictor and one whose queries
/// stay together; a few for the others. The two ways of exchange take turns.
std::vector<GroupCase> cases_of(const Subject& subject) {
  std::vector<GroupCase> all = {
      {.ranks = 2, .layout = Layout::kContiguous},
      {.ranks = 3, .layout = Layout::kStriped, .stripe = 128, .scheme = Scheme::kRows},
      {.ranks = 4, .layout = Layout::kHeads, .scheme = Scheme::kHeads}};
  const bool is_whole = subject.name == "positions" || subject.name == "relmax" ||
                        subject.name == "sale" || subject.name == "branches";
  if (!is_whole) return all;
  all.clear();
  for (const int ranks : {2, 3, 4}) {
    for (const Scheme scheme : {Scheme::kAuto, Scheme::kGather, Scheme::kRows, Scheme::kHeads}) {
      all.push_back({.ranks = ranks, .layout = Layout::kContiguous, .scheme = scheme});
      all.push_back({.ranks = ranks, .layout = Layout::kStriped, .stripe = 128, .scheme = scheme});
      all.push_back({.ranks = ranks, .layout = Layout::kHeads, .scheme = scheme});
    }
  }
  return in_tier(
      all,
      [](const GroupCase& c) {
        return Properties{std::to_string(c.ranks), std::to_string(static_cast<int>(c.layout)),
                          std::to_string(static_cast<int>(c.scheme))};
      },
      1);
}

class GroupResults : public testing::TestWithParam<std::size_t> {};

TEST_P(GroupResults, AreThoseOfOneEngine) {
  const Subject subject = subjects()[GetParam()];
  const Whole whole = make_whole(kShape);
  const Results alone = run_alone(whole, subject.spec, subject.params);
  bool by_messages = false;
  for (GroupCase c : cases_of(subject)) {
    by_messages = !by_messages;
    if (by_messages) c.exchange = Exchange::kMessages;
    SCOPED_TRACE(subject.name + ", " + name_of(c));
    const GroupRun run = run_together(whole, subject.spec, c, subject.params);
    for (const std::string& error : run.errors) {
      if (can_be(subject, c)) {
        EXPECT_EQ(error, "");
      } else {
        EXPECT_NE(error.find("no such scheme"), std::string::npos) << error;
      }
    }
    if (can_be(subject, c)) {
      EXPECT_TRUE(run.results == alone);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Specs, GroupResults, testing::Range<std::size_t>(0, 12),
                         [](const auto& info) {
                           std::string name = subjects()[info.param].name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Group, TakesTokensWhoseHeadsLieSideBySide) {
  const Whole whole = make_whole({2, 4, 2, 512, 512});
  const Spec spec = shipped("window");
  const Results alone = run_alone(whole, spec);
  for (const Scheme scheme : {Scheme::kGather, Scheme::kHeads}) {
    GroupCase c{.ranks = 3, .scheme = scheme, .token_major = true};
    c.link_gb_s = scheme == Scheme::kHeads ? 1e-3 : 0;
    for (const Exchange exchange : {Exchange::kAuto, Exchange::kMessages}) {
      c.exchange = exchange;
      SCOPED_TRACE(name_of(c));
      const GroupRun run = run_together(whole, spec, c);
      for (const std::string& error : run.errors) EXPECT_EQ(error, "");
      EXPECT_TRUE(run.results == alone);
    }
  }
}

TEST(Group, HasMoreKeysThanQueriesAndSeveralBatchEntries) {
  const Whole whole = make_whole({2, 4, 1, 200, 456});
  const Spec spec = shipped("window");
  const Results alone = run_alone(whole, spec);
  for (const Layout layout : {Layout::kContiguous, Layout::kStriped, Layout::kHeads}) {
    const GroupCase c{.ranks = 3, .layout = layout, .stripe = 48};
    SCOPED_TRACE(name_of(c));
    const GroupRun run = run_together(whole, spec, c);
    for (const std::string& error : run.errors) EXPECT_EQ(error, "");
    EXPECT_TRUE(run.results == alone);
  }
}

TEST(Group, GivesTheSameBitsInEveryLaunch) {
  const Whole whole = make_whole(kShape);
  GroupCase c{.ranks = 4};
  const GroupRun once = run_together(whole, shipped("relmax"), c);
  for (const Exchange exchange : {Exchange::kAuto, Exchange::kMessages}) {
    c.exchange = exchange;
    const GroupRun often = run_together(whole, shipped("relmax"), c, no_params, 4);
    EXPECT_TRUE(once.results == often.results) << name_of(c);
  }
}

/// In each scheme, with ranks that have one KV head and with ranks that have several, and with
/// heads that do not divide.
TEST(Group, AnExchangeInChunksGivesTheSameBits) {
  for (const auto& [heads, heads_kv] : {std::pair{12, 6}, {5, 5}}) {
    const Whole whole = make_whole({2, heads, heads_kv, 520, 520});
    for (const char* name : {"window", "relmax"}) {
      const Spec spec = shipped(name);
      const Results alone = run_alone(whole, spec);
      for (const Scheme scheme : {Scheme::kGather, Scheme::kRows, Scheme::kHeads}) {
        for (const Exchange exchange : {Exchange::kAuto, Exchange::kMessages}) {
          if (exchange == Exchange::kMessages && std::string(name) == "relmax") continue;
          GroupCase c{.ranks = heads == 12 ? 2 : 3,
                      .layout = Layout::kStriped,
                      .stripe = 128,
                      .scheme = scheme};
          if (scheme == Scheme::kRows) c.layout = Layout::kContiguous;
          c.exchange = exchange;
          c.link_gb_s = 1e-3;
          SCOPED_TRACE(std::to_string(heads) + " heads, " + name + ", " + name_of(c));
          const GroupRun run = run_together(whole, spec, c, no_params, 2);
          for (const std::string& error : run.errors) EXPECT_EQ(error, "");
          EXPECT_TRUE(run.results == alone);
          const auto plan = nlohmann::json::parse(run.plans[0]);
          for (const auto& one : plan["schemes"]) {
            if (one["scheme"] != plan["scheme"]) continue;
            EXPECT_GT(one["chunks"], 1);
            EXPECT_EQ(one["sent_bytes_total"], one["least_bytes_total"]);
          }
        }
      }
    }
  }
}

TEST(Group, CountsAreThoseOfOneEngine) {
  const Whole whole = make_whole({2, 6, 3, 512, 512});
  const Spec spec = shipped("relmax");
  const Results alone = run_alone(whole, spec, no_params, /*with_counts=*/true);
  for (const Scheme scheme : {Scheme::kGather, Scheme::kRows, Scheme::kHeads}) {
    GroupCase c{.ranks = 2, .scheme = scheme, .with_counts = true};
    c.link_gb_s = scheme == Scheme::kRows ? 0 : 1e-3;
    SCOPED_TRACE(name_of(c));
    const GroupRun run = run_together(whole, spec, c);
    for (const std::string& error : run.errors) EXPECT_EQ(error, "");
    EXPECT_TRUE(run.results == alone);
  }
  const Whole odd = make_whole({1, 2, 2, 250, 250});
  const GroupCase c{.ranks = 2, .scheme = Scheme::kGather, .with_counts = true};
  EXPECT_NE(run_together(odd, shipped("dense"), c).errors[1].find("counts: queries are cut at 125"),
            std::string::npos);
}

/// One head has all the work: the ranks share it by its rows.
TEST(Group, DealsByWhatWasCounted) {
  const Whole whole = make_whole({1, 4, 4, 1024, 1024});
  const Spec spec = shipped("topk-blocks");
  const Results alone = run_alone(whole, spec, few_blocks);
  GroupCase c{.ranks = 2, .scheme = Scheme::kHeads};
  const std::size_t tiles = 1024 / 64;
  c.work.assign(4 * tiles, 1.0F);
  std::fill_n(c.work.begin(), tiles, 30.0F);
  const GroupRun run = run_together(whole, spec, c, few_blocks);
  for (const std::string& error : run.errors) EXPECT_EQ(error, "");
  EXPECT_TRUE(run.results == alone);
  const auto plan = nlohmann::json::parse(run.plans[0]);
  EXPECT_LT(plan["schemes"][2]["imbalance"].get<double>(), 0.06) << plan.dump(1);
  EXPECT_EQ(plan["schemes"][2]["sent_bytes_total"], plan["schemes"][2]["least_bytes_total"]);
}

}  // namespace
}  // namespace lacuna::test

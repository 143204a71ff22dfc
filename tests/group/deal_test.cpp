// Shares, deals and what travels: for any number of ranks, heads and tokens all work is done once,
// and no more is sent than has to be.
#include <gtest/gtest.h>

#include "runtime/group/chunks.hpp"
#include "runtime/group/cost.hpp"
#include "runtime/group/schedule.hpp"

namespace lacuna::group {
namespace {

Work causal_work(const LaunchShape& shape, std::int32_t unit) {
  Work work{shape.n_h, (shape.n_q + unit - 1) / unit, {}};
  for (std::int32_t h = 0; h < work.heads; ++h) {
    for (std::int32_t u = 0; u < work.units; ++u) work.pairs.push_back((u + 1.0) * unit * unit);
  }
  for (std::int32_t u = 0; u < work.units; ++u) work.seen.push_back({0, (u + 1) * unit});
  return work;
}

std::vector<Layout> layouts() {
  return {{LayoutKind::kContiguous, 0}, {LayoutKind::kStriped, 96}, {LayoutKind::kHeads, 0}};
}

/// How often each row of each head is computed.
std::vector<int> count_rows(const std::vector<std::vector<Piece>>& ranks,
                            const LaunchShape& shape) {
  std::vector<int> counts(static_cast<std::size_t>(shape.n_h * shape.n_q), 0);
  for (const auto& pieces : ranks) {
    for (const Piece& piece : pieces) {
      for (std::int32_t h = piece.heads.begin; h < piece.heads.end; ++h) {
        for (std::int32_t q = piece.q.begin; q < piece.q.end; ++q)
          ++counts[static_cast<std::size_t>(h * shape.n_q + q)];
      }
    }
  }
  return counts;
}

TEST(Deal, EveryRowIsComputedOnceAndNothingNeedlessIsSent) {
  CutRules rules;
  rules.unit = 32;
  for (const int size : {1, 2, 3, 4, 7, 8}) {
    for (const auto& [heads, heads_kv] : {std::pair{6, 3}, {5, 5}, {8, 2}, {1, 1}}) {
      for (const std::int32_t n_q : {1, 100, 960}) {
        const LaunchShape shape{2, heads, heads_kv, n_q, 500};
        const Work work = causal_work(shape, rules.unit);
        for (const Layout& layout : layouts()) {
          SCOPED_TRACE(std::to_string(size) + " ranks, " + std::to_string(heads) + " heads, " +
                       std::to_string(n_q) + " queries, " + std::string(name_of(layout.kind)));
          const Problem problem{shape, layout, true, false, 64, 2};
          // A slow link makes chunks.
          const double link_gb_s = n_q == 960 ? 0.01 : 0;
          for (const SchemeCost& cost :
               cost_schemes(problem, size, rules, work,
                            known_rates("sm_90a", Exchange::kMessages, link_gb_s, 0))) {
            SCOPED_TRACE(std::string(name_of(cost.scheme)));
            ASSERT_EQ(cost.refusal, "");
            EXPECT_EQ(count_rows(cost.traffic.pieces, shape),
                      std::vector<int>(static_cast<std::size_t>(heads * n_q), 1));
            std::size_t sent = 0, planned = 0;
            for (int rank = 0; rank < size; ++rank) {
              sent += sent_bytes(schedule_rank(cost.traffic, rank), problem);
              planned += cost.sent_bytes[static_cast<std::size_t>(rank)];
            }
            EXPECT_EQ(sent, cost.traffic.least_bytes());
            EXPECT_EQ(sent, planned);
          }
        }
      }
    }
  }
}

TEST(Deal, ChunksGrowAndEndSmallWhereResultsTravel) {
  using Heads = std::vector<std::int32_t>;
  EXPECT_EQ(chunk_heads(0, false), Heads{});
  EXPECT_EQ(chunk_heads(1, true), Heads{1});
  EXPECT_EQ(chunk_heads(2, true), (Heads{1, 1}));
  EXPECT_EQ(chunk_heads(8, false), (Heads{1, 2, 5}));
  EXPECT_EQ(chunk_heads(8, true), (Heads{1, 2, 4, 1}));
  EXPECT_EQ(chunk_heads(32, false), (Heads{1, 2, 6, 18, 5}));
}

/// What runs under attention is not waited for; and a rank that computes rows that it holds does
/// not copy them.
TEST(Deal, ChunksHideTheExchange) {
  const LaunchShape shape{1, 32, 8, 32768, 32768};
  CutRules rules;
  rules.unit = 128;
  const Work work = causal_work(shape, rules.unit);
  for (const LayoutKind kind : {LayoutKind::kStriped, LayoutKind::kContiguous}) {
    const auto costs = cost_schemes({shape, {kind, 8192}, false, false, 128, 2}, 2, rules, work,
                                    known_rates("sm_90a", Exchange::kMessages, 0, 0));
    for (const SchemeCost& cost : costs) {
      SCOPED_TRACE(std::string(name_of(kind)) + ", " + std::string(name_of(cost.scheme)));
      EXPECT_GT(cost.traffic.chunks, 1);
      EXPECT_LT(cost.total_us, cost.compute_us + 0.6 * cost.exchange_us);
      EXPECT_GT(cost.total_us, cost.compute_us);
    }
    if (kind == LayoutKind::kStriped) continue;
    const Schedule schedule = schedule_rank(costs[1].traffic, 0);
    for (const PieceLaunch& launch : schedule.launches) EXPECT_TRUE(launch.own_results.empty());
    for (const Chunk& chunk : schedule.chunks) {
      EXPECT_TRUE(chunk.outputs.after.empty());
      for (const Copy& copy : chunk.own) EXPECT_NE(copy.tensor, TensorId::kQ);
    }
  }
}

/// "i" for the inputs of a chunk, "e" for an early launch, "l" for another, "r" for results.
std::string steps_text(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    const bool early = step.kind == Step::kLaunch && schedule.launches[step.number].piece.early;
    text += early ? 'e' : "ilr"[step.kind];
  }
  return text;
}

/// Under a causal mask the first of two ranks holds all that its own queries see: these wait for
/// nothing, and results of other ranks travel while the last of them is computed.
TEST(Deal, QueriesThatSeeOwnKeysComeFirstAndLast) {
  const LaunchShape shape{1, 32, 8, 32768, 32768};
  CutRules rules;
  rules.unit = 128;
  const Problem problem{shape, {LayoutKind::kContiguous, 0}, false, false, 128, 2};
  const auto traffic = [&](Scheme scheme, const CutRules& cut) {
    return cost_schemes(
               problem, 2, cut, causal_work(shape, cut.unit),
               known_rates("sm_90a", Exchange::kMessages, 0, 0))[static_cast<std::size_t>(scheme)]
        .traffic;
  };
  const Traffic rows = traffic(Scheme::kRows, rules);
  EXPECT_EQ(steps_text(schedule_rank(rows, 0)), "ieililleeer");
  EXPECT_EQ(steps_text(schedule_rank(rows, 1)), "iililllr");
  EXPECT_EQ(rows.pieces_of(0).front().q, (Range{0, 16384}));
  // Kernels that read all keys wait for them; the last launch has results of own queries there,
  // too.
  rules.reads_all_keys = true;
  EXPECT_EQ(steps_text(schedule_rank(traffic(Scheme::kRows, rules), 0)), "iillilllllr");
  // Heads are all of their tokens.
  EXPECT_EQ(steps_text(schedule_rank(traffic(Scheme::kHeads, {}), 1)), "iilillrrr");
}

TEST(Deal, PiecesHaveOneKvHeadOrAllHeadsOfSeveral) {
  const LaunchShape shape{1, 12, 3, 960, 960};
  CutRules rules;
  rules.unit = 32;
  const Work work = causal_work(shape, rules.unit);
  for (const int size : {2, 5, 8}) {
    const auto shares = shares_of({LayoutKind::kContiguous, 0}, shape, size);
    for (const auto& pieces : deal_work(Scheme::kHeads, shares, shape, rules, work).ranks) {
      for (const Piece& piece : pieces) {
        const bool is_whole = piece.heads.begin % 4 == 0 && piece.heads.end % 4 == 0;
        EXPECT_TRUE(is_whole || kv_heads_of(piece.heads, shape).count() == 1)
            << piece.heads.begin << " to " << piece.heads.end;
      }
    }
  }
}

TEST(Deal, CausalWorkIsBalancedByRowsHeadsAndStripes) {
  const LaunchShape shape{1, 8, 2, 16384, 16384};
  CutRules rules;
  rules.unit = 128;
  const Work work = causal_work(shape, rules.unit);
  const auto costs_of = [&](const Layout& layout) {
    return cost_schemes({shape, layout, false, false, 128, 2}, 3, rules, work,
                        known_rates("sm_90a", Exchange::kMessages, 0, 0));
  };
  const auto contiguous = costs_of({LayoutKind::kContiguous, 0});
  EXPECT_GT(contiguous[0].imbalance(), 0.6);
  EXPECT_LT(contiguous[1].imbalance(), 0.03);
  EXPECT_LT(contiguous[2].imbalance(), 0.03);
  EXPECT_LT(costs_of({LayoutKind::kStriped, 128})[0].imbalance(), 0.05);
}

/// Eight query heads of two KV heads on many ranks: K and V are the least. On few ranks with as
/// many KV heads as query heads, heads are.
TEST(Deal, TheShorterSchemeIsChosen) {
  CutRules rules;
  rules.unit = 128;
  const auto chosen = [&](std::int32_t heads, std::int32_t heads_kv, int size) {
    const LaunchShape shape{1, heads, heads_kv, 32768, 32768};
    const Work work = causal_work(shape, rules.unit);
    const auto costs =
        cost_schemes({shape, {LayoutKind::kStriped, 512}, false, false, 128, 2}, size, rules, work,
                     known_rates("sm_90a", Exchange::kMessages, 0, 0));
    return costs[*choose_scheme(costs, std::nullopt)].scheme;
  };
  EXPECT_EQ(chosen(32, 8, 2), Scheme::kGather);
  EXPECT_EQ(chosen(32, 32, 8), Scheme::kHeads);
}

TEST(Deal, HeadsThatDecideTogetherStayTogether) {
  const LaunchShape shape{1, 8, 2, 512, 512};
  CutRules rules;
  rules.unit = 64;
  rules.whole_kv_heads = true;
  rules.no_query_cut = "a mean over all queries";
  const Work work = causal_work(shape, rules.unit);
  const auto shares = shares_of({LayoutKind::kContiguous, 0}, shape, 3);
  for (const auto& pieces : deal_work(Scheme::kHeads, shares, shape, rules, work).ranks) {
    for (const Piece& piece : pieces) {
      EXPECT_EQ(piece.heads.begin % 4, 0);
      EXPECT_EQ(piece.heads.end % 4, 0);
      EXPECT_EQ(piece.q, (Range{0, 512}));
    }
  }
  EXPECT_EQ(deal_work(Scheme::kRows, shares, shape, rules, work).refusal, rules.no_query_cut);
  EXPECT_EQ(deal_work(Scheme::kGather, shares, shape, rules, work).refusal, rules.no_query_cut);
}

}  // namespace
}  // namespace lacuna::group

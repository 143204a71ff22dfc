// Few queries of many keys on emulated blocks: scores that the kernel before the estimate makes
// (templates/select/pooled/row_scores.cuh, select/tokens/key_shares.cuh,
// select/cells/cell_shares.cuh), and long rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "templates/shared/select_block.cuh"
#include "tests/device/runner.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {
namespace {

using emulation::Landing;
using emulation::Schedule;
using emulation::WarpOrder;

/// As many keys as make rows of pooled estimates few, or blocks share keys.
int keys_for(const Subject& subject) {
  return subject.spec == "quest" ? kManyTiles * 16 + 5 : std::max(kManyTiles * 64, kManyKeys) + 5;
}

/// One subject of each spec; in the short tier of those whose decisions take the new paths.
std::vector<Subject> few_row_subjects() {
  std::vector<Subject> asked;
  for (const char* spec :
       test::by_tier(std::vector{"quest", "topk-blocks", "deepseek-indexer", "sparge-topk",
                                 "twilight", "relmax", "xattention"},
                     {"quest", "topk-blocks", "deepseek-indexer", "relmax", "xattention"})) {
    const auto found = std::ranges::find_if(subjects(), [&](const Subject& subject) {
      return subject.spec == spec && subject.head_dim == 64;
    });
    if (found != subjects().end()) asked.push_back(*found);
  }
  return asked;
}

class FewRows : public testing::TestWithParam<Subject> {};

std::string check_queries(const Subject& subject, int n_q, numerics::Fill fill) {
  numerics::Case shape;
  shape.n_b = 1, shape.n_h = 4, shape.n_h_kv = 2, shape.n_q = n_q, shape.n_k = keys_for(subject);
  shape.fill = fill;
  const Problem problem = make_problem(subject, shape, 41);
  const Schedule schedule = {Landing::kLate, WarpOrder::kShuffled, 3};
  return check_variant(problem.shape, problem.variant, run(subject, problem, schedule), true);
}

TEST_P(FewRows, AgreeWithTheOracle) {
  EXPECT_EQ(check_queries(GetParam(), 1, numerics::Fill::kClustered), "");
}

/// Of one tile, and each with keys that the others do not see.
TEST_P(FewRows, AgreeForSeveralQueries) {
  EXPECT_EQ(check_queries(GetParam(), 5, numerics::Fill::kUneven), "");
}

INSTANTIATE_TEST_SUITE_P(Generated, FewRows, testing::ValuesIn(few_row_subjects()),
                         [](const testing::TestParamInfo<Subject>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace lacuna::device

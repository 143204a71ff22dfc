// The order in which a work tile visits its keys, where the spec leaves it open.
#include "compiler/spec/enum_names.hpp"
#include "compiler/target/plan_values.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

std::string order(const std::string& fields, const TunedTiles* tuned = nullptr) {
  Diagnostics diagnostics;
  BuildOptions options;
  if (tuned != nullptr) options.tuned = *tuned;
  const Plan made = make_plan(read_document(fields), options, target("sm_90a"), diagnostics);
  EXPECT_EQ(text_of(diagnostics), "") << fields;
  const Chosen<TileOrder>& chosen = made.attend.order;
  return std::string(kTileOrderNames[static_cast<std::size_t>(chosen.value)]) + ", " +
         std::string(name_of(chosen.origin));
}
std::string order_of_score(const std::string& score, const std::string& range = "") {
  const std::string param =
      R"("params": {"slope": {"shape": "[heads]", "doc": "of the test")" + range + "}}";
  return order(R"("attention": {"mask": "k <= q + n_k - n_q", "score": ")" + score + "\"}" +
               (score.find("slope") == std::string::npos ? "" : ", " + param));
}

TEST(Order, IsDescendingWhereScoresRiseAlongTheKeys) {
  const std::string at_least_0 = R"(, "range": [0, "inf"])";
  EXPECT_EQ(order_of_score("s - 0.5 * (q - k)"), "descending, derived");
  EXPECT_EQ(order_of_score("s * 2 + 0.125 * k"), "descending, derived");
  EXPECT_EQ(order_of_score("s - slope * (q - k)", at_least_0), "descending, derived");
  EXPECT_EQ(order_of_score("s + slope * (q - k)", R"(, "range": [-4, 0])"), "descending, derived");
}

TEST(Order, IsAscendingWhereTheyFallOrNobodyKnows) {
  EXPECT_EQ(order_of_score("s"), "ascending, default");
  EXPECT_EQ(order_of_score("s + 0.5 * (q - k)"), "ascending, default");
  EXPECT_EQ(order_of_score("s - slope * (q - k)"), "ascending, default") << "of either sign";
  EXPECT_EQ(order_of_score("s - slope * (q - k)", R"(, "range": [-1, 4])"), "ascending, default");
  EXPECT_EQ(order_of_score("s - 0.5 * abs(q - k)"), "ascending, default");
}

TEST(Order, IsThatOfTheSpecOrAMeasurementFirst) {
  const std::string rising = R"-("attention": {"score": "s - 0.5 * (q - k)"})-";
  EXPECT_EQ(order(rising + R"(, "tile": {"order": "ascending"})"), "ascending, spec");
  const std::string gate = R"(, "gate": {"skip": "gap < -9", "skips": ["pv"]})";
  EXPECT_EQ(order(rising + gate), "ascending, default") << "a gate's decisions depend on it";
  TunedTiles measured{128, 64, 2, {}, "record 7"};
  EXPECT_EQ(order(rising, &measured), "descending, derived");
  measured.order = TileOrder::kAscending;
  EXPECT_EQ(order(rising, &measured), "ascending, tuned");
}

}  // namespace
}  // namespace lacuna

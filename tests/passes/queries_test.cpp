// Where products of the wgmma family take queries from, and what follows for the consumer.
#include "tests/passes/planned_wgmma.hpp"

namespace lacuna {
namespace {

std::string text_of(const Chosen<QueryPlace>& chosen) {
  return std::string(name_of(chosen.value)) + " " + std::string(name_of(chosen.origin)) + ": " +
         chosen.reason;
}
std::string queries(const std::string& fields, const BuildOptions& options = {}) {
  const PlannedWgmma made = planned(read_document(fields), options);
  EXPECT_EQ(made.diagnostics, "") << fields;
  return text_of(made.attend().queries);
}

BuildOptions measured(QueryPlace place) {
  TunedTiles tiles{128, 128, 2, {}, "record 7"};
  tiles.queries = place;
  return {.tuned = tiles};
}

const std::string kNothing = R"("doc": "")";
const std::string kRead = R"("tile": {"queries": "shared_memory"})";

TEST(Queries, StayInRegistersUnlessTheSpecOrAMeasurementSaysOtherwise) {
  EXPECT_EQ(queries(kNothing), "registers default: products need not read them again");
  EXPECT_EQ(queries(kRead), "shared_memory spec: ");
  EXPECT_EQ(queries(kNothing, measured(QueryPlace::kSharedMemory)),
            "shared_memory tuned: record 7");
  EXPECT_EQ(queries(R"("tile": {"queries": "registers"})", measured(QueryPlace::kSharedMemory)),
            "registers spec: ");
  EXPECT_EQ(queries(R"("tile": {"queries": ["shared_memory", "registers"]})",
                    measured(QueryPlace::kRegisters)),
            "registers tuned: record 7");
}

TEST(Queries, AreReadWhereRegistersHaveNoRoomWhateverIsAskedFor) {
  const std::string kept = R"("tile": {"queries": "registers"})";
  EXPECT_EQ(queries(kept, {.head_dim = 256}),
            "shared_memory derived: registers have no room for rows of 256 elements");
  EXPECT_EQ(queries(kept, {.head_dim = 64}),
            "shared_memory derived: 3 warpgroups have no registers for them");
  EXPECT_EQ(queries(kept + R"(, "quantise": {"qk": {"bits": 8}})"),
            "shared_memory derived: int8 products read them");
  EXPECT_EQ(queries(kept + R"(, "gate": {"scope": "tile", "skip": "tile_max < 0",
                              "skips": ["exp", "pv"]})"),
            "shared_memory derived: the next scores of a gate take their registers");
}

TEST(Queries, RowsFollowOneAnotherOnlyWithTheirs) {
  EXPECT_EQ(planned(read_document(kNothing)).attend().consumer.value, Consumer::kWgmmaChained);
  const Chosen<Consumer> reading = planned(read_document(kRead)).attend().consumer;
  EXPECT_EQ(reading.value, Consumer::kWgmma);
  EXPECT_EQ(reading.reason,
            "operands of 16 bits; O is stored before the next row begins: queries are not kept in "
            "registers");
}

}  // namespace
}  // namespace lacuna

// What tune says of made-up findings.
#include <gtest/gtest.h>

#include "tools/tune/report.hpp"

namespace lacuna::tests {
namespace {

using tools::TuneFindings;
using tools::TuneState;
using tune::Result;
using tune::TuningStatus;

constexpr LaunchShape kTunedShape{1, 2, 2, 256, 512};

const std::string kHead = "bsfa on A CPU at b=1, h=2, h_kv=2, n_q=256, n_k=512, values normal:\n";

class TuneReport : public ::testing::Test {
 protected:
  TuneReport() {
    findings_.facts.device_name = "A CPU";
    for (int id = 0; id < 12; ++id) {
      tune::Candidate candidate;
      candidate.id = id;
      candidate.config.tile_q = 16 * (id + 1);
      candidate.config.tile_k = 64;
      findings_.space.candidates.push_back(candidate);
    }
    // The usual one is third; what failed stands behind all others, whatever its rung.
    findings_.outcome.results = {{.id = 0,
                                  .status = TuningStatus::kOk,
                                  .detail = "",
                                  .rung = 2,
                                  .median_us = 300,
                                  .spread = 0.01},
                                 {.id = 1,
                                  .status = TuningStatus::kCrash,
                                  .detail = "signal 11",
                                  .rung = 0,
                                  .median_us = 0,
                                  .spread = 0},
                                 {.id = 2,
                                  .status = TuningStatus::kOk,
                                  .detail = "",
                                  .rung = 2,
                                  .median_us = 200,
                                  .spread = 0.02},
                                 {.id = 3,
                                  .status = TuningStatus::kOk,
                                  .detail = "",
                                  .rung = 1,
                                  .median_us = 100,
                                  .spread = 0.5},
                                 {.id = 4,
                                  .status = TuningStatus::kOk,
                                  .detail = "",
                                  .rung = 2,
                                  .median_us = 250,
                                  .spread = 0}};
    findings_.ordered.pruned = {{5, "far away"}, {6, "farther"}};
    findings_.outcome.unmeasured = {7};
    findings_.space.refused = {{findings_.space.candidates[8].config, "does not fit"}};
    findings_.reused = 2;
    findings_.seconds = 1.5;
    cache::TuningRecord best;
    best.config = config(2);
    best.median_us = 200;
    findings_.best = best;
  }

  std::string config(std::size_t id) const {
    return print_config(findings_.space.candidates[id].config);
  }
  std::string text() const {
    return tools::print_findings(findings_, "bsfa", kTunedShape, "normal", false);
  }
  nlohmann::ordered_json document() const {
    return tools::findings_json(findings_, "bsfa", kTunedShape, "normal");
  }

  TuneFindings findings_;
};

TEST_F(TuneReport, NamesTheWinnerAndCountsWhatWasMeasured) {
  const std::string winner =
      R"(  q48 k64 ascending: 200 us, 1.50 times as fast as without tuning (q16 k64 ascending)
  5 of 12 configurations measured in 1.5 s, 2 of them known before, 1 failed, 2 hopeless by the cost model, 1 not reached in time
  configuration      median  spread   rung  status
  q48 k64 ascending  200 us  2.00 %      2  ok
  q80 k64 ascending  250 us  0.00 %      2  ok
  q16 k64 ascending  300 us  1.00 %      2  ok
  q64 k64 ascending  100 us  50.00 %     1  ok
  q32 k64 ascending  -       -           0  crash: signal 11
)";
  EXPECT_EQ(text(), kHead + winner);
  findings_.state = TuneState::kInterrupted;
  EXPECT_EQ(text(), kHead + "  interrupted; what was measured is kept\n" + winner);
}

TEST_F(TuneReport, SaysThatTheUsualOneIsTheBestOrThatNothingWas) {
  findings_.best->config = config(0);
  findings_.best->median_us = 300;
  findings_.outcome.unmeasured.clear();
  findings_.ordered = {};
  findings_.reused = 0;
  findings_.outcome.results.resize(1);
  EXPECT_EQ(text(), kHead +
                        "  q16 k64 ascending: 300 us, which is used without tuning, too\n"
                        "  1 of 12 configurations measured in 1.5 s\n"
                        "  configuration      median  spread  rung  status\n"
                        "  q16 k64 ascending  300 us  1.00 %     2  ok\n");
  findings_.best.reset();
  findings_.outcome.results.clear();
  EXPECT_EQ(text(), kHead + "  nothing was measured\n  0 of 12 configurations measured in 1.5 s\n");
}

TEST_F(TuneReport, ShowsTheEightFastestAndAllThatFailed) {
  for (int id = 5; id < 12; ++id)
    findings_.outcome.results.push_back({.id = id,
                                         .status = TuningStatus::kOk,
                                         .detail = "",
                                         .rung = 2,
                                         .median_us = 400.0 + id,
                                         .spread = 0});
  const std::string shown = text();
  const auto is_shown = [&](std::size_t id) {
    return shown.find("\n  " + config(id) + " ") != std::string::npos;
  };
  for (const std::size_t id : {0u, 1u, 2u, 4u, 5u, 6u, 7u, 8u, 9u}) EXPECT_TRUE(is_shown(id)) << id;
  for (const std::size_t id : {3u, 10u, 11u}) EXPECT_FALSE(is_shown(id)) << id;
}

TEST_F(TuneReport, SaysWhatWasKnownAndThatNothingIsOpen) {
  findings_.state = TuneState::kKnown;
  EXPECT_EQ(text(), kHead + "  q48 k64 ascending: 200 us, tuned before\n");
  findings_.state = TuneState::kNothingOpen;
  findings_.fixed = {"tile.q (written)", "threads (--threads)"};
  EXPECT_EQ(text(), kHead + "  nothing to tune: tile.q (written), threads (--threads)\n");
}

TEST_F(TuneReport, TheDocumentNamesEveryCandidateOnce) {
  const auto json = document();
  EXPECT_EQ(json["state"], "tuned");
  EXPECT_EQ(json["best"].dump(), R"({"config":")" + config(2) + R"(","median_us":200.0})");
  EXPECT_EQ(json["usual"].dump(), R"({"config":")" + config(0) + R"(","median_us":300.0})");
  std::vector<int> measured;
  for (const auto& result : json["measured"]) measured.push_back(result["id"]);
  EXPECT_EQ(measured, (std::vector{2, 4, 0, 3, 1}));
  std::vector<std::string> others;
  for (const auto& other : json["not_measured"])
    others.push_back(other["config"].get<std::string>() + ": " + other["by"].get<std::string>() +
                     ", " + other["reason"].get<std::string>());
  EXPECT_EQ(others,
            (std::vector{config(5) + ": cost model, far away", config(6) + ": cost model, farther",
                         config(8) + ": compiler, does not fit",
                         config(7) + ": budget, the time was up"}));
  findings_.outcome.results[0].status = TuningStatus::kCrash;
  EXPECT_FALSE(document().contains("usual"));
}

}  // namespace
}  // namespace lacuna::tests

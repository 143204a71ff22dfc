// What calibrate says of heads that differ, and of samples that nothing was fitted to.
#include <gtest/gtest.h>

#include "tools/common/session.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/calibrate/report.hpp"

namespace lacuna::tests {
namespace {

using tools::Calibration;
using tools::SearchResult;

ParamSpec param_named(const std::string& name) {
  ParamSpec param;
  param.symbol.name = name;
  return param;
}

class CalibrateReport : public ::testing::Test {
 protected:
  CalibrateReport() {
    calibration_.spec = "made-up";
    calibration_.target_rel_l1 = 0.05;
    calibration_.dense = {false, true};
    calibration_.samples.resize(3);
    calibration_.samples[2].held_out = true;
    calibration_.results = {{{.density = 0.25, .rel_l1 = 0.01}, {.density = 1, .rel_l1 = 0}},
                            {{.density = 0.5, .rel_l1 = 0.04}, {.density = 1, .rel_l1 = 0}},
                            {{.density = 0.75, .rel_l1 = 0.07}, {.density = 1, .rel_l1 = 0}}};
    search_.params = {{.spec = &one_, .scale = {}, .rows = 1, .values = {7}},
                      {.spec = &by_head_, .scale = {}, .rows = 1, .values = {1, 2}},
                      {.spec = &by_tile_, .scale = {}, .rows = 3, .values = {5, 3, 4, 8, 6, 9}}};
  }

  nlohmann::ordered_json document() const {
    tools::Session session;
    session.json = true;
    tools::report_calibration({calibration_, search_, "cpu", "", 12}, session);
    return session.document;
  }

  std::string text() const {
    tools::Session session;
    session.color = "never";
    testing::internal::CaptureStdout();
    tools::report_calibration({calibration_, search_, "cpu", "", 12}, session);
    tools::finish(session);
    return testing::internal::GetCapturedStdout();
  }

  const ParamSpec one_ = param_named("one"), by_head_ = param_named("by_head"),
                  by_tile_ = param_named("by_tile");
  Calibration calibration_;
  SearchResult search_;
};

TEST_F(CalibrateReport, EachHeadHasItsOwnValues) {
  const nlohmann::ordered_json report = document(), &heads = report["heads"];
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(heads[0]["params"].dump(), R"({"one":"7","by_head":"1","by_tile":["5","3","4"]})");
  EXPECT_EQ(heads[1]["params"].dump(), R"({"one":"7","by_head":"2","by_tile":["8","6","9"]})");
  EXPECT_EQ(heads[0]["dense"], false);
  EXPECT_EQ(heads[1]["dense"], true);
}

TEST_F(CalibrateReport, DensitiesAreMeansAndErrorsTheWorstOfSamplesOfOneKind) {
  const nlohmann::ordered_json head = document()["heads"][0];
  EXPECT_EQ(head["fitted"].dump(), R"({"density":0.375,"rel_l1":0.04})");
  EXPECT_EQ(head["held_out"].dump(), R"({"density":0.75,"rel_l1":0.07})");
  calibration_.samples.pop_back();
  EXPECT_FALSE(document()["heads"][0].contains("held_out"));
}

TEST_F(CalibrateReport, TheTableHasALineForEachHead) {
  search_.tables = {{.kept = 16, .predicted = 0.5, .measured = 0.625, .rel_l1 = 0.01}};
  EXPECT_EQ(text(), R"(made-up on cpu, relative L1 at most 0.05, 12 launches
  head  one  by_head  by_tile  density  relative L1  held-out density  held-out relative L1
     0    7        1   3 to 5   37.5 %     4.00e-02            75.0 %              7.00e-02
     1    7        2   6 to 9  100.0 %     0.00e+00           100.0 %              0.00e+00  left dense
  kept tiles  density predicted  measured  largest relative L1
          16             50.0 %    62.5 %             1.00e-02
)");
}

}  // namespace
}  // namespace lacuna::tests

// What `run` says of made-up results, and how far two outputs are apart.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tools/run/report.hpp"

namespace lacuna::tests {
namespace {

using tools::ArrayType;

tools::Inputs reported_inputs() {
  tools::Inputs inputs;
  inputs.origin = "x.safetensors";
  inputs.q = {ArrayType::kBF16, {2, 8, 300, 64}, {}};
  inputs.k = inputs.v = {ArrayType::kBF16, {2, 4, 500, 64}, {}};
  inputs.params.push_back({.name = "tau", .tensor = std::nullopt, .value = 0.5, .origin = "0.5"});
  return inputs;
}

tools::RunResult reported_result() {
  tools::RunResult result;
  result.device = "cuda:0";
  result.device_name = "A GPU";
  result.target = "sm_90a";
  result.tile_q = 128;
  result.tile_k = 64;
  result.kernel = {{"compile_ms", 1500.0}, {"cache", {{"hit", false}}}};
  result.tiles = {.visible = 200, .visited = 50, .gated = 5};
  result.sparse_us = 100;
  result.dense_us = 400;
  result.attend_us = 80;
  result.workspace_bytes = 3 << 20;
  result.selection_bytes = 2048;
  return result;
}

TEST(RunReport, SaysWhatAPredictorTakesAndWhatItSaves) {
  EXPECT_EQ(tools::print_run("sparge", reported_inputs(), reported_result(), {0.0123, 0.5}),
            R"(sparge on cuda:0 (A GPU, sm_90a)
  input   x.safetensors: q [2, 8, 300, 64], k and v [2, 4, 500, 64], bf16
  param   tau = 0.5
  kernel  compiled in 1.50 s
  tiles   128 x 64: visited 50 of 200 visible (25.0 %), gated 5 of 50 visited (10.0 %)
  error   relative L1 1.23e-02, largest 5.00e-01, against dense
  time    predict 20.0 us, attend 80.0 us, dense 400 us: 4.00 x as fast, 5.00 x with the tiles of an earlier call
  memory  workspace 3.00 MiB, kept tiles 2.00 KiB
)");
}

TEST(RunReport, SaysLessWhereThereIsLess) {
  tools::RunResult result = reported_result();
  result.kernel["cache"]["hit"] = true;
  result.attend_us = result.sparse_us;
  result.workspace_bytes = result.selection_bytes = 0;
  result.tiles = {};
  tools::Inputs inputs = reported_inputs();
  inputs.params.clear();
  EXPECT_EQ(tools::print_run("bsfa", inputs, result, {0, 0}),
            R"(bsfa on cuda:0 (A GPU, sm_90a)
  input   x.safetensors: q [2, 8, 300, 64], k and v [2, 4, 500, 64], bf16
  kernel  from the cache
  tiles   128 x 64: visited 0 of 0 visible (0.0 %), gated 0 of 0 visited (0.0 %)
  error   relative L1 0.00e+00, largest 0.00e+00, against dense
  time    attend 100 us, dense 400 us: 4.00 x as fast
)");
}

TEST(RunReport, TheDocumentHasTheSame) {
  nlohmann::ordered_json document;
  tools::fill_run_json("sparge", reported_inputs(), reported_result(), {0.25, 0.5}, document);
  EXPECT_EQ(document, nlohmann::ordered_json::parse(R"({
      "spec": "sparge", "device": "cuda:0", "device_name": "A GPU", "target": "sm_90a",
      "input": "x.safetensors", "params": {"tau": "0.5"}, "dtype": "bf16",
      "shape": {"b": 2, "h": 8, "h_kv": 4, "n_q": 300, "n_k": 500, "d": 64},
      "tile": {"q": 128, "k": 64}, "tiles": {"visible": 200, "visited": 50, "gated": 5},
      "v_not_finite": 0, "o_not_finite": 0, "warnings": [],
      "error": {"rel_l1": 0.25, "max_abs": 0.5, "against": "dense"},
      "time_us": {"dense": 400.0, "sparse": 100.0, "predict": 20.0, "attend": 80.0},
      "workspace_bytes": 3145728, "selection_bytes": 2048, "cache": {"hit": false},
      "kernel": {"compile_ms": 1500.0, "cache": {"hit": false}}})"));
  tools::RunResult result = reported_result();
  result.attend_us = 120;  // another launch was quicker
  tools::fill_run_json("sparge", reported_inputs(), result, {}, document);
  EXPECT_EQ(document["time_us"]["predict"], 0.0);
}

TEST(RunReport, RowsOfVMayHaveAnotherWidth) {
  tools::Inputs inputs = reported_inputs();
  inputs.v.shape.back() = 128;
  EXPECT_NE(tools::print_run("dense", inputs, reported_result(), {})
                .find("q [2, 8, 300, 64], k [2, 4, 500, 64], v [2, 4, 500, 128], bf16"),
            std::string::npos);
  nlohmann::ordered_json document;
  tools::fill_run_json("dense", inputs, reported_result(), {}, document);
  EXPECT_EQ(document["shape"]["d_v"], 128);
}

TEST(RunReport, ErrorsAreRelativeToTheWholeAndLargestOfAll) {
  const auto array = [](const std::vector<float>& values) {
    return tools::from_f32(values, {static_cast<std::int64_t>(values.size())}, ArrayType::kF32);
  };
  const auto error = tools::compare(array({1, -2, 3}), array({1, 2, 5}));
  EXPECT_DOUBLE_EQ(error.rel_l1, 6.0 / 8);
  EXPECT_DOUBLE_EQ(error.max_abs, 4);
  EXPECT_DOUBLE_EQ(tools::compare(array({1, -2}), array({0, 0})).rel_l1, 3)
      << "nothing to relate to";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(tools::compare(array({nan, 1}), array({0, 0})).max_abs));
}

}  // namespace
}  // namespace lacuna::tests

// The specs that a run is measured against.
#include "tools/run/dense_twin.hpp"

#include <gtest/gtest.h>

namespace lacuna::tests {
namespace {

/// `least` and `factor` are read by the parts that a twin is without, the others by attention.
constexpr const char* kSparse = R"({
  "version": 1, "name": "sparse",
  "attention": { "mask": "k <= q + reach", "score": "s + slope * k" },
  "params": {
    "least": { "shape": "scalar", "default": 0, "doc": "of the gate" },
    "reach": { "shape": "scalar", "type": "i32", "default": 3, "doc": "of the mask" },
    "factor": { "shape": "scalar", "default": 1, "doc": "of the gate" },
    "slope": { "shape": "[heads]", "default": 0.5, "doc": "of the score" }
  },
  "gate": { "scope": "tile", "skip": "tile_max < least * factor", "skips": ["v_load", "exp", "pv"] }
})";

VariantSpec spec_of_text(const std::string& text) {
  Diagnostics diagnostics;
  const SpecDocument document = read_spec({"x.json", text}, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  return document.spec;
}

TEST(DenseTwin, KeepsTheParametersThatAttentionReadsWhereverTheyStand) {
  const tools::DenseTwin twin = tools::dense_twin(spec_of_text(kSparse));
  EXPECT_EQ(twin.params, (std::vector<std::string>{"reach", "slope"}));
  const VariantSpec dense = spec_of_text(twin.text);
  EXPECT_FALSE(dense.gate);
  ASSERT_EQ(dense.params.size(), 2U);
  EXPECT_EQ(dense.params[1].symbol.name, "slope");
}

TEST(DenseTwin, LeavesOutTilesOfIntegers) {
  const auto stages = [](const char* quantise) {
    const VariantSpec spec = spec_of_text(R"({"version": 1, "name": "x", "tile": {"stages": 4})" +
                                          std::string(quantise) + "}");
    return spec_of_text(tools::dense_twin(spec).text).tile.stages;
  };
  EXPECT_TRUE(stages(R"(, "quantise": {"qk": {"bits": 8}})").is_auto());
  EXPECT_EQ(stages("").values, std::vector<int>{4});
}

constexpr const char* kBranches = R"({
  "version": 1, "name": "parts",
  "attention": { "mask": "k <= q" },
  "params": {
    "share": { "shape": "[heads]", "default": 1, "doc": "of the weights" },
    "kept": { "shape": "scalar", "type": "i32", "default": 1, "doc": "of the predictor" },
    "window": { "shape": "scalar", "type": "i32", "default": 9, "doc": "of a branch's mask" }
  },
  "branches": [
    { "name": "far", "weight": "share",
      "predictor": { "tile": { "q": 64, "k": 64 }, "estimate": {}, "keep": "rank < kept" } },
    { "name": "near", "weight": "1", "attention": { "mask": "k <= q and q - k < window" } },
    { "name": "coarse", "weight": "-share", "means": 16 }
  ]
})";

TEST(BranchesTwin, KeepsBranchesTheirMasksMeansAndWeights) {
  const tools::DenseTwin twin = tools::branches_twin(spec_of_text(kBranches));
  EXPECT_EQ(twin.params, (std::vector<std::string>{"share", "window"}));
  const VariantSpec dense = spec_of_text(twin.text);
  ASSERT_EQ(dense.branches.size(), 3U);
  EXPECT_FALSE(dense.branches[0].predictor);
  EXPECT_EQ(dense.branches[0].attention.mask.text, "k <= q");
  EXPECT_EQ(dense.branches[1].attention.mask.text, "k <= q and q - k < window");
  EXPECT_EQ(dense.branches[2].branch.means, 16);
  EXPECT_EQ(dense.branches[2].branch.weight.text, "-share");
}

TEST(DenseTwin, OfBranchesIsOneAttendWithTheMaskOfTheSpec) {
  const tools::DenseTwin twin = tools::dense_twin(spec_of_text(kBranches));
  EXPECT_EQ(twin.params, std::vector<std::string>{});
  const VariantSpec dense = spec_of_text(twin.text);
  EXPECT_TRUE(dense.branches.empty());
  EXPECT_EQ(dense.attention.mask.text, "k <= q");
}

}  // namespace
}  // namespace lacuna::tests

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

}  // namespace
}  // namespace lacuna::tests

// Specs as tests write them: read, and expected to be without a complaint.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "compiler/spec/spec.hpp"

namespace lacuna::test {

inline SpecDocument read(const std::string& text) {
  const SourceText source{"x.json", text};
  Diagnostics diagnostics;
  SpecDocument document = read_spec(source, diagnostics);
  EXPECT_TRUE(diagnostics.items.empty()) << render(diagnostics, source);
  return document;
}

inline VariantSpec read_members(const std::string& members) {
  return read(R"({"version": 1, "name": "x", )" + members + "}").spec;
}

/// Says every field.
inline constexpr const char* kEverything = R"({
  "$schema": "schema.json", "$comment": "any text",
  "version": 1, "name": "every-thing_2", "doc": "D", "source": "S",
  "attention": { "$comment": "here too", "mask": "k <= q", "score": "s * a", "sink": "a - h",
                 "scale": 0.1, "head_dim": [64, 128], "head_dim_v": 128, "dtype": "f16", "lse": false,
                 "lse_base": "2" },
  "params": {
    "$comment": "and here",
    "z": { "type": "i32", "shape": "[batch,n_q]", "range": [0, "inf"], "default": 3,
           "monotone": true, "doc": "Z", "unit": "tokens" },
    "a": { "range": ["-inf", 2.5], "calibrate": "bisect" }
  },
  "let": { "$comment": "a part", "early": "k < 8" },
  "permute": { "$comment": "a grid", "hilbert": [2, 3, 5] },
  "predictor": {
    "tile": { "q": 64, "k": 32 }, "smooth": ["k", "q"], "similarity": "gram_max",
    "estimate": { "q": "tokens", "k": "tokens", "bits": 4, "group": "warp", "reduce": "sum",
                  "normalise": "lse", "reference": "early", "exclude": "similar_q < a" },
    "keep": "p > a or similar_k < 0", "reuse": 3, "heads": "shared"
  },
  "gate": { "scope": "warp", "skip": "gap < a", "exempt": "k0 < z[q0]", "skips": ["pv", "exp"] },
  "quantise": { "qk": { "bits": 8, "group": "thread" }, "v": { "bits": 8, "range": 2.25 } },
  "mask": "external",
  "tile": { "q": [64, 128], "k": 64, "stages": "auto", "warps": [4, 8], "order": "descending",
            "split_kv": [4, 1],
            "queries": ["shared_memory", "registers"] },
  "loader": "cp_async"
})";

}  // namespace lacuna::test

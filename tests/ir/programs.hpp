// Programs for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/program.hpp"

namespace lacuna {

/// What bsfa.json becomes, before tiles are chosen.
inline constexpr const char* kGatedText =
    R"(program @gated(head_dim=128, dtype=bf16) {
  param threshold : f32[heads, q_tiles], range=[-inf, inf], default=-inf
  param start : i32[n_q], monotone=true, range=[0, inf]
  %q = input name="q" : [batch, heads, n_q, d] bf16
  %k = input name="k" : [batch, heads_kv, n_k, d] bf16
  %v = input name="v" : [batch, heads_kv, n_k, d] bf16
  %o, %lse = attend %q, %k, %v, mask="k >= start[q] and k <= q", score="tanh(s / 30.0) * 30.0", gate={scope=warp, skip="tile_max < threshold", exempt="k1 >= q0", skips=[exp, pv]}, scale=0.08838835, tile_q=128, tile_k=64, order=descending : [batch, heads, n_q, d] bf16, [batch, heads, n_q] f32
}
)";

inline std::string messages(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.items) text += d.message + "\n";
  return text;
}

inline Program must_parse(const std::string& text) {
  Diagnostics diagnostics;
  Program program = parse_program({"test.ir", text}, diagnostics);
  EXPECT_EQ(render(diagnostics, {"test.ir", text}), "");
  return program;
}

}  // namespace lacuna

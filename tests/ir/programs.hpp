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

/// Every op but the gathering attend: permuted tokens, smoothed and quantised, an estimate in
/// integers that an exact lse normalises, lists, 8-bit attention.
inline constexpr const char* kPredictedText =
    R"(program @predicted(head_dim=128, dtype=bf16) {
  param tau : f32[heads], range=[0, 1], default=0.9
  %q = input name="q" : [batch, heads, n_q, d] bf16
  %k = input name="k" : [batch, heads_kv, n_k, d] bf16
  %v = input name="v" : [batch, heads_kv, n_k, d] bf16
  %order = input name="order" : [n_q] i32
  %q_ordered = permute %q, %order : [batch, heads, n_q, d] bf16
  %k_ordered = permute %k, %order : [batch, heads_kv, n_k, d] bf16
  %v_ordered = permute %v, %order : [batch, heads_kv, n_k, d] bf16
  %q_mean = smooth %q_ordered : [batch, heads, d] f32
  %k_mean = smooth %k_ordered : [batch, heads_kv, d] f32
  %k_summary = summarise %k_ordered, mean=%k_mean, tile=64 : [batch, heads_kv, keep_k_tiles, d] f32
  %q_similarity = similarity %q_ordered, tile=128 : [batch, heads, keep_q_tiles] f32
  %k_similarity = similarity %k_ordered, mean=%k_mean, tile=64, form=gram_max : [batch, heads_kv, keep_k_tiles] f32
  %estimate_q_values, %estimate_q_scale = quantise %q_ordered, mean=%q_mean, bits=4, group=thread, tile=128 : [batch, heads, n_q, d] i8, [batch, heads, q_groups] f32
  %estimate_k_values, %estimate_k_scale = quantise %k_ordered, mean=%k_mean, bits=4, group=thread, tile=64 : [batch, heads_kv, n_k, d] i8, [batch, heads_kv, k_groups] f32
  %q_values, %q_scale = quantise %q_ordered, mean=%q_mean, group=warp, tile=64 : [batch, heads, n_q, d] i8, [batch, heads, q_groups] f32
  %k_values, %k_scale = quantise %k_ordered, mean=%k_mean, group=warp, tile=32 : [batch, heads_kv, n_k, d] i8, [batch, heads_kv, k_groups] f32
  %v_values, %v_scale = quantise_values %v_ordered, range=2.25 : [batch, heads_kv, n_k, d] e4m3, [batch, heads_kv, d] f32
  %row_bias = project %q_ordered, onto=%k_mean : [batch, heads, n_q] f32
  %column_bias = project %k_ordered, mean=%k_mean, onto=%q_mean : [batch, heads, n_k] f32
  %p, %score = estimate %estimate_q_values, %estimate_k_values, q_scale=%estimate_q_scale, k_scale=%estimate_k_scale, row_bias=%row_bias, column_bias=%column_bias, exact_q=%q_ordered, exact_k=%k_ordered, similar_k=%k_similarity, rows=tokens, columns=tokens, bits=4, normalise=lse, mask="q - k < 4096", reference="k < 32 or q - k < 128", exclude="similar_k < tau", scale=0.08838835, tile_q=128, tile_k=64 : [batch, heads, keep_q_tiles, keep_k_tiles] f32, [batch, heads, keep_q_tiles, keep_k_tiles] f32
  %kept = select p=%p, score=%score, similar_q=%q_similarity, keep="mass_before + p <= tau or similar_q < 0.5 or score > 9.0", mask="q - k < 4096", tile_q=128, tile_k=64, shared_heads=true : [batch, heads, keep_q_tiles, keep_words] u32
  %list_indices, %list_counts = compact %kept, mask="q - k < 4096", keep_q=128, keep_k=64, tile_q=64, tile_k=32 : [batch, heads, q_tiles, capacity] i32, [batch, heads, q_tiles] i32
  %o_ordered, %lse_ordered = attend %q_values, %k_values, %v_values, list_indices=%list_indices, list_counts=%list_counts, q_scale=%q_scale, k_scale=%k_scale, v_scale=%v_scale, row_bias=%row_bias, column_bias=%column_bias, qk_tile_q=64, qk_tile_k=32, qk_group=warp, mask="q - k < 4096", scale=0.08838835, tile_q=64, tile_k=32 : [batch, heads, n_q, d] bf16, [batch, heads, n_q] f32
  %o = unpermute %o_ordered, %order : [batch, heads, n_q, d] bf16
  %lse = unpermute %lse_ordered, %order : [batch, heads, n_q] f32
}
)";

/// Columns of 8 keys, estimated with means of queries and gathered.
inline constexpr const char* kGatheredText = R"(program @gathered(head_dim=64, dtype=f16) {
  %q = input name="q" : [batch, heads, n_q, d] f16
  %k = input name="k" : [batch, heads_kv, n_k, d] f16
  %v = input name="v" : [batch, heads_kv, n_k, d] f16
  %previous_lse = input name="previous_lse" : [batch, heads, n_q] f32
  %q_summary = summarise %q, tile=128 : [batch, heads, keep_q_tiles, d] f32
  %p, %score = estimate %q_summary, %k, columns=tokens, scale=0.125, tile_q=128, tile_k=8 : [batch, heads, keep_q_tiles, keep_k_tiles] f32, [batch, heads, keep_q_tiles, keep_k_tiles] f32
  %kept = select p=%p, keep="p > 0.5 / n_k", tile_q=128, tile_k=8 : [batch, heads, keep_q_tiles, keep_words] u32
  %o, %lse = attend %q, %k, %v, columns=%kept, keep_k=8, scale=0.125, tile_q=128, tile_k=64 : [batch, heads, n_q, d] f16, [batch, heads, n_q] f32
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

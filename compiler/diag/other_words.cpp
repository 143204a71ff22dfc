#include "compiler/diag/other_words.hpp"

#include <algorithm>
#include <array>

namespace lacuna {
namespace {

struct Row {
  std::string_view word;  ///< in lower case
  std::string_view here;
};

/// One word has several rows where it means different things: candidates decide.
constexpr auto kSynonyms = std::to_array<Row>({
    {"q_idx", "q"},
    {"query", "q"},
    {"query_idx", "q"},
    {"kv_idx", "k"},
    {"k_idx", "k"},
    {"key", "k"},
    {"head", "h"},
    {"head_idx", "h"},
    {"heads", "n_h"},
    {"num_heads", "n_h"},
    {"n_heads", "n_h"},
    {"q_tiles", "n_i"},
    {"k_tiles", "n_j"},
    {"batch", "b"},
    {"batch_idx", "b"},
    {"q_block", "i"},
    {"q_tile", "i"},
    {"kv_block", "j"},
    {"k_block", "j"},
    {"k_tile", "j"},
    {"seq_len", "n_k"},
    {"seqlen", "n_k"},
    {"kv_len", "n_k"},
    {"seqlen_k", "n_k"},
    {"seqlen_q", "n_q"},
    {"q_len", "n_q"},
    {"seq", "n_k"},
    {"qk", "s"},
    {"logit", "s"},
    {"cumsum", "mass_before"},
    {"cumulative", "mass_before"},
    {"prob", "p"},
    {"row_max", "tile_max"},
    {"clip", "clamp"},
    {"maximum", "max"},
    {"minimum", "min"},
    {"where", "select"},
    {"fabs", "abs"},
    {"ln", "log"},
    {"ceiling", "ceil"},
    {"float16", "f16"},
    {"half", "f16"},
    {"fp16", "f16"},
    {"bfloat16", "bf16"},
    {"float32", "f32"},
    {"float", "f32"},
    {"fp32", "f32"},
    {"int", "i32"},
    {"int32", "i32"},
    {"int64", "i32"},
    {"i64", "i32"},
    {"u32", "i32"},
    {"uint32", "i32"},
    {"u8", "i32"},
    {"uint8", "i32"},
    {"bool", "i32"},
    {"b", "batch"},
    {"bsz", "batch"},
    {"batch_size", "batch"},
    {"h", "heads"},
    {"num_heads", "heads"},
    {"n_heads", "heads"},
    {"q_blocks", "q_tiles"},
    {"k_blocks", "k_tiles"},
    {"kv_blocks", "k_tiles"},
    {"n", "n_k"},
    {"tokens", "n_k"},
    {"mean", "sum"},
    {"mean", "means"},
    {"avg", "sum"},
    {"avg", "mean"},
    {"average", "mean"},
    {"pool", "means"},
    {"pool_q", "query_means"},
    {"block", "tile"},
    {"block_size", "tile"},
    {"softmax_scale", "scale"},
    {"sm_scale", "scale"},
    {"mask_mod", "mask"},
    {"score_mod", "score"},
    {"bias", "score"},
    {"select", "keep"},
    {"criterion", "keep"},
});

constexpr auto kConstructions = std::to_array<Row>({
    {"causal", "causal attention is the mask `k <= q + n_k - n_q`"},
    {"is_causal", "causal attention is the mask `k <= q + n_k - n_q`"},
    {"window", "a window is part of the mask: `q + n_k - n_q - k < window`"},
    {"window_size", "a window is part of the mask: `q + n_k - n_q - k < window`"},
    {"sliding_window", "a window is part of the mask: `q + n_k - n_q - k < window`"},
    {"softcap", "a soft cap is the score `cap * tanh(s / cap)`"},
    {"alibi", "ALiBi is the score `s - slope * (q + n_k - n_q - k)`"},
    {"alibi_slopes", "ALiBi is the score `s - slope * (q + n_k - n_q - k)`"},
    {"topk", "the best n are kept by `rank < n`"},
    {"top_k", "the best n are kept by `rank < n`"},
    {"topp", "a share of the mass is kept by `mass_before < share`"},
    {"top_p", "a share of the mass is kept by `mass_before < share`"},
    {"softmax", "`p` is the softmax of the estimates of a row; of logits it is what attention is"},
    {"none", "leave the field out"},
    {"null", "leave the field out"},
    {"if", "write `select(condition, x, y)`"},
    {"iif", "write `select(condition, x, y)`"},
    {"round", "write `floor(x + 0.5)`"},
    {"sigmoid", "write `1 / (1 + exp(-x))`; for weights: \"normalise\": \"sigmoid\""},
    {"relu", "write `max(x, 0)`"},
    {"pow", "write `x * x`, or `exp2(y * log2(x))`"},
    {"rsqrt", "write `1 / sqrt(x)`"},
    {"rand", "random numbers are `hash(seed, x)`, 32 bits: `hash(seed, i * n_j + j) % 10 == 0`"},
    {"random", "random numbers are `hash(seed, x)`, 32 bits: `hash(seed, i * n_j + j) % 10 == 0`"},
    {"cumsum",
     "a formula sees one pair; a running sum is a table that the caller makes: `total[q] - "
     "total[k]`"},
    {"sum", "a formula sees one pair; what adds up others is a table that the caller makes"},
    {"mean", "a formula sees one pair; what adds up others is a table that the caller makes"},
    {"dot",
     "`s` is the product of q and k; one of q with other vectors is a table that the caller makes, "
     "`[batch, heads, n_q, 17]` for 17 of them: `s + qr[q, clamp(k - q, -8, 8) + 8]`"},
    {"float", "i32 becomes f32 where it meets one; `x / 1` is always f32"},
    {"m_prev", "`gap` is the largest difference to the running maximum"},
});

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

std::string synonym_among(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string wanted = lower(word);
  for (const Row& row : kSynonyms) {
    if (row.word == wanted && std::ranges::find(candidates, row.here) != candidates.end())
      return std::string(row.here);
  }
  return "";
}

std::string said_otherwise(std::string_view word) {
  const std::string wanted = lower(word);
  const auto* const row = std::ranges::find(kConstructions, wanted, &Row::word);
  return row == kConstructions.end() ? "" : std::string(row->here);
}

}  // namespace lacuna

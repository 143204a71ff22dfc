#include "compiler/diag/other_words.hpp"

#include <algorithm>
#include <array>
#include <optional>

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
    {"f64", "f32"},
    {"double", "f32"},
    {"bf16", "f32"},
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
    {"q", "qk"},
    {"k", "qk"},
    {"select", "keep"},
    {"kv", "shared"},
    {"kv_head", "shared"},
    {"group", "shared"},
    {"criterion", "keep"},
    {"threshold", "skip"},
    {"num_stages", "stages"},
    {"num_warps", "warps"},
    {"num_splits", "split_kv"},
    {"value", "default"},
    {"dims", "shape"},
    {"size", "shape"},
    {"row", "warp"},
    {"cta", "tile"},
    {"reverse", "descending"},
    {"reversed", "descending"},
    {"forward", "ascending"},
    {"max", "min_max"},
    {"minmax", "min_max"},
    {"ragged", "sequences"},
    {"varlen", "sequences"},
    {"paged", "pages"},
    {"fp8", "e4m3"},
    {"float8", "e4m3"},
    {"float8_e4m3fn", "e4m3"},
    {"a100", "sm_80"},
    {"ampere", "sm_80"},
    {"l40s", "sm_89"},
    {"ada", "sm_89"},
    {"h100", "sm_90a"},
    {"h200", "sm_90a"},
    {"hopper", "sm_90a"},
    {"b200", "sm_100a"},
    {"blackwell", "sm_100a"},
    {"bounds", "min_max"},
});

constexpr std::string_view kHeadsOfTensors =
    "heads come with the tensors of a launch; a parameter has an element for each query head: "
    "`[heads]`";
constexpr std::string_view kTiles =
    "a tile is \"q\" queries by \"k\" keys: \"tile\": { \"q\": 128, \"k\": 64 }";
constexpr std::string_view kBytes =
    "keys and values in e4m3 are the caller's choice (`--kv e4m3`); products in 8 bits are "
    "\"quantise\": { \"qk\": { \"bits\": 8 }, \"v\": { \"bits\": 8 } }";
constexpr std::string_view kWindow =
    "a window is part of the mask, and its length a parameter: `q + n_k - n_q - k < window`, "
    "\"params\": { \"window\": { \"type\": \"i32\", \"default\": 1024 } }";
constexpr std::string_view kRandom =
    "random numbers are `hash(seed, x)`, 32 bits: of pairs `hash(7, q * n_k + k) % 10 == 0`, of "
    "tiles `hash(7, i * n_j + j) % 10 == 0`";
constexpr std::string_view kOfLibraries =
    "functions stand by themselves: `abs(x)`, `log(x)`, `max(x, y)`";
constexpr std::string_view kOfConditions =
    "a formula sees one pair; its conditions are joined by `and` or `or`";
constexpr std::string_view kOfPlaces =
    "a formula sees one pair: `q` and `k` are its tokens, counted from 0";
constexpr std::string_view kOfParameters =
    "q, k and v come with each launch; what else a caller passes stands in \"params\": { "
    "\"window\": "
    "{ ... } }";
constexpr std::string_view kOfFamily =
    "kernels by wgmma and TMA come where the GPU has them: leave loader out, or \"auto\"";

struct Construction {
  std::string_view word, here;
  std::string_view key{};  ///< the field that it takes the place of
  /// The only places where it means this; kKey is also that of names in shapes.
  std::optional<WordPlace> place{};
};

constexpr auto kConstructions = std::to_array<Construction>({
    {"causal", "causal attention is the mask `k <= q + n_k - n_q`"},
    {"is_causal", "causal attention is the mask `k <= q + n_k - n_q`"},
    {"window", kWindow},
    {"window_size", kWindow},
    {"sliding_window", kWindow},
    {"softcap", "a soft cap is the score `cap * tanh(s / cap)`"},
    {"alibi", "ALiBi is the score `s - slope * (q + n_k - n_q - k)`"},
    {"alibi_slopes", "ALiBi is the score `s - slope * (q + n_k - n_q - k)`"},
    {"topk", "the best n are kept by `rank < n`", "keep"},
    {"top_k", "the best n are kept by `rank < n`", "keep"},
    {"topp", "a share of the mass is kept by `mass_before < share`", "keep"},
    {"top_p", "a share of the mass is kept by `mass_before < share`", "keep"},
    {"softmax", "`p` is the softmax of the estimates of a row; of logits it is what attention is"},
    {"none", "leave the field out"},
    {"null", "leave the field out"},
    {"if", "write `select(condition, x, y)`", {}, WordPlace::kFormula},
    {"iif", "write `select(condition, x, y)`", {}, WordPlace::kFormula},
    {"round", "write `floor(x + 0.5)`", {}, WordPlace::kFormula},
    {"sigmoid", "write `1 / (1 + exp(-x))`; for weights: \"normalise\": \"sigmoid\""},
    {"relu", "write `max(x, 0)`"},
    {"pow", "write `x * x`, or `exp2(y * log2(x))`", {}, WordPlace::kFormula},
    {"rsqrt", "write `1 / sqrt(x)`", {}, WordPlace::kFormula},
    {"rand", kRandom, {}, WordPlace::kFormula},
    {"random", kRandom, {}, WordPlace::kFormula},
    {"mod", "a remainder is `q % 2`", {}, WordPlace::kFormula},
    {"len", "lengths are `n_q` and `n_k`", {}, WordPlace::kFormula},
    {"np", kOfLibraries, {}, WordPlace::kFormula},
    {"numpy", kOfLibraries, {}, WordPlace::kFormula},
    {"math", kOfLibraries, {}, WordPlace::kFormula},
    {"Math", kOfLibraries, {}, WordPlace::kFormula},
    {"torch", kOfLibraries, {}, WordPlace::kFormula},
    {"infinity", "write `inf`", {}, WordPlace::kFormula},
    {"h_kv",
     "a formula knows its query head `h`: of 4 heads to a KV head, `h // 4` is that",
     {},
     WordPlace::kFormula},
    {"d",
     "`s` is scaled already, by attention.scale or 1 / sqrt(head dim)",
     {},
     WordPlace::kFormula},
    {"cumsum",
     "a formula sees one pair; a running sum is a table that the caller makes: `total[q] - "
     "total[k]`",
     {},
     WordPlace::kFormula},
    {"sum",
     "a formula sees one pair; what adds up others is a table that the caller makes",
     {},
     WordPlace::kFormula},
    {"mean",
     "a formula sees one pair; what adds up others is a table that the caller makes",
     {},
     WordPlace::kFormula},
    {"dot",
     "`s` is the product of q and k; one of q with other vectors is a table that the caller makes, "
     "`[batch, heads, n_q, 17]` for 17 of them: `s + qr[q, clamp(k - q, -8, 8) + 8]`",
     {},
     WordPlace::kFormula},
    {"float", "i32 becomes f32 where it meets one; `x / 1` is always f32", {}, WordPlace::kFormula},
    {"m_prev", "`gap` is the largest difference to the running maximum", {}, WordPlace::kFormula},
    {"min", "both bounds stand in one list: \"range\": [0, 1]", {}, WordPlace::kKey},
    {"max", "both bounds stand in one list: \"range\": [0, 1]", {}, WordPlace::kKey},
    {"sin",
     "a wave of the distance is a table that the caller makes: `wave[q + n_k - n_q - k]`",
     {},
     WordPlace::kFormula},
    {"cos",
     "a wave of the distance is a table that the caller makes: `wave[q + n_k - n_q - k]`",
     {},
     WordPlace::kFormula},
    {"acos",
     "from 0 to 1 within 0.0001: `sqrt(1 - x) * (1.5707 - x * (0.2121 - x * (0.0743 - 0.0187 * "
     "x)))`",
     {},
     WordPlace::kFormula},
    {"arccos",
     "from 0 to 1 within 0.0001: `sqrt(1 - x) * (1.5707 - x * (0.2121 - x * (0.0743 - 0.0187 * "
     "x)))`",
     {},
     WordPlace::kFormula},
    {"popcount",
     "by a table of 256 counts that the caller makes: `ones[x & 255]` for each byte",
     {},
     WordPlace::kFormula},
    {"bit_count",
     "by a table of 256 counts that the caller makes: `ones[x & 255]` for each byte",
     {},
     WordPlace::kFormula},
    {"log1p", "write `log(1 + x)`", {}, WordPlace::kFormula},
    {"expm1", "write `exp(x) - 1`", {}, WordPlace::kFormula},
    {"log10", "write `log(x) / 2.302585`", {}, WordPlace::kFormula},
    {"softplus", "write `log(1 + exp(x))`", {}, WordPlace::kFormula},
    {"silu", "write `x / (1 + exp(-x))`", {}, WordPlace::kFormula},
    {"sign", "write `select(x > 0, 1, select(x < 0, -1, 0))`", {}, WordPlace::kFormula},
    {"acosh", "write `log(x + sqrt(x * x - 1))`", {}, WordPlace::kFormula},
    {"arccosh", "write `log(x + sqrt(x * x - 1))`", {}, WordPlace::kFormula},
    {"sinh", "write `(exp(x) - exp(-x)) / 2`", {}, WordPlace::kFormula},
    {"cosh", "write `(exp(x) + exp(-x)) / 2`", {}, WordPlace::kFormula},
    {"square", "write `x * x`", {}, WordPlace::kFormula},
    {"any", kOfConditions, {}, WordPlace::kFormula},
    {"all", kOfConditions, {}, WordPlace::kFormula},
    {"logical_and", kOfConditions, {}, WordPlace::kFormula},
    {"logical_or", kOfConditions, {}, WordPlace::kFormula},
    {"arange", kOfPlaces, {}, WordPlace::kFormula},
    {"range", kOfPlaces, {}, WordPlace::kFormula},
    {"iota", kOfPlaces, {}, WordPlace::kFormula},
    {"tril", "causal attention is the mask `k <= q + n_k - n_q`"},
    {"triu", "of later keys alone: `k >= q + n_k - n_q`"},
    {"matmul", "`s` is the product of q and k", {}, WordPlace::kFormula},
    {"block_m", kTiles},
    {"block_q", kTiles},
    {"block_n", kTiles},
    {"block_k", kTiles},
    {"bm", kTiles},
    {"bn", kTiles},
    {"m", kTiles, {}, WordPlace::kKey},
    {"n", kTiles, {}, WordPlace::kKey},
    {"br", kTiles, {}, WordPlace::kKey},
    {"bc", kTiles, {}, WordPlace::kKey},
    {"parameters", kOfParameters, {}, WordPlace::kKey},
    {"inputs", kOfParameters, {}, WordPlace::kKey},
    {"args", kOfParameters, {}, WordPlace::kKey},
    {"arguments", kOfParameters, {}, WordPlace::kKey},
    {"tma", kOfFamily},
    {"wgmma", kOfFamily},
    {"mma", kOfFamily},
    {"heads_kv", kHeadsOfTensors},
    {"kv_heads", kHeadsOfTensors},
    {"num_kv_heads", kHeadsOfTensors},
    {"n_kv_heads", kHeadsOfTensors},
    {"num_heads", kHeadsOfTensors},
    {"n_heads", kHeadsOfTensors},
    {"dropout", "there is none: kernels compute no gradients"},
    {"dropout_p", "there is none: kernels compute no gradients"},
    {"fp8", kBytes},
    {"e4m3", kBytes},
    {"fp8_e4m3", kBytes},
    {"float8_e4m3fn", kBytes},
    {"int8", kBytes},
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

std::string said_otherwise(std::string_view word, WordPlace place) {
  const std::string wanted = lower(word);
  const auto* const row = std::ranges::find_if(kConstructions, [&](const Construction& each) {
    return each.word == wanted && each.place.value_or(place) == place;
  });
  return row == kConstructions.end() ? "" : std::string(row->here);
}

std::string key_said_otherwise(std::string_view word) {
  const std::string wanted = lower(word);
  const auto* const row = std::ranges::find(kConstructions, wanted, &Construction::word);
  return row == kConstructions.end() ? "" : std::string(row->key);
}

}  // namespace lacuna

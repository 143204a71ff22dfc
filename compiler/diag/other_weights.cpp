// What papers make weights of, and what comes nearest to it here.
#include <algorithm>
#include <array>

#include "compiler/diag/other_words.hpp"

namespace lacuna {
namespace {

struct Weighting {
  std::string_view word;  ///< in lower case
  std::string_view here;
};

constexpr std::string_view kOfThreshold =
    "its zeros need a threshold of each row; what is small is left out by a gate that skips "
    "`exp`, or by a predictor";
constexpr std::string_view kOfDecay =
    "weights that a formula gives and nothing divides: \"none\" with \"score\": \"s * exp2((q + "
    "n_k - n_q - k) * rate[h])\"";
constexpr std::string_view kOfProducts =
    "\"none\" weighs each key by `s` itself, pair by pair; a running state is the caller's";
constexpr std::string_view kOfLevels =
    "weights of pairs by a formula are \"none\"; a running state the caller computes";
constexpr std::string_view kOfPositive =
    "positive weights over their sum are a softmax of their logarithms: \"score\": \"log(w)\", "
    "with the "
    "formula of the weight for w";
constexpr std::string_view kOfSquares =
    "\"none\" with \"score\": \"max(s, 0) * max(s, 0)\"; over their sum these weights are a "
    "softmax: "
    "\"score\": \"2 * log(max(s, 0))\"";
constexpr std::string_view kOfOne = "\"softmax\" with \"sink\": \"0\" beside it";
constexpr std::string_view kOfSilu =
    "weights that no sum divides: \"none\" with \"score\": \"s / (1 + exp(-s))\"";
constexpr std::string_view kOfFormula =
    "weights that no sum divides: \"none\", with the formula of the weight as \"score\"";
constexpr std::string_view kOfLargest =
    "with a factor on its logits a softmax is nearly all in the largest: \"score\": \"64 * s\"";
constexpr std::string_view kOfRanks =
    "whole tiles are kept by a predictor, `rank < n`; single keys of a row by its n-th largest "
    "logit, in a table that the caller makes: \"score\": \"select(s >= cut[q], s, -inf)\"";

/// What others make weights of, and what comes nearest.
constexpr auto kWeightings = std::to_array<Weighting>({
    {"stick_breaking",
     "a stick's weights are products along the row; a gate of each token is near: `s + total[q + "
     "n_k - n_q] - total[k]`, of sums of logarithms that the caller makes"},
    {"softpick", "rows may weigh keys with less than 1 in all by \"sink\": \"0\""},
    {"softmax1", kOfOne},
    {"softmax_off_by_one", kOfOne},
    {"sparsemax", kOfThreshold},
    {"entmax", kOfThreshold},
    {"entmax15", kOfThreshold},
    {"alpha_entmax", kOfThreshold},
    {"relu",
     "\"none\" with \"score\": \"max(s, 0)\"; over their sum these weights are a softmax: "
     "\"score\": \"log(max(s, 0))\""},
    {"relu2", kOfSquares},
    {"relu_squared", kOfSquares},
    {"squared_relu", kOfSquares},
    {"softplus", "over their sum these weights are a softmax: \"score\": \"log(log(1 + exp(s)))\""},
    {"l1", kOfPositive},
    {"sum", kOfPositive},
    {"power", kOfPositive},
    {"taylor", kOfPositive},
    {"polynomial", kOfPositive},
    {"cauchy", kOfPositive},
    {"silu", kOfSilu},
    {"swish", kOfSilu},
    {"gelu", kOfFormula},
    {"elu", kOfFormula},
    {"tanh", kOfFormula},
    {"identity", kOfFormula},
    {"hstu", kOfSilu},
    {"max", kOfLargest},
    {"argmax", kOfLargest},
    {"hardmax", kOfLargest},
    {"tropical", kOfLargest},
    {"topk", kOfRanks},
    {"top_k", kOfRanks},
    {"topk_softmax", kOfRanks},
    {"softmax_one", kOfOne},
    {"softmax_plus_one", kOfOne},
    {"off_by_one", kOfOne},
    {"quiet", kOfOne},
    {"sinkhorn", "sums over the queries of a key would take several passes over all of them"},
    {"doubly_stochastic",
     "sums over the queries of a key would take several passes over all of them"},
    {"retention", kOfDecay},
    {"log_linear", kOfLevels},
    {"linear", kOfProducts},
});

}  // namespace

std::string weights_said_otherwise(std::string_view word) {
  std::string wanted;
  for (const char c : word) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    wanted += c == '-' ? '_' : is_capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const auto* const row = std::ranges::find(kWeightings, wanted, &Weighting::word);
  return row == kWeightings.end() ? "" : std::string(row->here);
}

}  // namespace lacuna

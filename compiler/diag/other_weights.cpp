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
constexpr std::string_view kOfStates =
    "attention without weights of pairs is a running state, which the caller computes";
constexpr std::string_view kOfPositive =
    "positive weights over their sum are a softmax of their logarithms: \"score\": \"log(w)\", "
    "with the "
    "formula of the weight for w";
constexpr std::string_view kOfSquares =
    "over their sum these weights are a softmax: \"score\": \"2 * log(max(s, 0))\"";
constexpr std::string_view kOfOne = "\"softmax\" with \"sink\": \"0\" beside it";
constexpr std::string_view kOfSigned =
    "weights that no sum divides are sigmoids here, from 0 to 1; what others make of "
    "logits (SiLU, a decay alone) the caller computes";
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
     "over their sum these weights are a softmax: \"score\": \"log(max(s, 0))\"; without a sum "
     "there "
     "is \"sigmoid\" alone"},
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
    {"silu", kOfSigned},
    {"swish", kOfSigned},
    {"gelu", kOfSigned},
    {"elu", kOfSigned},
    {"tanh", kOfSigned},
    {"identity", kOfSigned},
    {"hstu", kOfSigned},
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
    {"retention", kOfStates},
    {"log_linear", kOfStates},
    {"linear", kOfStates},
    {"none", kOfSigned},
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

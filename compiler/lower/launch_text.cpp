#include "compiler/lower/launch_text.hpp"

#include <numeric>

#include "compiler/lower/arguments.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {
namespace {

constexpr int kWordBits = 32;

}  // namespace

std::string_view name_of(Tensor tensor) {
  return tensor == Tensor::kQ ? "q" : tensor == Tensor::kK ? "k" : "v";
}

std::string ceil_divide(const std::string& length, int divisor) {
  return "(" + length + " + " + std::to_string(divisor - 1) + ") // " + std::to_string(divisor);
}

std::string at_most(const std::string& length, int most) {
  return "min(" + length + ", " + std::to_string(most) + ")";
}

const char* length_of(Tensor tensor) { return tensor == Tensor::kQ ? "n_q" : "n_k"; }
const char* heads_of(Tensor tensor) { return tensor == Tensor::kQ ? "n_h" : "n_h_kv"; }
std::string all_heads(Tensor tensor) { return std::string("n_b * ") + heads_of(tensor); }

std::string padded_length(Tensor tensor) {
  return ceil_divide(length_of(tensor), kPreparedTokens) + " * " + std::to_string(kPreparedTokens);
}

std::string padded_cells(Tensor tensor, int cell) {
  return ceil_divide(length_of(tensor), kPreparedTokens) + " * " +
         std::to_string(kPreparedTokens / cell);
}

std::string tiles_of(Tensor tensor, int tile) { return ceil_divide(length_of(tensor), tile); }

std::string blocks_over(Tensor tensor, int tokens) {
  return all_heads(tensor) + " * (" + tiles_of(tensor, tokens) + ")";
}

std::string keep_q_tiles(const Select& select) { return ceil_divide("n_q", select.tile_q); }
std::string keep_k_tiles(const Select& select) { return ceil_divide("n_k", select.tile_k); }
std::string keep_words(const Select& select) {
  return ceil_divide("n_k", kWordBits * select.tile_k);
}

std::string units(const std::string& outer, const std::string& count, int element_bytes) {
  const int common = std::gcd(element_bytes, kWorkspaceUnitBytes);
  const int factor = element_bytes / common, divisor = kWorkspaceUnitBytes / common;
  std::string inner = "(" + count + ")";
  if (factor > 1) inner += " * " + std::to_string(factor);
  if (divisor > 1) inner = ceil_divide(inner, divisor);
  return outer + " * (" + inner + ")";
}

std::string groups_of_head(const Quantise& quantise, Tensor tensor) {
  const int in_padded = kPreparedTokens / quantise.tile * groups_in_tile(quantise, tensor);
  return ceil_divide(length_of(tensor), kPreparedTokens) + " * " + std::to_string(in_padded);
}

int groups_in_tile(const Quantise& quantise, Tensor tensor) {
  const bool is_query = tensor == Tensor::kQ;
  switch (quantise.group) {
    case QuantGroup::kBlock:
      return 1;
    case QuantGroup::kWarp:
      return is_query ? quantise.tile / 16 : 1;
    case QuantGroup::kThread:
      return is_query ? quantise.tile / 2 : quantise.tile / 8;
  }
  return 0;
}

}  // namespace lacuna

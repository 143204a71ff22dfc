// Launch expressions as text: lengths, heads and tiles of a tensor, sizes of its arrays.
#pragma once

#include <string>

#include "compiler/ir/program.hpp"

namespace lacuna {

/// The tensor that a kernel works on.
enum class Tensor : std::uint8_t { kQ, kK, kV };
std::string_view name_of(Tensor tensor);  ///< "q", "k", "v"

inline constexpr int kElementBytes = 2;  ///< of bf16 and f16
inline constexpr int kWordBytes = 4;     ///< of f32, i32 and u32

/// "(n_q + 63) // 64"
std::string ceil_divide(const std::string& length, int divisor);
/// "min(n_q, 512)"
std::string at_most(const std::string& length, int most);
/// "n_q" or "n_k"; "n_h" or "n_h_kv"; "n_b * n_h" or "n_b * n_h_kv".
const char* length_of(Tensor tensor);
const char* heads_of(Tensor tensor);
std::string all_heads(Tensor tensor);
/// Length rounded up to kPreparedTokens.
std::string padded_length(Tensor tensor);
/// ceil(length / tile)
/// Cells of so many tokens in the padded length.
std::string padded_cells(Tensor tensor, int cell);
std::string tiles_of(Tensor tensor, int tile);
/// A block for each `tokens` tokens of each head.
std::string blocks_over(Tensor tensor, int tokens);

/// Query and key tiles that the predictor decides about, and words of their bits in a row.
std::string keep_q_tiles(const Select& select);
std::string keep_k_tiles(const Select& select);
std::string keep_words(const Select& select);

/// `outer` arrays of `count` elements, in units of the workspace: outer * ceil(count *
/// element_bytes / unit), reduced so that the product stays small.
std::string units(const std::string& outer, const std::string& count, int element_bytes);

/// Quantisation groups of one head: those of whole padded tokens.
std::string groups_of_head(const Quantise& quantise, Tensor tensor);
/// Groups of `quantise.tile` tokens.
int groups_in_tile(const Quantise& quantise, Tensor tensor);

}  // namespace lacuna

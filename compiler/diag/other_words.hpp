// Words of other systems and papers, and what stands for them here: for the helps of errors about
// unknown names, keys and values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// The candidate that others call `word`, or "": `num_heads` is heads, `float16` is f16.
std::string synonym_among(std::string_view word, const std::vector<std::string>& candidates);

enum class WordPlace : std::uint8_t { kFormula, kKey, kValue };

/// How something is said here that has no word of its own, or "": `causal`, `where`.
std::string said_otherwise(std::string_view word, WordPlace place);
/// The key of the field that this takes the place of, or "": "keep" of `topk`.
std::string key_said_otherwise(std::string_view word);

/// What comes nearest to weights that others make of logits, or "": `sparsemax`, `linear`.
std::string weights_said_otherwise(std::string_view word);

}  // namespace lacuna

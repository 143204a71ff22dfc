// Random specs (tests/compile/random_spec.hpp) as variants: the formulas of the oracle are those of
// the text, parsed and evaluated as expr/evaluate.hpp says. What the compiler makes of them (parts,
// bounds of tiles, code) has no say here. Parameters have fresh values, of which many formulas make
// something else in each tile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/compile/drawn_spec.hpp"
#include "tests/numerics/variants/variants.hpp"

namespace lacuna::numerics {

/// The name of what a seed draws, and back: "random-17".
std::string random_name(std::uint64_t seed);
bool is_random_name(const std::string& name);

/// What the name's seed draws; null if that is not legal. Any thread may ask.
std::shared_ptr<const test::DrawnSpec> random_spec(const std::string& name);

/// Has it tiles that are reported of batches of sequences, too? Else query heads of a KV head may
/// share them there (lacuna.h).
bool has_own_tiles(const test::DrawnSpec& drawn);

/// Gives the variant, which has its tensors, all that the spec says, and parameters from a seed.
void make_random_variant(const Case& c, KernelTile tile, std::uint32_t params_seed, Variant& v);

/// "" if results can be compared: of some values formulas make NaN, infinities, or logits so large
/// that f32 keeps nothing behind the point. Else what the first one is.
std::string wild_logit(const Variant& v);

}  // namespace lacuna::numerics

// Chooses the parts of an attend kernel: its walk over tiles, its producer, what keys and values
// are, its consumer and gate policy. This is the only place that does: the budget of a block, the
// generated file, `explain` and the checks of machine code read the plan.
#pragma once

#include "compiler/target/plan.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {

/// Can a gate decide about a tile while the scores of the next one are computed? It can if its
/// scope is the tile, it reads nothing but the tile's largest score, and it skips the exponentials.
bool decides_by_tile_max(const Attend& attend);

/// Can the mma family read tiles of K as those of V, too? Where the spec takes V from K, both are
/// loaded as they are, and no gate spares loads of V alone.
bool has_tiles_of_keys(const Program& program);

/// The consumer of a block of the wgmma family, by its operands and rows. The budget of the block
/// depends on it: a TileGateConsumer has values that are loaded only if they count.
Consumer consumer_of(const WgmmaShape& shape, const Attend& attend);

/// Writes the parts of a kernel of this family into the plan, with their reasons.
void note_wgmma_variant(const WgmmaShape& shape, const Program& program, AttendPlan& plan);
void note_mma_variant(const Program& program, AttendPlan& plan);

}  // namespace lacuna

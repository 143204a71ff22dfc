// Chooses the order in which a work tile visits its keys.
#pragma once

#include "compiler/passes/target/tile_choice.hpp"

namespace lacuna {

/// The order that a spec leaves open, unless a measurement was better. With `gathers` columns come
/// as their bits lie: ascending.
Chosen<TileOrder> default_order(const Program& program, const VariantSpec& spec, bool gathers);

}  // namespace lacuna

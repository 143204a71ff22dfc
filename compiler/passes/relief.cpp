#include "compiler/passes/relief.hpp"

namespace lacuna {
namespace {

constexpr Relief kReliefs[] = {
    {.reason = ""},
    {.reason = "registers spill in three warpgroups, or where heads are packed",
     .most_warpgroups = 2,
     .packs_few = false},
    {.reason = "registers spill beside queries",
     .most_warpgroups = 2,
     .keeps_queries = false,
     .packs_few = false},
    {.reason = "registers spill with the scores of 128 keys",
     .most_warpgroups = 2,
     .most_step_keys = 64,
     .keeps_queries = false,
     .packs_few = false},
    {.reason = "registers spill in the wgmma family", .asks_for_mma = true},
    {.reason = "registers spill with more keys", .most_tile_k = 32, .asks_for_mma = true},
    {.reason = "registers spill with more keys", .most_tile_k = 16, .asks_for_mma = true},
};

}  // namespace

std::span<const Relief> reliefs() { return kReliefs; }

}  // namespace lacuna

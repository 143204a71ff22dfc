// The order of instructions that consumers which look ahead rely on
// (templates/attend/wgmma/consumers/tile_gate_consumer.cuh). Branches meet and part there, so that
// it is asked of all ways through a kernel and not of places in its listing.
#pragma once

#include "tests/sass/wgmma_order.hpp"

namespace lacuna::sass {

/// `facts.looks_ahead` holds. What is not as it has to be, a sentence each.
std::vector<std::string> violations_ahead(const Code& code, const StepFacts& facts);

}  // namespace lacuna::sass

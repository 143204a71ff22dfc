// What attend's blocks need to make the schedule of a batch of sequences in the wgmma family
// (templates/pipeline/schedule_sequences.cuh): items of work, their order, and tensor maps that end
// where a sequence ends.
#pragma once

#include <vector>

#include "compiler/lower/kernel.hpp"

namespace lacuna {

// Of plans whose work tiles are those of sequences (has_sequence_tiles).
std::vector<Slot> schedule_slots(const Plan& plan);
std::vector<NamedSize> schedule_sizes(const Plan& plan);

}  // namespace lacuna

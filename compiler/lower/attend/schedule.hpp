// What attend's blocks need to make the schedule of a batch of sequences in the wgmma family
// (templates/pipeline/schedule_sequences.cuh): items of work, their order, and tensor maps that end
// where a sequence ends.
#pragma once

#include <vector>

#include "compiler/lower/kernel.hpp"

namespace lacuna {

/// In front of the names of what the second attend of a plan has for itself (Plan::packed).
inline constexpr const char* kPackedPrefix = "packed_";

// Of plans whose work tiles are those of sequences (has_sequence_tiles). `prefix`: of all names.
std::vector<Slot> schedule_slots(const Plan& plan, const std::string& prefix);
std::vector<NamedSize> schedule_sizes(const Plan& plan, const std::string& prefix);
/// Queries that a sequence has at most for the second attend of a plan to take it; most_few_queries
/// of templates/pipeline/sequence_tile.cuh.
std::string most_few_queries(const Plan& plan);

}  // namespace lacuna

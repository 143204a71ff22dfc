// The slots of a spec's workspace: which there are, and how large as a function of the shape.
#pragma once

#include <string>
#include <vector>

#include "compiler/emit/stage_facts.hpp"

namespace lacuna {

/// An array of the workspace. `units` (Site::kLaunch) counts kWorkspaceUnitBytes, head by head (or
/// block by block), so that steps on the way to the size stay below it or below 2^31 for millions
/// of tokens.
struct SlotSize {
  const char* name;
  std::string units;
  bool cleared = false;  ///< WorkspaceSlot::cleared
};

/// Those that the program needs, in their order in memory.
std::vector<SlotSize> workspace_slots(const StageFacts& facts);

/// Sizes that attend, or the stages around it, find in their arguments.
struct NamedSize {
  const char* name;  ///< the member of AttendArgs or PredictArgs
  std::string expr;
};
std::vector<NamedSize> attend_sizes(const StageFacts& facts);
std::vector<NamedSize> predict_sizes(const StageFacts& facts);

}  // namespace lacuna

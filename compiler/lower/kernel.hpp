// A kernel as a value. The generated text, the launch and what `explain` says follow from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/lower/arguments.hpp"
#include "compiler/target/plan.hpp"

namespace lacuna {

/// A constant of a kernel's Config, and where it comes from.
struct ConfigField {
  std::string type, name, value;     ///< "int", "kTileQ", "128"
  const char* pointer = "";          ///< the field of the spec that decides it; "": there is none
  Origin origin = Origin::kDefault;  ///< if the spec does not have that field
  std::string reason = {};           ///< one clause; empty where the field says it all
};

/// A number that a launch computes from the shape of the problem (Site::kLaunch).
struct ShapeExpr {
  std::string expr;    ///< "n_b * n_h * ((n_q + 127) // 128)"
  std::string reason;  ///< "one for each 128 queries of a head"
};

/// A number that kernels find in their arguments.
struct NamedSize {
  std::string name;  ///< the member of AttendArgs, AttendSchedule or PredictArgs
  std::string expr;
};

/// An array of the workspace. `units` counts kWorkspaceUnitBytes, head by head (or block by block),
/// so that steps on the way to the size stay below it or below 2^31 for millions of tokens. Kernels
/// that name the same slot use it one after the other: it is as large as the largest needs.
struct Slot {
  std::string name;
  std::string units;
  bool cleared = false;  ///< WorkspaceSlot::cleared
  SlotRegion region = SlotRegion::kOwn;
};

/// A member of the argument block that in this program comes from elsewhere than its table says.
struct Argument {
  std::string_view member;
  FieldSource source;
  std::string_view name;  ///< of the slot or size
};

inline Chosen<int> one_resident_block() {
  return {1, Origin::kDefault, "nothing asks for a second"};
}

struct Kernel {
  std::string name;         ///< "prepare_q"
  std::string because;      ///< what of the program makes it necessary: "means of q are subtracted"
  const char* header = "";  ///< of templates/
  const char* function = "";             ///< of that header: its body
  const char* hooks = "Hooks";           ///< whose formulas it calls
  std::vector<ConfigField> config = {};  ///< besides the element type and the head dim
  ShapeExpr grid = {};                   ///< blocks
  ShapeExpr kept_grid = {};  ///< where summaries stay, which takes fewer; empty: the same
  Chosen<int> threads = {}, smem_bytes = {};
  /// Blocks whose registers a multiprocessor has to hold at once (__launch_bounds__).
  Chosen<int> resident_blocks = one_resident_block();
  Chosen<int> registers = {};  ///< that this leaves for a thread at most; lower_plan fills it in
  /// Tensors of the caller, by the names of the argument block, and slots that earlier kernels
  /// fill.
  std::vector<std::string_view> operands = {};
  std::vector<Slot> slots = {};  ///< that it fills, or works in
  std::vector<NamedSize> sizes = {};
  std::vector<Argument> arguments = {};  ///< of its own and of all kernels behind it
  bool decides = false;                  ///< KernelLaunch::decides
  bool attends = false;                  ///< one of the kernels of attend itself
  bool is_packed = false;                ///< KernelLaunch::is_packed
  bool needs_keys = true;                ///< of a sequence without keys there is nothing to do
};
using Kernels = std::vector<Kernel>;
void append_kernels(Kernels& all, Kernels some);

/// "static constexpr int kTileQ = 128"
std::string declaration(const ConfigField& field);

}  // namespace lacuna

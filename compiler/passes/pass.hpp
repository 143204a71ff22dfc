// Passes: Program -> Program. What a pass may look at and what it may leave behind.
//
// File = function = registry name. A pass changes only the program it is given; what it decides
// besides (stages, shared memory, ...) goes into `attend`, what it rejects into `diagnostics`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/ir/program.hpp"
#include "compiler/passes/relief.hpp"
#include "compiler/target/plan.hpp"

namespace lacuna {

struct PassContext {
  const Target& target;
  const SpecDocument& document;  ///< what the user asked for, and where
  AttendPlan& attend;            ///< decisions that are not part of the program
  Diagnostics& diagnostics;
  const TunedTiles* tuned = nullptr;     ///< tiles to try first; null: none were measured
  std::optional<AttendFamily> family{};  ///< BuildOptions::family
  Relief relief{};                       ///< BuildOptions::relief
};

struct Pass {
  std::string_view name;
  Program (*run)(Program, const PassContext&);
};

/// The passes in their order; pipeline.cpp says why each stands where it does.
std::span<const Pass> pipeline();
const Pass* find_pass(std::string_view name);

/// Runs passes until one reports an error. The program is verified before the first and after each
/// pass; the observer sees each step.
Program run_passes(Program program, std::span<const Pass> passes, const PassContext& context,
                   const PassObserver& observer = {});

/// What a pass did, as text: its name, "(unchanged)" or the lines it took (-) and gave (+).
std::string describe_pass(std::string_view pass, const Program& before, const Program& after);

Program fold_expressions(Program program, const PassContext& context);
Program drop_trivial(Program program, const PassContext& context);
Program eliminate_dead_ops(Program program, const PassContext& context);
Program classify_tiles(Program program, const PassContext& context);
Program ask_pairs(Program program, const PassContext& context);
Program legalize_for_target(Program program, const PassContext& context);
Program choose_tiles(Program program, const PassContext& context);
Program place_smem(Program program, const PassContext& context);

/// A diagnostic at a field of the spec ("/tile/q"), or at its nearest enclosing field that the
/// file has.
Diagnostic at_field(const SpecDocument& document, std::string_view pointer, Code code,
                    Severity severity, std::string message);

}  // namespace lacuna

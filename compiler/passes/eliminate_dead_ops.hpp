// The core of the pass eliminate_dead_ops. build_program and legalize_for_target use it too: they
// make every op that may be needed, and this removes those whose results nobody reads.
#pragma once

#include "compiler/ir/program.hpp"

namespace lacuna {

/// The program without ops whose results neither the caller nor another op reads. Inputs that are
/// not read go too.
Program without_unread(Program program);

}  // namespace lacuna

// The core of the pass drop_unread, which build_program and legalise use too: they may wire up
// everything, and let go of what nobody reads.
#pragma once

#include "compiler/ir/program.hpp"

namespace lacuna {

/// The program without ops whose results neither the caller nor another op reads. Inputs that are
/// not read go too.
Program without_unread(Program program);

}  // namespace lacuna

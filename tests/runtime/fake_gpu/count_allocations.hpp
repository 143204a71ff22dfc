// Counts calls of operator new, to show that a path makes none.
#pragma once

namespace lacuna {

long allocations_of_this_thread();

}  // namespace lacuna

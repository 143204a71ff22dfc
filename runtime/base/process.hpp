// fork() leaves the child all memory, but only the calling thread and no GPU. Objects remember the
// generation of the process that made them, so that a child can tell which ones it inherited.
#pragma once

namespace lacuna {

/// Forks between the process that asked first and this one; one load after the first call.
unsigned process_generation() noexcept;

}  // namespace lacuna

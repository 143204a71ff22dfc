// What fork() leaves of a process: the calling thread and all memory, but no other thread and no
// GPU. Objects remember the generation they were made in; those of an ancestor are told by it.
#pragma once

namespace lacuna {

/// Forks between the process that asked first and this one; one load after the first call.
unsigned process_generation() noexcept;

}  // namespace lacuna

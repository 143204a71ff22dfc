// A write beyond RLIMIT_FSIZE raises SIGXFSZ, one to a pipe without a reader SIGPIPE: both end the
// process unless it asked for something else. A library has no business ending its host: while a
// guard lives, such a write of this thread just fails (EFBIG, EPIPE).
#pragma once

#include <signal.h>

namespace lacuna::cache {

class WriteSignalGuard {
 public:
  WriteSignalGuard();
  /// Takes back what this thread's writes have raised, and nothing else.
  ~WriteSignalGuard();
  WriteSignalGuard(const WriteSignalGuard&) = delete;
  WriteSignalGuard& operator=(const WriteSignalGuard&) = delete;

 private:
  sigset_t ours_{};    ///< those that were not pending before
  sigset_t before_{};  ///< the mask of this thread
};

}  // namespace lacuna::cache

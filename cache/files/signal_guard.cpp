#include "cache/files/signal_guard.hpp"

#include <cerrno>
#include <ctime>
#include <initializer_list>

namespace lacuna::cache {

WriteSignalGuard::WriteSignalGuard() {
  sigset_t pending;
  sigemptyset(&pending);
  ::sigpending(&pending);
  sigemptyset(&ours_);
  for (const int signal : {SIGXFSZ, SIGPIPE})
    if (sigismember(&pending, signal) == 0) sigaddset(&ours_, signal);
  ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
}

WriteSignalGuard::~WriteSignalGuard() {
  const int error = errno;
  const struct timespec no_wait {};
  while (::sigtimedwait(&ours_, nullptr, &no_wait) > 0 || errno == EINTR) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace lacuna::cache

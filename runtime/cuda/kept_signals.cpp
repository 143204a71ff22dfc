#include "runtime/cuda/kept_signals.hpp"

#include <pthread.h>

#include "runtime/base/dynamic_library.hpp"

namespace lacuna {

KeptSignals::KeptSignals(std::string library) : library_(std::move(library)) {
  sigset_t interrupts;
  sigemptyset(&interrupts);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&interrupts, signal);
  ::pthread_sigmask(SIG_BLOCK, &interrupts, &mask_);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], nullptr, &actions_[i]);
}

KeptSignals::~KeptSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now {};
    ::sigaction(kSignals[i], nullptr, &now);
    const auto handler = now.sa_handler;
    // Another function: the host has changed its mind meanwhile.
    const bool is_ours = handler == actions_[i].sa_handler ||
                         library_path_of(reinterpret_cast<const void*>(handler)) == library_;
    if (is_ours) ::sigaction(kSignals[i], &actions_[i], nullptr);
  }
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

}  // namespace lacuna

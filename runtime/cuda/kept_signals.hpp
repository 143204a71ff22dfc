// The handlers of the host while NVRTC is about. Its first compile in a process puts handlers of
// its own in the place of those of SIGINT and SIGTERM, and SIGXFSZ is ignored meanwhile; its
// handlers end the process with status 4 and no word. Afterwards it puts back the functions, but
// not their flags and masks.
#pragma once

#include <signal.h>

#include <array>
#include <string>

namespace lacuna {

/// While it lives, SIGINT and SIGTERM wait, as far as this thread and those that it starts can make
/// them wait; in the end the host has its handlers back as they were, flags and masks included.
class KeptSignals {
 public:
  /// `library`: path of the one whose handlers may stand where those of the host were.
  explicit KeptSignals(std::string library);
  ~KeptSignals();
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGXFSZ};

  std::string library_;
  sigset_t mask_{};  ///< of this thread, before
  std::array<struct sigaction, kSignals.size()> actions_{};
};

}  // namespace lacuna

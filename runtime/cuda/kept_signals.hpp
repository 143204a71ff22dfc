// Protects the host's signal handlers while NVRTC compiles. The first compilation of a process
// replaces the handlers of SIGINT and SIGTERM by ones that end the process with status 4 and no
// message, and ignores SIGXFSZ. Afterwards NVRTC restores the functions, but not their flags and
// masks.
#pragma once

#include <signal.h>

#include <array>
#include <string>

namespace lacuna {

/// Blocks SIGINT and SIGTERM in this thread, and in threads that it starts, for as long as it
/// lives. Its destructor restores the host's handlers with their flags and masks.
class KeptSignals {
 public:
  /// `library`: path of NVRTC. A handler that lies elsewhere in the end is the host's own, and
  /// stays.
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

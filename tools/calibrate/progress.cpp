#include "tools/calibrate/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "tools/common/table.hpp"

namespace lacuna::tools {
namespace {

// A signal handler can tell others only through a variable of the whole process.
volatile std::sig_atomic_t asking_signal = 0;

constexpr int kSignals[] = {SIGINT, SIGTERM};

/// The next one is as usual, whichever it is.
void ask_to_stop(int signal) {
  asking_signal = signal;
  for (const int each : kSignals) std::signal(each, SIG_DFL);
}

}  // namespace

CalibrateProgress::CalibrateProgress(std::size_t launches)
    : total_(std::max<std::size_t>(launches, 1)), shown_(::isatty(STDERR_FILENO) == 1) {
  asking_signal = 0;
  struct sigaction action {};
  action.sa_handler = ask_to_stop;
  sigemptyset(&action.sa_mask);
  for (const int each : kSignals) sigaddset(&action.sa_mask, each);
  action.sa_flags = SA_RESTART;
  for (const int each : kSignals) ::sigaction(each, &action, nullptr);
}

CalibrateProgress::~CalibrateProgress() {
  for (const int each : kSignals) std::signal(each, SIG_DFL);
  clear();
}

void CalibrateProgress::clear() const {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void CalibrateProgress::step() {
  ++done_;
  if (!shown_) return;
  const double share = static_cast<double>(done_) / static_cast<double>(total_);
  std::fprintf(stderr, "\r\x1b[K%s %s: launch %zu of at most %zu", print_bar(share).c_str(),
               subject_.c_str(), done_, std::max(done_, total_));
}

int CalibrateProgress::signal() const { return asking_signal; }

}  // namespace lacuna::tools

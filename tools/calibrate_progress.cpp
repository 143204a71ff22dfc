#include "tools/calibrate_progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "tools/table.hpp"

namespace lacuna::tools {
namespace {

// A signal handler can tell others only through a variable of the whole process.
volatile std::sig_atomic_t stop_asked = 0;

void ask_to_stop(int) { stop_asked = 1; }

}  // namespace

CalibrateProgress::CalibrateProgress(std::size_t launches)
    : total_(std::max<std::size_t>(launches, 1)), shown_(::isatty(STDERR_FILENO) == 1) {
  stop_asked = 0;
  struct sigaction action {};
  action.sa_handler = ask_to_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one is as usual
  ::sigaction(SIGINT, &action, nullptr);
}

CalibrateProgress::~CalibrateProgress() {
  std::signal(SIGINT, SIG_DFL);
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void CalibrateProgress::step() {
  ++done_;
  if (!shown_) return;
  const double share = static_cast<double>(done_) / static_cast<double>(total_);
  std::fprintf(stderr, "\r\x1b[K%s %s: launch %zu of at most %zu", print_bar(share).c_str(),
               subject_.c_str(), done_, std::max(done_, total_));
}

bool CalibrateProgress::stopped() const { return stop_asked != 0; }

}  // namespace lacuna::tools

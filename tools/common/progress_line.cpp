#include "tools/common/progress_line.hpp"

#include <unistd.h>

#include <cstdio>

#include "tools/common/table.hpp"

namespace lacuna::tools {

ProgressLine::ProgressLine(const Session& session)
    : is_shown_(!session.json && ::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::show(double share, const std::string& subject) {
  constexpr std::chrono::milliseconds kLeastGap(100);
  if (!is_shown_ || Clock::now() < next_) return;
  next_ = Clock::now() + kLeastGap;
  std::fprintf(stderr, "\r\x1b[K%s %s", print_bar(share).c_str(), subject.c_str());
}

}  // namespace lacuna::tools

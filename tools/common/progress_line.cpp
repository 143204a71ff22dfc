#include "tools/common/progress_line.hpp"

#include <unistd.h>

#include <cstdio>

#include "tools/common/table.hpp"

namespace lacuna::tools {

void show_line(const std::string& text) { std::fprintf(stderr, "\r\x1b[K%s", text.c_str()); }

void clear_line() { std::fputs("\r\x1b[K", stderr); }

ProgressLine::ProgressLine(const Session& session)
    : is_shown_(!session.json && ::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) clear_line();
}

void ProgressLine::show(double share, const std::string& subject) {
  constexpr std::chrono::milliseconds kLeastGap(100);
  if (!is_shown_ || Clock::now() < next_) return;
  next_ = Clock::now() + kLeastGap;
  show_line(print_bar(share) + " " + subject);
}

}  // namespace lacuna::tools

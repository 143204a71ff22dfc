#include "tools/calibrate/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/common/table.hpp"

namespace lacuna::tools {
CalibrateProgress::CalibrateProgress(std::size_t launches)
    : total_(std::max<std::size_t>(launches, 1)), shown_(::isatty(STDERR_FILENO) == 1) {}

CalibrateProgress::~CalibrateProgress() { clear(); }

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

}  // namespace lacuna::tools

#include "tools/calibrate/progress.hpp"

#include <unistd.h>

#include <algorithm>

#include "tools/common/progress_line.hpp"
#include "tools/common/table.hpp"

namespace lacuna::tools {
CalibrateProgress::CalibrateProgress(std::size_t launches)
    : total_(std::max<std::size_t>(launches, 1)), shown_(::isatty(STDERR_FILENO) == 1) {}

CalibrateProgress::~CalibrateProgress() { clear(); }

void CalibrateProgress::clear() const {
  if (shown_) clear_line();
}

void CalibrateProgress::step() {
  ++done_;
  if (!shown_) return;
  const double share = static_cast<double>(done_) / static_cast<double>(total_);
  show_line(print_bar(share) + " " + subject_ + ": launch " + std::to_string(done_) +
            " of at most " + std::to_string(std::max(done_, total_)));
}

}  // namespace lacuna::tools

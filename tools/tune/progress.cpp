#include "tools/tune/progress.hpp"

#include <cstdio>

#include "tools/common/table.hpp"

namespace lacuna::tools {

void TuneProgress::show(const std::string& line) {
  if (!is_shown_) return;
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  is_dirty_ = true;
}

void TuneProgress::clear() {
  if (is_dirty_) std::fputs("\r\x1b[K", stderr);
  is_dirty_ = false;
}

std::string progress_line(const std::string& name, std::size_t done, std::size_t total,
                          const std::string& best) {
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  return name + " " + print_bar(share) + " " + std::to_string(done) + " of " +
         std::to_string(total) + (best.empty() ? "" : ", best " + best);
}

}  // namespace lacuna::tools

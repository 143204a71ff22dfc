#include "tools/tune/progress.hpp"

#include "compiler/diag/printable.hpp"
#include "tools/common/progress_line.hpp"
#include "tools/common/table.hpp"

namespace lacuna::tools {

void TuneProgress::show(const std::string& line) {
  if (!is_shown_) return;
  show_line(printable(line));
  is_dirty_ = true;
}

void TuneProgress::clear() {
  if (is_dirty_) clear_line();
  is_dirty_ = false;
}

std::string progress_line(const std::string& name, std::size_t done, std::size_t total,
                          const std::string& best) {
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  return name + " " + print_bar(share) + " " + std::to_string(done) + " of " +
         std::to_string(total) + (best.empty() ? "" : ", best " + best);
}

}  // namespace lacuna::tools

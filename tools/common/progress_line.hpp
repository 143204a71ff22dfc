// How far a verb is, in one line of a terminal that goes when the verb has ended.
//
// ProgressLine serves verbs that know a share. tune, calibrate and build have lines of their own,
// by the two functions below.
#pragma once

#include <chrono>
#include <string>

#include "tools/common/session.hpp"

namespace lacuna::tools {

/// Puts the text in place of the line that standard error is on, which is a terminal.
void show_line(const std::string& text);
/// Leaves that line empty.
void clear_line();

class ProgressLine {
 public:
  /// Nothing is shown with --json, or where standard error is no terminal.
  explicit ProgressLine(const Session& session);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `share`: done, 0 to 1; at most ten lines a second are shown.
  void show(double share, const std::string& subject);

 private:
  using Clock = std::chrono::steady_clock;
  bool is_shown_;
  Clock::time_point next_{};
};

}  // namespace lacuna::tools

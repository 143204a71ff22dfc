// How far a calibration is, on a terminal; and whether the reader has asked it to stop.
#pragma once

#include <cstddef>
#include <string>

namespace lacuna::tools {

/// While it lives, the first Ctrl-C or SIGTERM only asks to stop; the second one ends the process.
class CalibrateProgress {
 public:
  explicit CalibrateProgress(std::size_t launches);
  ~CalibrateProgress();
  CalibrateProgress(const CalibrateProgress&) = delete;
  CalibrateProgress& operator=(const CalibrateProgress&) = delete;

  /// What the coming launches are for.
  void begin(const std::string& subject) { subject_ = subject; }

  /// One more launch is done.
  void step();

  /// The signal that asked to stop; 0: none.
  int signal() const;
  bool stopped() const { return signal() != 0; }

  /// Takes the line off the terminal.
  void clear() const;

  std::size_t launches() const { return done_; }

 private:
  std::size_t total_, done_ = 0;
  std::string subject_;
  bool shown_;
};

}  // namespace lacuna::tools

// How far a search is, on a terminal; silent elsewhere.
#pragma once

#include <string>

namespace lacuna::tools {

class TuneProgress {
 public:
  explicit TuneProgress(bool is_shown) : is_shown_(is_shown) {}
  ~TuneProgress() { clear(); }
  TuneProgress(const TuneProgress&) = delete;
  TuneProgress& operator=(const TuneProgress&) = delete;

  void show(const std::string& line);
  void clear();

 private:
  bool is_shown_ = false, is_dirty_ = false;
};

/// "dense [####....] 12 of 40, best 812 us (q64 k64 ascending threads2)"; `best`: "" if there is
/// none.
std::string progress_line(const std::string& name, std::size_t done, std::size_t total,
                          const std::string& best);

}  // namespace lacuna::tools

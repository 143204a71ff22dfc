// Collects the lines of a generated kernel; a #line directive stands wherever the place changes, so
// that NVRTC's errors lead back to the spec.
#pragma once

#include <string>
#include <string_view>

#include "compiler/spec/spec.hpp"

namespace lacuna {

/// Where a generated line comes from: a line of the spec, or a pseudo-file that names the origin,
/// within which line numbers mean nothing and just count up.
struct Place {
  std::string file;
  int line = 1;
};

class CudaWriter {
 public:
  explicit CudaWriter(const SpecDocument& document) : document_(document) {}

  /// The place of a field: where the user wrote it, else <origin>.
  Place place_of(const char* pointer, std::string_view origin) const;

  void line(const std::string& text) { text_ += text + "\n"; }
  void line(const std::string& text, const Place& place);
  /// A line that comes from nowhere in particular.
  void generated_line(const std::string& text) { line(text, {"<generated>", 1}); }

  std::string take() { return std::move(text_); }

  /// Kernels know one sequence of a batch by the entry 0; hooks find its number in the arguments.
  bool knows_one_sequence = false;

 private:
  void write_directive(const Place& place);

  const SpecDocument& document_;
  std::string text_, file_;
};

}  // namespace lacuna

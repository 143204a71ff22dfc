#include "tests/fuzz/targets/targets.hpp"
#include "tools/io/calibration_file.hpp"

namespace lacuna::fuzz {

bool run_calibration(std::string_view bytes) {
  Diagnostics diagnostics;
  const auto calibration = tools::parse_calibration(bytes, diagnostics);
  require(calibration.has_value() != diagnostics.has_errors(), "no calibration and no error");
  render(diagnostics, {"fuzz.safetensors", ""});
  if (!calibration) return false;
  require(calibration->results.size() == calibration->samples.size(), "a sample without results");
  const std::string printed = tools::print_calibration(*calibration);
  Diagnostics again;
  const auto copy = tools::parse_calibration(printed, again);
  require(copy.has_value(), "not read again: " + render(again, {"printed", ""}));
  require(tools::print_calibration(*copy) == printed, "read again as another");
  return true;
}

}  // namespace lacuna::fuzz

// The flags of verbs that take calibrated parameters.
#include <CLI/CLI.hpp>

#include "tools/inputs/calibration.hpp"

namespace lacuna::tools {

void add_calibration_options(CLI::App& verb, CalibrationOptions& options) {
  CLI::Option* file = verb.add_option("--calibration", options.path,
                                      "Parameters that `lacuna calibrate` found for this spec")
                          ->type_name("FILE");
  verb.add_option("--kept", options.kept,
                  "Of a calibration with several: the thresholds for N kept tiles of a row")
      ->needs(file)
      ->type_name("N");
}

}  // namespace lacuna::tools

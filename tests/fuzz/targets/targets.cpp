#include "tests/fuzz/targets/targets.hpp"

namespace lacuna::fuzz {

std::span<const FuzzTarget> targets() {
  static constexpr FuzzTarget kTargets[] = {
      {"spec", run_spec},       {"formula", run_formula},         {"program", run_program},
      {"tensors", run_tensors}, {"calibration", run_calibration}, {"tuning", run_tuning},
      {"entry", run_entry},     {"bundle", run_bundle},
  };
  return kTargets;
}

}  // namespace lacuna::fuzz

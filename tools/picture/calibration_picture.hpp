// A calibration as a picture: density and error of each head, a bar for each sample.
#pragma once

#include "tools/inputs/calibration.hpp"
#include "tools/picture/picture.hpp"

namespace lacuna::tools {

/// Two charts, one above the other, with a line at the target; held-out samples are paler.
Picture calibration_picture(const Calibration& calibration);

}  // namespace lacuna::tools

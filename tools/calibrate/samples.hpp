// The samples that `calibrate` measures on: stretches of q, k and v of one model layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/inputs/calibration.hpp"
#include "tools/inputs/inputs.hpp"

namespace lacuna::tools {

struct TokenRange {
  std::int64_t begin = 0, end = 0;
};

/// "0:2048"; nullopt if it is anything else.
std::optional<TokenRange> parse_token_range(const std::string& text);

struct SampleOptions {
  std::vector<std::string> files;
  std::optional<TokenRange> tokens;    ///< of each file; absent: all
  std::optional<TokenRange> held_out;  ///< tokens of each file that nothing is fitted to
  std::optional<DType> dtype;          ///< to convert to; absent: as they are
};

struct Sample {
  CalibrationSample origin;
  Inputs inputs;  ///< batch 1; without parameters
};

/// Each batch entry of each file is a sample, held-out ones last. Everything that is wrong is
/// reported: files, ranges, heads or head dims that differ between files, values that are no
/// numbers.
std::optional<std::vector<Sample>> load_samples(const SampleOptions& options, Session& session);

}  // namespace lacuna::tools

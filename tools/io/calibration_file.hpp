// The file of a calibration: parameters that were found on samples, with where they come from and
// what they reach. What `calibrate` writes, as safetensors, and what --calibration reads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "tools/io/array.hpp"

namespace lacuna::tools {

/// A stretch of tokens of one batch entry of a file.
struct CalibrationSample {
  std::string file;    ///< name without folders
  std::string sha256;  ///< of the whole file
  std::int64_t batch = 0, first_token = 0, tokens = 0;
  bool held_out = false;  ///< nothing was fitted to it
};

/// What one head reaches on one sample.
struct HeadResult {
  double density = 1;  ///< share of visible tiles that are computed
  double rel_l1 = 0;   ///< against dense attention
};

struct Calibration {
  std::string spec, spec_sha256, dtype;
  std::string date, version;  ///< UTC, ISO 8601; of the library
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t tile_q = 0;  ///< queries of a row of [heads, q_tiles]
  double target_rel_l1 = 0;
  bool complete = true;     ///< false: stopped before the end
  std::vector<bool> dense;  ///< heads whose target cannot be met, and which compute everything
  std::vector<CalibrationSample> samples;
  std::vector<std::vector<HeadResult>> results;  ///< [sample][head]
  /// By name, in the declared shapes; "NAME.kept_16" is what NAME would be for 16 kept tiles.
  std::map<std::string, Array> params;
};

std::string print_calibration(const Calibration& calibration);

/// Errors: those of safetensors; kFileFormat if it is not a calibration.
std::optional<Calibration> parse_calibration(std::string_view bytes, Diagnostics& diagnostics);

}  // namespace lacuna::tools

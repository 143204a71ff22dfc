// Calibrated parameters in use: which of them a problem gets, and whether they were made for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/spec/spec.hpp"
#include "tools/common/session.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/io/calibration_file.hpp"

namespace CLI {
class App;
}

namespace lacuna::tools {

/// SHA-256 of what the spec computes: its canonical text without defaults and prose.
std::string spec_sha256(const VariantSpec& spec);

std::optional<Calibration> load_calibration(const std::string& path, Session& session);

/// The problem that calibrated parameters are for.
struct CalibrationUse {
  std::int64_t heads = 0, head_dim = 0, n_q = 0;
};

/// Adds to `params` those of the calibration that are not there yet. Refuses one that was made for
/// another spec, head count or head dim. A threshold for each query tile is cut or continued with
/// its last value to the length of the problem.
bool add_calibration(const CalibrationOptions& options, const VariantSpec& spec,
                     const CalibrationUse& use, std::vector<ParamInput>& params, Session& session);

/// --calibration and --kept.
void add_calibration_options(CLI::App& verb, CalibrationOptions& options);

/// [heads, rows] with another number of rows: cut, or continued with the last one of each head.
Array fit_rows(const Array& array, std::int64_t rows);

}  // namespace lacuna::tools

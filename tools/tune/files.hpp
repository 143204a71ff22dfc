// Tuning records and lists of shapes as files.
#pragma once

#include <string>
#include <vector>

#include "cache/tuning/tuning.hpp"
#include "compiler/emit/launch_program.hpp"
#include "tools/common/session.hpp"

namespace lacuna::tools {

/// Adds the records of a file that the database does not have; lines that are none are named and
/// skipped.
void import_tuning(const std::string& path, const cache::TuningDatabase& database,
                   Session& session);

/// Writes all records of all hardware.
void export_tuning(const std::string& path, const cache::TuningDatabase& database,
                   Session& session);

/// A JSON array of texts as --shape takes them; `usual` is what a text leaves out. Empty if
/// anything is wrong, which has then been reported.
std::vector<LaunchShape> load_shapes(const std::string& path, const LaunchShape& usual,
                                     Session& session);

}  // namespace lacuna::tools

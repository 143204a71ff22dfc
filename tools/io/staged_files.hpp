// Several files into one folder, all or none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna::tools {

struct StagedFile {
  std::string name, bytes;
};

/// The file or folder that stood in the way, and why.
struct StagingFailure {
  std::string path;
  Diagnostics diagnostics;
};

/// Writes the files into a staging folder beside those they replace, and moves them to their places
/// when all are whole: at once if `folder` is new, else one after the other, and back should one
/// fail. After a failure everything is as before. Of a process that is killed the staging folder
/// stays; the next call for the same `folder` removes it.
std::optional<StagingFailure> write_staged(const std::string& folder,
                                           const std::vector<StagedFile>& files);

}  // namespace lacuna::tools

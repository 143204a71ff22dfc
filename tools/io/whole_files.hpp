// Several files into one folder, all or none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna::tools {

struct NewFile {
  std::string name, bytes;
};

/// The file or folder that stood in the way, and why.
struct WritingFailure {
  std::string path;
  Diagnostics diagnostics;
};

/// Writes the files into a staging folder beside those they replace, and moves them to their places
/// when all are whole: at once if `folder` is new, else one after the other, and back should one
/// fail. After a failure everything is as before. Of a process that is killed the staging folder
/// stays; the next call for the same `folder` removes it.
std::optional<WritingFailure> write_together(const std::string& folder,
                                             const std::vector<NewFile>& files);

}  // namespace lacuna::tools

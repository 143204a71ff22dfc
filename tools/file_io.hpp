// Whole files in and out. Writing is atomic: what is at a path is the old file or the whole new
// one, whatever happens in between.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna::tools {

/// The bytes of a file ("-": standard input); nullopt with kFileUnreadable.
std::optional<std::string> read_file(const std::string& path, Diagnostics& diagnostics);

/// Replaces the file at `path` (a device or pipe is written in place); false with kFileUnwritable,
/// and then nothing at `path` has changed.
bool write_file(const std::string& path, std::string_view bytes, Diagnostics& diagnostics);

}  // namespace lacuna::tools

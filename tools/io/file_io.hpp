// Whole files in and out. Writing is atomic: what is at a path is the old file or the whole new
// one, whatever happens in between.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "cache/files/file_descriptor.hpp"
#include "compiler/diag/diagnostic.hpp"

namespace lacuna::tools {

/// A file to read from ("-": standard input). A named pipe needs a writer, which is waited
/// for some seconds. Not valid, with errno set, where it cannot be opened.
cache::FileDescriptor open_to_read(const std::string& path);

/// Why a file could not be opened, read or written, from errno.
std::string reason_of(int error);

/// The bytes of a file; nullopt with kFileUnreadable, or with kTooLarge if there are more than
/// `most_bytes`, half of the machine's memory, or, of what is neither a file nor a pipe, 1 MiB.
std::optional<std::string> read_file(
    const std::string& path, Diagnostics& diagnostics,
    std::size_t most_bytes = std::numeric_limits<std::size_t>::max());

/// Whether write_file would find a folder to write in and no folder in its place, as far as that
/// can be known before; false with kFileUnwritable. Nothing is changed.
bool check_writable(const std::string& path, Diagnostics& diagnostics);

/// Replaces the file at `path` (a device or pipe is written in place); false with kFileUnwritable,
/// and then nothing at `path` has changed.
bool write_file(const std::string& path, std::string_view bytes, Diagnostics& diagnostics);

}  // namespace lacuna::tools

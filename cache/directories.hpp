// Where the store and its locks live, and whether a directory there can be trusted.
#pragma once

#include <functional>
#include <string>

#include "cache/file_descriptor.hpp"

namespace lacuna::cache {

using Environment = std::function<const char*(const char*)>;

/// A node-local directory for lock files: $XDG_RUNTIME_DIR/lacuna, else /dev/shm/lacuna-<uid>;
/// empty if neither parent is there.
std::string choose_lock_directory(const Environment& environment);

/// A directory that belongs to this user and that nobody else can write, or the reason why there is
/// none.
struct PrivateDirectory {
  FileDescriptor descriptor;
  bool absent = false;  ///< it does not exist (and was not to be created)
  std::string problem;  ///< "is owned by uid 0, not by uid 1000"
};

/// Opens `path`; with `create`, makes it (mode 0700) and its missing parents first.
PrivateDirectory open_private_directory(const std::string& path, bool create);

/// The path itself if absolute, else below the current directory.
std::string absolute_path(const std::string& path);

}  // namespace lacuna::cache

// Where the store and its locks live.
#pragma once

#include <functional>
#include <string>

namespace lacuna::cache {

using Environment = std::function<const char*(const char*)>;

/// LACUNA_CACHE_DIR, $XDG_CACHE_HOME/lacuna, $HOME/.cache/lacuna; empty if none can be used.
/// `environment` looks a variable up (null: not set).
std::string choose_directory(const Environment& environment);

/// A node-local directory for lock files: $XDG_RUNTIME_DIR/lacuna, else /dev/shm/lacuna-<uid>;
/// empty if neither parent is there.
std::string choose_lock_directory(const Environment& environment);

/// Also through symbolic links.
bool is_directory(const char* path);

/// The path itself if absolute, else below the current directory.
std::string absolute_path(const std::string& path);

}  // namespace lacuna::cache

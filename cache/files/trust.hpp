// What lies in the cache directory is code that will run and measurements that decide how it is
// built. One rule for all of it: a folder or file is used only if it belongs to this user or to
// root, nobody else can write it, and it is no symbolic link.
//
// Paths are relative to the descriptor of a folder, and the rule holds at each level.
#pragma once

#include <sys/stat.h>

#include <string>

#include "cache/files/file_descriptor.hpp"

namespace lacuna::cache {

/// An open folder or file, or the reason why there is none.
struct Opened {
  FileDescriptor descriptor;
  struct stat status {};
  int error = 0;               ///< errno of the call that failed; 0: none did
  std::string distrust;        ///< "v1/sm_90a is owned by uid 65534, not by uid 1000"
  bool is_on_the_way = false;  ///< the reason is about a folder that leads to a file

  bool is_open() const { return descriptor.valid(); }
  bool is_absent() const;
  std::string reason() const;  ///< `distrust`, or the message of `error`
};

/// The directory that the user names: its owner and mode are checked, but it may be a symbolic
/// link. With `create` it is made (mode 0700) with its missing parents.
Opened open_root(const std::string& path, bool create);

/// The same, of a directory whose name anybody can foretell: no symbolic link.
Opened open_foretold_root(const std::string& path, bool create);

/// A folder below `root`. With `create`, each missing level is made (mode 0700).
Opened open_folder(int root, const std::string& path, bool create);

/// A regular file below `root`, for reading. The folders on the way are looked at, not opened:
/// where each passes, only this user or root could put another in its place before the file is
/// opened.
Opened open_file(int root, const std::string& path);

}  // namespace lacuna::cache

#include "cache/files/trust.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "cache/files/directories.hpp"

namespace lacuna::cache {
namespace {

/// Of a file or folder that is open. "" if it may be used.
std::string distrust(const struct stat& status) {
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return "is owned by uid " + std::to_string(status.st_uid) + ", not by uid " +
           std::to_string(::geteuid());
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    const unsigned wanted = S_ISDIR(status.st_mode) ? 0700 : 0600;
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "can be written by others (mode %04o, expected %04o)",
                  status.st_mode & 07777U, wanted);
    return text.data();
  }
  return "";
}

bool is_link(int folder, const std::string& name) {
  struct stat status {};
  return ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(status.st_mode);
}

/// One level: the folders in `name`, if any, have been checked. `shown` is what messages call it.
Opened open_level(int folder, const std::string& name, int flags, const std::string& shown) {
  Opened opened;
  opened.descriptor = FileDescriptor(::openat(folder, name.c_str(), flags | O_CLOEXEC));
  if (!opened.is_open()) {
    opened.error = errno;
    if ((flags & O_NOFOLLOW) != 0 && opened.error != ENOENT && is_link(folder, name))
      opened.distrust = shown + "is a symbolic link";
    return opened;
  }
  std::string reason;
  if (::fstat(opened.descriptor.get(), &opened.status) != 0) {
    opened.error = errno;
  } else if (reason = distrust(opened.status); !reason.empty()) {
    opened.distrust = shown + reason;
  }
  if (opened.error != 0 || !reason.empty()) opened.descriptor = FileDescriptor();
  return opened;
}

/// The folders that lead to a file below `root`: the first that may not be used, else nothing.
Opened look_at_folders(int root, const std::string& path) {
  Opened seen;
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    std::string level = path.substr(0, end);
    if (::fstatat(root, level.c_str(), &seen.status, AT_SYMLINK_NOFOLLOW) != 0) {
      seen.error = errno;
    } else if (S_ISLNK(seen.status.st_mode)) {
      seen.distrust = level.append(" is a symbolic link");
    } else if (!S_ISDIR(seen.status.st_mode)) {
      seen.error = ENOTDIR;
    } else if (const std::string reason = distrust(seen.status); !reason.empty()) {
      seen.distrust = level.append(" ").append(reason);
    }
    seen.is_on_the_way = seen.error != 0 || !seen.distrust.empty();
    if (seen.is_on_the_way) return seen;
  }
  return seen;
}

/// mkdir -p, private at every level that is new. Returns an errno value.
int make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    // A parent that is there may refuse mkdir for another reason (EROFS, EACCES) than EEXIST.
    if (::mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      if (!is_directory(prefix.c_str())) return error;
    }
    if (end == std::string::npos) return 0;
  }
}

Opened open_root_with(const std::string& path, bool create, int flags) {
  if (create) {
    if (const int error = make_directories(path); error != 0) {
      Opened none;
      none.error = error;
      none.distrust = "cannot be created: " + std::generic_category().message(error);
      return none;
    }
  }
  Opened opened = open_level(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | flags, "");
  if (opened.error != 0 && opened.error != ENOENT && opened.distrust.empty())
    opened.distrust = "cannot be opened: " + std::generic_category().message(opened.error);
  return opened;
}

}  // namespace

bool Opened::is_absent() const { return error == ENOENT && distrust.empty(); }

std::string Opened::reason() const {
  return distrust.empty() ? std::generic_category().message(error) : distrust;
}

Opened open_root(const std::string& path, bool create) { return open_root_with(path, create, 0); }

Opened open_foretold_root(const std::string& path, bool create) {
  return open_root_with(path, create, O_NOFOLLOW);
}

Opened open_folder(int root, const std::string& path, bool create) {
  Opened folder;
  int above = root;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    if (create && ::mkdirat(above, name.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      if (!open_level(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, "").is_open()) {
        Opened none;
        none.error = error;
        return none;
      }
    }
    Opened level =
        open_level(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, path.substr(0, end) + " ");
    folder = std::move(level);  // closes the level above
    if (!folder.is_open()) return folder;
    above = folder.descriptor.get();
    begin = end + 1;
  }
  return folder;
}

Opened open_file(int root, const std::string& path) {
  Opened folder = look_at_folders(root, path);
  if (folder.is_on_the_way) return folder;
  // O_NONBLOCK: a pipe in place of a file must not stop us.
  Opened file = open_level(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, path + " ");
  if (file.is_open() && !S_ISREG(file.status.st_mode)) {
    file.distrust = path + " is not a regular file";
    file.descriptor = FileDescriptor();
  }
  return file;
}

}  // namespace lacuna::cache

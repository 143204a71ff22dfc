#include "cache/directories.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "cache/store.hpp"

namespace lacuna::cache {
namespace {

std::string lookup(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value ? value : "";
}

bool is_absolute(const std::string& path) { return !path.empty() && path.front() == '/'; }

bool is_directory(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 && S_ISDIR(status.st_mode);
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

std::string distrust(const struct stat& status) {
  if (status.st_uid != ::geteuid()) {
    return "is owned by uid " + std::to_string(status.st_uid) + ", not by uid " +
           std::to_string(::geteuid());
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777U);
    return std::string("can be written by others (mode ") + mode.data() + ", expected 0700)";
  }
  return "";
}

}  // namespace

std::string choose_directory(const Environment& environment) {
  if (std::string path = lookup(environment, "LACUNA_CACHE_DIR"); !path.empty()) return path;
  if (std::string path = lookup(environment, "XDG_CACHE_HOME"); is_absolute(path)) {
    return path + "/lacuna";
  }
  if (std::string path = lookup(environment, "HOME"); is_absolute(path)) {
    return path + "/.cache/lacuna";
  }
  return "";
}

std::string choose_lock_directory(const Environment& environment) {
  const std::string runtime = lookup(environment, "XDG_RUNTIME_DIR");
  if (is_absolute(runtime) && is_directory(runtime.c_str())) return runtime + "/lacuna";
  if (is_directory("/dev/shm")) return "/dev/shm/lacuna-" + std::to_string(::geteuid());
  return "";
}

PrivateDirectory open_private_directory(const std::string& path, bool create) {
  PrivateDirectory result;
  if (create) {
    if (const int error = make_directories(path); error != 0) {
      result.problem = "cannot be created: " + std::generic_category().message(error);
      return result;
    }
  }
  result.descriptor = FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!result.descriptor.valid()) {
    result.absent = errno == ENOENT;
    if (!result.absent) {
      result.problem = "cannot be opened: " + std::generic_category().message(errno);
    }
    return result;
  }
  struct stat status {};
  result.problem =
      ::fstat(result.descriptor.get(), &status) == 0 ? distrust(status) : "cannot be examined";
  if (!result.problem.empty()) result.descriptor = FileDescriptor();
  return result;
}

std::string absolute_path(const std::string& path) {
  if (path.empty() || is_absolute(path)) return path;
  std::array<char, PATH_MAX> current{};
  if (!::getcwd(current.data(), current.size())) return path;
  return std::string(current.data()) + "/" + path;
}

}  // namespace lacuna::cache

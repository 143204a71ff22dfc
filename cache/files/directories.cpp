#include "cache/files/directories.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>

namespace lacuna::cache {
namespace {

std::string lookup(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value ? value : "";
}

bool is_absolute(const std::string& path) { return !path.empty() && path.front() == '/'; }

}  // namespace

bool is_directory(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

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

std::string absolute_path(const std::string& path) {
  if (path.empty() || is_absolute(path)) return path;
  std::array<char, PATH_MAX> current{};
  if (!::getcwd(current.data(), current.size())) return path;
  return std::string(current.data()) + "/" + path;
}

}  // namespace lacuna::cache

#include "cache/entry_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <memory>

#include "cache/file_descriptor.hpp"

namespace lacuna::cache {
namespace {

constexpr std::string_view kRoot = "v1";
constexpr std::string_view kSuffix = ".lacuna";
constexpr std::int64_t kTouchAfter_s = 86'400;
constexpr std::int64_t kSweepAfter_s = 3600;
constexpr std::int64_t kLargestEntry_bytes = std::int64_t{1} << 30;

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_plain_name(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && text.size() < 64 && std::all_of(text.begin(), text.end(), is_plain);
}

std::string target_path(std::string_view target) {
  return std::string(kRoot) + "/" + std::string(target);
}

bool read_fully(int file, char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t got = ::read(file, bytes, count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

int write_fully(int file, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : EIO;
    done += static_cast<std::size_t>(wrote);
  }
  return ::fsync(file) == 0 ? 0 : errno;
}

/// ".tmp.<host>."; a dot in the host's name would make the names of two hosts ambiguous.
std::string temporary_prefix() {
  struct utsname names {};
  ::uname(&names);
  std::string host = names.nodename;
  for (char& c : host) {
    if (c == '.' || c == '/') c = '-';
  }
  return ".tmp." + host + ".";
}

/// Creates a file that nobody else has, in the folder of the target. `path` receives its name.
FileDescriptor create_temporary(int directory, const std::string& target, std::string& path) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    std::array<unsigned char, 8> random{};
    if (::getrandom(random.data(), random.size(), 0) < 0) return {};
    std::string name = temporary_prefix() + std::to_string(::getpid()) + ".";
    for (const unsigned char byte : random) {
      name += "0123456789abcdef"[byte >> 4U];
      name += "0123456789abcdef"[byte & 15U];
    }
    path = target_path(target) + "/" + name;
    FileDescriptor file(
        ::openat(directory, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.valid() || errno != EEXIST) return file;
  }
  return {};
}

int make_entry_directories(int directory, const Key& key) {
  const std::string target = target_path(key.target);
  for (const std::string& path :
       {std::string(kRoot), target, target + "/" + key.sha256.substr(0, 2)}) {
    if (::mkdirat(directory, path.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  }
  return 0;
}

using DirectoryStream = std::unique_ptr<DIR, int (*)(DIR*)>;

/// Names in a folder: with `hidden`, those that begin with a dot, else the others.
std::vector<std::string> names_in(int directory, const std::string& path, bool hidden) {
  std::vector<std::string> names;
  FileDescriptor file(
      ::openat(directory, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return names;
  const DirectoryStream stream(::fdopendir(file.get()), &::closedir);
  if (!stream) return names;
  file.release();  // now the stream's
  while (const dirent* item = ::readdir(stream.get())) {
    if ((item->d_name[0] == '.') == hidden) names.emplace_back(item->d_name);
  }
  return names;
}

std::string examine(int file, struct stat& status) {
  if (::fstat(file, &status) != 0) return "cannot be examined";
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  if (status.st_uid != ::geteuid()) return "owned by another user";
  if (status.st_size > kLargestEntry_bytes) return "larger than any entry";
  return "";
}

}  // namespace

std::string entry_path(const Key& key) {
  if (!is_plain_name(key.target) || !is_sha256(key.sha256)) return "";
  return target_path(key.target) + "/" + key.sha256.substr(0, 2) + "/" + key.sha256 +
         std::string(kSuffix);
}

ReadResult read_entry(int directory, const std::string& path, const std::string* key_text,
                      bool touch) {
  ReadResult result;
  // O_NONBLOCK: a pipe in place of an entry must not stop us.
  const FileDescriptor file(
      ::openat(directory, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) {
    result.absent = errno == ENOENT;
    result.decoded.damage = errno == ELOOP ? "a symbolic link" : "cannot be opened";
    return result;
  }
  struct stat status {};
  result.decoded.damage = examine(file.get(), status);
  if (!result.decoded.damage.empty()) return result;

  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  if (!read_fully(file.get(), bytes.data(), bytes.size())) {
    result.decoded.damage = "cannot be read";
    return result;
  }
  result.decoded = decode_entry(bytes, key_text);
  if (touch && result.decoded.damage.empty() &&
      ::time(nullptr) - status.st_mtim.tv_sec > kTouchAfter_s) {
    ::futimens(file.get(), nullptr);  // eviction order only: may fail
  }
  return result;
}

int write_entry(int directory, const Key& key, const std::string& bytes) {
  const std::string path = entry_path(key);
  if (path.empty()) return EINVAL;
  if (const int error = make_entry_directories(directory, key); error != 0) return error;

  std::string temporary;
  FileDescriptor file = create_temporary(directory, key.target, temporary);
  if (!file.valid()) return errno;
  int error = write_fully(file.get(), bytes);
  // Network file systems report a failed write when the file is closed.
  if (::close(file.release()) != 0 && error == 0) error = errno;
  if (error == 0 && ::renameat(directory, temporary.c_str(), directory, path.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) ::unlinkat(directory, temporary.c_str(), 0);
  return error;
}

bool remove_own_file(int directory, const std::string& path) {
  struct stat status {};
  return ::fstatat(directory, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         status.st_uid == ::geteuid() && ::unlinkat(directory, path.c_str(), 0) == 0;
}

void sweep_temporary_files(int directory, const std::string& target) {
  const std::string folder = target_path(target);
  const std::string prefix = temporary_prefix();
  for (const std::string& name : names_in(directory, folder, true)) {
    if (!name.starts_with(prefix)) continue;
    const std::string path = std::string(folder).append("/").append(name);
    struct stat status {};
    if (::fstatat(directory, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        ::time(nullptr) - status.st_mtim.tv_sec > kSweepAfter_s) {
      remove_own_file(directory, path);
    }
  }
}

std::vector<EntryFile> scan_entries(int directory) {
  std::vector<EntryFile> entries;
  for (const std::string& target : names_in(directory, std::string(kRoot), false)) {
    for (const std::string& shard : names_in(directory, target_path(target), false)) {
      const std::string folder = target_path(target).append("/").append(shard);
      for (const std::string& name : names_in(directory, folder, false)) {
        const std::string sha256 = name.substr(0, 64);
        EntryFile entry{std::string(folder).append("/").append(name), target, sha256};
        struct stat status {};
        if (name != sha256 + std::string(kSuffix) || !is_sha256(sha256) ||
            ::fstatat(directory, entry.path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
          continue;
        }
        entry.bytes = static_cast<std::uint64_t>(status.st_size);
        entry.modified_ns =
            std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
        entries.push_back(std::move(entry));
      }
    }
  }
  return entries;
}

}  // namespace lacuna::cache

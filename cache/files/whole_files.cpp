#include "cache/files/whole_files.hpp"

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

#include "cache/files/file_descriptor.hpp"
#include "cache/files/signal_guard.hpp"

namespace lacuna::cache {
namespace {

constexpr std::string_view kTemporary = ".tmp.";
constexpr std::int64_t kSweepAfter_s = 3600;
/// Clocks of hosts differ, and a host cannot ask about the processes of another.
constexpr std::int64_t kSweepOthersAfter_s = 86'400;

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
  return std::string(kTemporary) + host + ".";
}

/// Creates a file that nobody else has. `name` receives its name; errno says why there is none.
FileDescriptor create_temporary(int folder, std::string& name) {
  constexpr int kAttempts = 8;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    name = temporary_prefix() + std::to_string(::getpid()) + "." + random_digits();
    FileDescriptor file(
        ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.valid() || errno != EEXIST) return file;
  }
  return {};
}

}  // namespace

int read_file(int file, std::size_t most_bytes, std::string& bytes) {
  constexpr std::size_t kStep = std::size_t{1} << 16;
  struct stat status {};
  // Pipes, and files of /proc, do not say how long they are.
  const bool is_sized =
      ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  if (is_sized) most_bytes = std::min(most_bytes, static_cast<std::size_t>(status.st_size));
  bytes.clear();
  while (bytes.size() < most_bytes) {
    const std::size_t filled = bytes.size();
    bytes.resize(is_sized ? most_bytes : std::min(most_bytes, filled + kStep));
    const ssize_t got = ::read(file, bytes.data() + filled, bytes.size() - filled);
    bytes.resize(filled + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR) return errno;
    if (got == 0) break;
  }
  return 0;
}

int publish_file(int temporary_folder, int folder, const std::string& name,
                 const std::string& bytes) {
  const WriteSignalGuard guard;
  std::string temporary;
  FileDescriptor file = create_temporary(temporary_folder, temporary);
  if (!file.valid()) return errno;
  int error = write_fully(file.get(), bytes);
  // Network file systems report a failed write when the file is closed.
  if (::close(file.release()) != 0 && error == 0) error = errno;
  if (error == 0 && ::renameat(temporary_folder, temporary.c_str(), folder, name.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) ::unlinkat(temporary_folder, temporary.c_str(), 0);
  return error;
}

int try_to_write(int folder) {
  std::string name;
  const FileDescriptor file = create_temporary(folder, name);
  if (!file.valid()) return errno;
  ::unlinkat(folder, name.c_str(), 0);
  return 0;
}

std::string random_digits() {
  std::array<unsigned char, 8> random{};
  while (::getrandom(random.data(), random.size(), 0) < 0 && errno == EINTR) {
  }
  std::string digits;
  for (const unsigned char byte : random) {
    digits += "0123456789abcdef"[byte >> 4U];
    digits += "0123456789abcdef"[byte & 15U];
  }
  return digits;
}

std::vector<std::string> names_in(int folder, bool hidden) {
  std::vector<std::string> names;
  // A description of its own: reading a folder moves its position.
  FileDescriptor file(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.valid()) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(file.get()), &::closedir);
  if (!stream) return names;
  file.release();  // now the stream's
  while (const dirent* item = ::readdir(stream.get())) {
    if ((item->d_name[0] == '.') == hidden) names.emplace_back(item->d_name);
  }
  return names;
}

bool remove_own_file(int folder, const std::string& name) {
  struct stat status {};
  return ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         status.st_uid == ::geteuid() && ::unlinkat(folder, name.c_str(), 0) == 0;
}

std::uint64_t sweep_temporary_files(int folder, Sweep sweep) {
  const std::string ours = temporary_prefix();
  std::uint64_t freed_bytes = 0;
  for (const std::string& name : names_in(folder, true)) {
    struct stat status {};
    if (!name.starts_with(kTemporary) ||
        ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    const std::int64_t age_s = ::time(nullptr) - status.st_mtim.tv_sec;
    const std::int64_t patience_s = name.starts_with(ours) ? kSweepAfter_s : kSweepOthersAfter_s;
    if (sweep == Sweep::kAbandoned && age_s <= patience_s) continue;
    if (remove_own_file(folder, name)) freed_bytes += static_cast<std::uint64_t>(status.st_size);
  }
  return freed_bytes;
}

}  // namespace lacuna::cache

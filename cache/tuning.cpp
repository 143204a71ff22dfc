// The files of the tuning database. What is promised to processes that write at once, or die while
// they do, is in README.md.
#include "cache/tuning.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <system_error>
#include <thread>

#include "cache/directories.hpp"
#include "cache/locks.hpp"

namespace lacuna::cache {
namespace {

constexpr const char* kFolder = "tuning";
constexpr const char* kTuningSuffix = ".jsonl";
/// Superseded lines below which a file is not worth rewriting.
constexpr std::size_t kHistoryKept = 256;
/// A holder appends a few lines: whoever still waits after this goes on without the lock, and one
/// write of whole lines to the end of a file is as good.
constexpr std::chrono::milliseconds kPatience(2000);

std::string message_of(int error) { return std::generic_category().message(error); }

/// The whole file; an errno value if it is there but cannot be read.
int read_whole(int descriptor, std::string& bytes) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::pread(descriptor, bytes.data() + filled, bytes.size() - filled,
                                static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return 0;
}

/// One write, so that lines of several writers do not mix; the rest only after a short one.
int write_whole(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

NodeLock wait_for_lock(const NodeLocks& locks, const std::string& hardware) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    NodeLock lock = locks.try_acquire("tuning\n" + hardware);
    if (!lock.is_busy() || std::chrono::steady_clock::now() > deadline) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// A writer that was killed may have left half a line: the next one begins on its own.
bool ends_inside_a_line(int descriptor) {
  struct stat status {};
  char last = '\n';
  if (::fstat(descriptor, &status) != 0 || status.st_size == 0) return false;
  return ::pread(descriptor, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

std::string lines_of(const std::vector<TuningRecord>& records, const std::string& hardware) {
  std::string lines;
  for (const TuningRecord& record : records)
    if (record.hardware == hardware) lines += print_tuning_line(record) + "\n";
  return lines;
}

constexpr const char* kNoDirectory = "there is no cache directory: set LACUNA_CACHE_DIR";

/// "" with the file open, or what is wrong.
std::string open_to_append(const std::string& directory, const std::string& hardware,
                           FileDescriptor& file) {
  const PrivateDirectory folder = open_private_directory(directory, true);
  if (!folder.descriptor.valid())
    return "tuning directory " + directory + ": " +
           (folder.problem.empty() ? "cannot be opened" : folder.problem);
  const std::string name = hardware + kTuningSuffix;
  file = FileDescriptor(::openat(folder.descriptor.get(), name.c_str(),
                                 O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600));
  if (file.valid()) return "";
  return directory + "/" + name + ": cannot be written: " + message_of(errno);
}

}  // namespace

TuningDatabase::TuningDatabase(std::string directory, std::string lock_directory)
    : directory_(directory.empty() ? "" : absolute_path(directory) + "/" + kFolder),
      lock_directory_(std::move(lock_directory)) {}

std::string TuningDatabase::path_of(const std::string& hardware) const {
  return directory_ + "/" + hardware + kTuningSuffix;
}

TuningFile TuningDatabase::read(const std::string& hardware, const std::string& variant) const {
  TuningFile file;
  if (directory_.empty()) return file;
  const PrivateDirectory folder = open_private_directory(directory_, false);
  if (!folder.descriptor.valid()) {
    if (!folder.problem.empty())
      file.warnings.push_back("tuning directory " + directory_ + ": " + folder.problem);
    return file;
  }
  const FileDescriptor opened(::openat(folder.descriptor.get(), (hardware + kTuningSuffix).c_str(),
                                       O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string bytes;
  const int error = opened.valid() ? read_whole(opened.get(), bytes) : errno;
  if (error == ENOENT) return file;
  if (error != 0) {
    file.warnings.push_back(path_of(hardware) + ": cannot be read: " + message_of(error));
    return file;
  }
  return parse_tuning(bytes, path_of(hardware), variant);
}

std::string TuningDatabase::check_writable(const std::string& hardware) const {
  if (directory_.empty()) return kNoDirectory;
  FileDescriptor file;
  return open_to_append(directory_, hardware, file);
}

std::string TuningDatabase::append(const std::vector<TuningRecord>& records) const {
  if (directory_.empty()) return kNoDirectory;
  const NodeLocks locks(lock_directory_, directory_);
  std::vector<std::string> kinds;
  for (const TuningRecord& record : records)
    if (std::ranges::count(kinds, record.hardware) == 0) kinds.push_back(record.hardware);
  for (const std::string& hardware : kinds) {
    const NodeLock lock = wait_for_lock(locks, hardware);
    // Opened under the lock: a rewrite before it has put another file in place.
    FileDescriptor file;
    if (const std::string problem = open_to_append(directory_, hardware, file); !problem.empty())
      return problem;
    const char* before = ends_inside_a_line(file.get()) ? "\n" : "";
    const int error = write_whole(file.get(), before + lines_of(records, hardware));
    if (error != 0) return path_of(hardware) + ": cannot be written: " + message_of(error);
  }
  return "";
}

std::string TuningDatabase::compact(const std::string& hardware) const {
  const PrivateDirectory folder = open_private_directory(directory_, false);
  if (!folder.descriptor.valid()) return "";
  const NodeLock lock = NodeLocks(lock_directory_, directory_).try_acquire("tuning\n" + hardware);
  if (!lock.is_held()) return "";
  const TuningFile file = read(hardware);
  if (file.superseded < file.records.size() + kHistoryKept) return "";
  std::string text;
  for (const TuningRecord& record : file.records) text += print_tuning_line(record) + "\n";
  for (const std::string& line : file.foreign) text += line + "\n";
  const std::string name = hardware + kTuningSuffix, temporary = "." + name + ".new";
  const int at = folder.descriptor.get();
  FileDescriptor fresh(
      ::openat(at, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  int error = fresh.valid() ? write_whole(fresh.get(), text) : errno;
  if (error == 0 && ::fsync(fresh.get()) != 0) error = errno;
  if (error == 0 && ::renameat(at, temporary.c_str(), at, name.c_str()) != 0) error = errno;
  if (error == 0) return "";
  ::unlinkat(at, temporary.c_str(), 0);
  return path_of(hardware) + ": cannot be rewritten: " + message_of(error);
}

std::vector<std::string> TuningDatabase::hardware() const {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(directory_.c_str()), ::closedir);
  if (!folder) return names;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name.ends_with(kTuningSuffix) && name.front() != '.')
      names.push_back(name.substr(0, name.size() - std::string_view(kTuningSuffix).size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lacuna::cache

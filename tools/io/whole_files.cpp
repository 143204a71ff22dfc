#include "tools/io/whole_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cache/files/file_descriptor.hpp"
#include "tools/io/file_io.hpp"
#include "tools/io/interrupts.hpp"

namespace lacuna::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".staging-";

WritingFailure failure(const fs::path& path, int error) {
  WritingFailure found{path.string(), {}};
  found.diagnostics.add({.code = Code::kFileUnwritable,
                         .message = std::string("cannot be written: ") + std::strerror(error)});
  return found;
}

/// A process that writes holds a lock on the folder; where the lock is free, the process is gone.
cache::FileDescriptor try_lock(const fs::path& folder) {
  cache::FileDescriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) file = {};
  return file;
}

/// Removes the staging folders `prefix`* that processes left which were killed.
void sweep(const fs::path& parent, const std::string& prefix) {
  std::error_code ignored;
  std::vector<fs::path> left;
  for (fs::directory_iterator entry(parent, ignored), end; entry != end; entry.increment(ignored))
    if (entry->path().filename().string().starts_with(prefix)) left.push_back(entry->path());
  for (const fs::path& folder : left)
    if (const auto lock = try_lock(folder); lock.valid()) fs::remove_all(folder, ignored);
}

/// Folders that were created for the files; those that stay empty are removed.
class MadeFolders {
 public:
  /// 0 or errno.
  int make(const fs::path& folder) {
    std::error_code ignored;
    if (folder.empty() || fs::is_directory(folder, ignored)) return 0;
    if (const int error = make(folder.parent_path()); error != 0) return error;
    if (::mkdir(folder.c_str(), 0777) != 0) return errno;
    made_.push_back(folder);
    return 0;
  }
  void remove_empty() const {
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) ::rmdir(folder->c_str());
  }

 private:
  std::vector<fs::path> made_;
};

/// A folder of this process: `made` holds the new files, `replaced` the old ones.
struct Staging {
  fs::path root, made, replaced;
  cache::FileDescriptor lock{};

  explicit Staging(const std::string& pattern) : root(pattern) {}
  ~Staging() {
    std::error_code ignored;
    if (lock.valid()) fs::remove_all(root, ignored);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// 0 or errno.
  int open() {
    std::string path = root.string() + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return errno;
    root = path;
    made = root / "made";
    replaced = root / "replaced";
    lock = try_lock(root);
    const bool is_open =
        lock.valid() && ::mkdir(made.c_str(), 0777) == 0 && ::mkdir(replaced.c_str(), 0777) == 0;
    return is_open ? 0 : errno;
  }
};

std::optional<WritingFailure> write_all(const Staging& staging, const std::vector<NewFile>& files) {
  for (const NewFile& file : files) {
    WritingFailure failed{(staging.made / file.name).string(), {}};
    if (!write_file(failed.path, file.bytes, failed.diagnostics)) return failed;
  }
  return std::nullopt;
}

/// Puts a new file in its place and keeps the old one. Where the file system can, the old one has
/// two names for a moment, so that the name always leads to a file. Returns 0, or errno with
/// nothing changed.
int place(const Staging& staging, const fs::path& folder, const std::string& name) {
  const fs::path target = folder / name, old = staging.replaced / name;
  std::error_code ignored;
  if (fs::is_directory(fs::symlink_status(target, ignored))) return EISDIR;
  const bool is_kept = ::link(target.c_str(), old.c_str()) == 0 || errno == ENOENT ||
                       ::rename(target.c_str(), old.c_str()) == 0;
  if (!is_kept) return errno;
  if (::rename((staging.made / name).c_str(), target.c_str()) == 0) return 0;
  const int error = errno;
  ::rename(old.c_str(), target.c_str());
  return error;
}

std::optional<WritingFailure> place_all(const Staging& staging, const fs::path& folder,
                                        const std::vector<NewFile>& files) {
  for (std::size_t n = 0; n < files.size(); ++n) {
    const int error = place(staging, folder, files[n].name);
    if (error == 0) continue;
    WritingFailure failed = failure(folder / files[n].name, error);
    while (n-- > 0) {
      const fs::path target = folder / files[n].name, old = staging.replaced / files[n].name;
      if (::rename(old.c_str(), target.c_str()) != 0) ::unlink(target.c_str());
    }
    return failed;
  }
  return std::nullopt;
}

/// `folder` is where the files go; it may not be there yet.
std::optional<WritingFailure> write_to(const fs::path& folder, const std::vector<NewFile>& files,
                                       const UnbrokenWriting& unbroken) {
  std::error_code ignored;
  const bool is_new = !fs::exists(fs::symlink_status(folder, ignored));
  const std::string name = folder.filename().string();
  sweep(folder.parent_path(), name + kSuffix);
  sweep(folder, kSuffix);
  Staging staging(((is_new ? folder.parent_path() / name : folder / "").string()) + kSuffix);
  if (const int error = staging.open(); error != 0) return failure(folder, error);
  if (auto failed = write_all(staging, files)) return failed;
  if (unbroken.is_stopping()) return std::nullopt;  // and what is written goes
  if (!is_new) return place_all(staging, folder, files);
  if (::rename(staging.made.c_str(), folder.c_str()) != 0) return failure(folder, errno);
  return std::nullopt;
}

}  // namespace

std::optional<WritingFailure> write_together(const std::string& folder,
                                             const std::vector<NewFile>& files) {
  const UnbrokenWriting unbroken;
  std::error_code ignored;
  fs::path target = fs::absolute(folder, ignored);
  if (target.filename().empty()) target = target.parent_path();  // of "kernels/"
  MadeFolders made;
  if (const int error = made.make(target.parent_path()); error != 0)
    return failure(target.parent_path(), error);
  auto failed = write_to(target, files, unbroken);
  if (failed || unbroken.is_stopping()) made.remove_empty();
  return failed;
}

}  // namespace lacuna::tools

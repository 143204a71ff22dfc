#include "tools/io/file_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace lacuna::tools {
namespace {

/// Closes a descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  /// False if closing found that an earlier write failed.
  bool close() {
    const int value = value_;
    value_ = -1;
    return value < 0 || ::close(value) == 0;
  }

 private:
  int value_;
};

bool fail(Diagnostics& diagnostics, Code code, const char* verb) {
  diagnostics.add(
      {.code = code, .message = std::string("cannot be ") + verb + ": " + std::strerror(errno)});
  return false;
}

/// Reads a descriptor to its end, or beyond `most_bytes`; false with errno set.
bool read_all(int descriptor, std::size_t most_bytes, std::string& bytes) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got == 0) return true;
    if (bytes.size() > most_bytes) return true;
    if (got > 0) {
      bytes.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      return false;
    }
  }
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool is_special(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

bool write_in_place(const std::string& path, std::string_view bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.is_open() && write_all(file.get(), bytes) && file.close();
}

/// Beside the file whose place it takes.
std::string temporary_name(const std::string& path) {
  return path + ".tmp" + std::to_string(::getpid());
}

/// A file without a name is written first and named when it is whole, so that Ctrl-C leaves nothing
/// behind. Where the file system has no nameless files, the temporary one has its name from the
/// start.
bool write_temporary(const std::string& temporary, std::string_view bytes) {
  const std::string folder = std::filesystem::path(temporary).parent_path().string();
  Descriptor nameless(
      ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
  if (nameless.is_open()) {
    const std::string self = "/proc/self/fd/" + std::to_string(nameless.get());
    if (!write_all(nameless.get(), bytes)) return false;
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      return nameless.close();
    }
  }
  Descriptor named(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return named.is_open() && write_all(named.get(), bytes) && named.close();
}

}  // namespace

std::optional<std::string> read_file(const std::string& path, Diagnostics& diagnostics,
                                     std::size_t most_bytes) {
  Descriptor file(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes;
  const bool is_read = file.is_open() && read_all(file.get(), most_bytes, bytes);
  if (is_read && bytes.size() <= most_bytes) return bytes;
  if (is_read)
    diagnostics.add(
        {.code = Code::kTooLarge,
         .message = "cannot be read: it is larger than " + std::to_string(most_bytes) + " bytes"});
  else
    fail(diagnostics, Code::kFileUnreadable, "read");
  return std::nullopt;
}

bool check_writable(const std::string& path, Diagnostics& diagnostics) {
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return fail(diagnostics, Code::kFileUnwritable, "written");
  }
  if (is_special(path)) {
    return ::access(path.c_str(), W_OK) == 0 || fail(diagnostics, Code::kFileUnwritable, "written");
  }
  const std::string temporary = temporary_name(path);
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.is_open()) return fail(diagnostics, Code::kFileUnwritable, "written");
  ::unlink(temporary.c_str());
  return true;
}

bool write_file(const std::string& path, std::string_view bytes, Diagnostics& diagnostics) {
  if (is_special(path)) {
    return write_in_place(path, bytes) || fail(diagnostics, Code::kFileUnwritable, "written");
  }
  const std::string temporary = temporary_name(path);
  if (write_temporary(temporary, bytes) && ::rename(temporary.c_str(), path.c_str()) == 0)
    return true;
  fail(diagnostics, Code::kFileUnwritable, "written");
  ::unlink(temporary.c_str());
  return false;
}

}  // namespace lacuna::tools

#include "tools/io/file_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tools/io/interrupts.hpp"

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
      {.code = code, .message = std::string("cannot be ") + verb + ": " + reason_of(errno)});
  return false;
}

constexpr std::chrono::seconds kPatience{5};  ///< with a pipe at whose other end nobody is
constexpr std::chrono::milliseconds kPause{10};

/// Tries until `is_done`, or false with ENXIO when patience is at its end.
template <class IsDone>
bool wait_for_other_end(const IsDone& is_done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!is_done()) {
    if (std::chrono::steady_clock::now() > end) {
      errno = ENXIO;
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

/// Whether a pipe that was opened without waiting has a writer, or something that one left.
bool has_writer(int pipe) {
  int copy[2];
  if (::pipe2(copy, O_CLOEXEC) != 0) return true;
  const Descriptor in(copy[0]), out(copy[1]);
  return ::tee(pipe, out.get(), 1, SPLICE_F_NONBLOCK) != 0;
}

bool is_pipe(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 && S_ISFIFO(info.st_mode);
}

bool make_blocking(int descriptor) {
  return ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK) == 0;
}

/// How much of a file is read at most, and whether it says that it is larger.
struct Bound {
  std::size_t bytes = 0;
  bool is_exceeded = false;
};

Bound bound_of(int descriptor, std::size_t most_bytes) {
  constexpr std::size_t kMostOfADevice = 1 << 20;
  const auto memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return {most_bytes, false};
  const bool is_device = !S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode);
  const std::size_t bytes = std::min({most_bytes, memory / 2, is_device ? kMostOfADevice : memory});
  return {bytes, S_ISREG(info.st_mode) && static_cast<std::size_t>(info.st_size) > bytes};
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
  int descriptor = -1;
  const auto is_open = [&] {
    descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    return descriptor >= 0 || errno != ENXIO;
  };
  if (!wait_for_other_end(is_open)) return false;
  Descriptor file(descriptor);
  return file.is_open() && make_blocking(file.get()) && write_all(file.get(), bytes) &&
         file.close();
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

std::string reason_of(int error) {
  return error == ENXIO ? "nobody is at the other end of this pipe" : std::strerror(error);
}

cache::FileDescriptor open_to_read(const std::string& path) {
  if (path == "-") return cache::FileDescriptor(::dup(STDIN_FILENO));
  cache::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return file;
  if (is_pipe(file.get()) && !wait_for_other_end([&] { return has_writer(file.get()); })) return {};
  if (!make_blocking(file.get())) return {};
  return file;
}

std::optional<std::string> read_file(const std::string& path, Diagnostics& diagnostics,
                                     std::size_t most_bytes) {
  const cache::FileDescriptor file = open_to_read(path);
  std::string bytes;
  const Bound bound = file.valid() ? bound_of(file.get(), most_bytes) : Bound{};
  const bool is_read =
      file.valid() && (bound.is_exceeded || read_all(file.get(), bound.bytes, bytes));
  if (is_read && !bound.is_exceeded && bytes.size() <= bound.bytes) return bytes;
  if (is_read)
    diagnostics.add(
        {.code = Code::kTooLarge,
         .message = "cannot be read: it is larger than " + std::to_string(bound.bytes) + " bytes"});
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
  const UnbrokenWriting unbroken;
  const std::string temporary = temporary_name(path);
  if (write_temporary(temporary, bytes) && ::rename(temporary.c_str(), path.c_str()) == 0)
    return true;
  fail(diagnostics, Code::kFileUnwritable, "written");
  ::unlink(temporary.c_str());
  return false;
}

}  // namespace lacuna::tools

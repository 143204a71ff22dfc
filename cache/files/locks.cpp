#include "cache/files/locks.hpp"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <xxhash.h>

#include <cerrno>

#include "cache/files/trust.hpp"

namespace lacuna::cache {
namespace {

constexpr std::uint64_t kStripes = 64;

FileDescriptor open_stripe(const std::string& directory, std::uint64_t stripe) {
  const Opened folder = open_foretold_root(directory, true);
  if (!folder.is_open()) return {};
  const std::string name = "lock." + std::to_string(stripe);
  return FileDescriptor(::openat(folder.descriptor.get(), name.c_str(),
                                 O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
}

struct flock lock_of(short type, std::uint64_t byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return lock;
}

}  // namespace

// Closing would not do: a child of fork() shares the description, and with it the lock.
NodeLock::~NodeLock() {
  if (!file_.valid()) return;
  struct flock all = lock_of(F_UNLCK, 0);
  all.l_len = 0;
  ::fcntl(file_.get(), F_OFD_SETLK, &all);
}

NodeLocks::Place NodeLocks::place_of(std::string_view name) const {
  if (directory_.empty()) return {};
  std::string full_name = scope_;
  full_name.push_back('\0');
  full_name += name;
  const std::uint64_t hash = XXH3_64bits(full_name.data(), full_name.size());
  return {open_stripe(directory_, hash % kStripes), hash / kStripes};
}

NodeLock NodeLocks::try_acquire(std::string_view name) const {
  Place place = place_of(name);
  if (!place.file.valid()) return {};
  struct flock lock = lock_of(F_WRLCK, place.byte);
  if (::fcntl(place.file.get(), F_OFD_SETLK, &lock) == 0) return NodeLock(std::move(place.file));
  return errno == EAGAIN || errno == EACCES ? NodeLock::taken() : NodeLock();
}

bool NodeLocks::is_held(std::string_view name) const {
  const Place place = place_of(name);
  if (!place.file.valid()) return false;
  struct flock lock = lock_of(F_WRLCK, place.byte);
  return ::fcntl(place.file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace lacuna::cache

// Locks between the processes of a node. They only save work: whoever does not get one in time goes
// on without.
//
// 64 files in a node-local directory, never removed; a lock is one byte of one file, so two names
// practically never wait for each other. Open-file-description locks: the kernel releases them when
// their holder dies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/files/file_descriptor.hpp"

namespace lacuna::cache {

/// A lock that is held (until destruction), or the reason why it is not.
class NodeLock {
 public:
  NodeLock() = default;  ///< there are no locks here
  explicit NodeLock(FileDescriptor file) : file_(std::move(file)) {}
  NodeLock(NodeLock&&) = default;
  NodeLock& operator=(NodeLock&&) = default;
  ~NodeLock();
  static NodeLock taken() {
    NodeLock lock;
    lock.is_busy_ = true;
    return lock;
  }

  bool is_held() const { return file_.valid(); }
  bool is_busy() const { return is_busy_; }  ///< somebody else holds it

 private:
  FileDescriptor file_;
  bool is_busy_ = false;
};

class NodeLocks {
 public:
  /// `directory`: of the lock files, empty: no locks. `scope` keeps stores in different directories
  /// apart.
  NodeLocks(std::string directory, std::string scope)
      : directory_(std::move(directory)), scope_(std::move(scope)) {}

  NodeLock try_acquire(std::string_view name) const;  ///< never waits
  bool is_held(std::string_view name) const;          ///< by anybody

 private:
  struct Place {
    FileDescriptor file;
    std::uint64_t byte = 0;
  };
  Place place_of(std::string_view name) const;

  std::string directory_, scope_;
};

}  // namespace lacuna::cache

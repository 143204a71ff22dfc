// The kernel store: compiled kernels on disk, one file for each entry, and those that a host has
// brought along (bundle.hpp).
//
// Plain bytes in, plain bytes out; knows nothing of CUDA or of specs. Nothing here throws: any
// damage is a miss, any failure to write is a warning, and a process always runs the bytes it built
// itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.hpp"
#include "cache/files/directories.hpp"
#include "cache/key.hpp"

namespace lacuna::cache {

/// Anything worth telling the user once: {directory, what happened, consequence}.
using Warn = std::function<void(const std::string& message)>;

struct StoreOptions {
  std::string directory;       ///< empty: choose_directory() of the process's environment
  std::string lock_directory;  ///< of the locks between processes; empty: a node-local one
  std::uint64_t byte_cap = std::uint64_t{1} << 30;
  /// How long others wait for the first launch of a kernel that is built: about what building it
  /// themselves would take. That launch may itself wait for them (a barrier between ranks).
  std::chrono::milliseconds launch_grace{500};
  Warn warn;  ///< may be called by any thread; each kind of trouble once
};

struct EntryInfo {
  std::string path, target, sha256, metadata;
  std::uint64_t bytes = 0;
  std::int64_t modified_s = 0;  ///< seconds since the epoch
  bool intact = false;
  std::string damage;  ///< why it is not intact
};

struct StoreCounters {
  std::uint64_t hits = 0, misses = 0;
  std::uint64_t rejected = 0;  ///< entries that were damaged, foreign, or refused by the driver
  std::uint64_t published = 0, publish_failures = 0;
  std::uint64_t evicted = 0;  ///< entries
};

/// Thread-safe. The directory is created by the first publish. If it or a folder in it cannot be
/// trusted (owned by somebody else, writable by others, a symbolic link) or is not there and cannot
/// be made, the store warns once and keeps kernels in memory only.
class Store {
 public:
  explicit Store(StoreOptions options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Adds kernels that come with the host. They are found after those that this process has built
  /// and before those of the directory, and belong to it no more than a caller's memory does:
  /// `bytes` stay as they are while the store lives. Returns what is wrong with them; "" if they
  /// were added.
  std::string add_bundle(std::string_view bytes);

  /// Metadata of all entries of the bundles.
  std::vector<std::string> bundled_metadata() const;

  /// The intact entry of this key, or nothing. A damaged or foreign entry is removed (if it belongs
  /// to this user) and counted as rejected.
  std::optional<Entry> load(const Key& key);

  /// Writes the entry: temporary file, flush, rename; then makes room if the store is over its cap.
  /// Returns false (and warns once) if it could not; the entry then stays in memory. Releases the
  /// lock that obtain() kept.
  bool publish(const Key& key, const Entry& entry);

  struct Obtained {
    std::optional<Entry> entry;
    bool hit = false;  ///< `build` was not called by this call
  };
  /// load, or build under a single flight: one thread of the process and, where locks work, one
  /// process of the node builds a key; the others wait for it, no longer than `patience`, then
  /// build themselves. `build` returns the entry or nothing (its failure is the caller's to report;
  /// each waiter then builds itself, so that it has a failure of its own to report).
  ///
  /// Publishing is left to the caller, after the first launch. Until then the entry is found in
  /// memory by this process, and the lock that keeps other processes from building it too stays
  /// held: until publish(), reject() or the end of the store. A launch may be long in coming, so
  /// once the entry is built, other processes wait for it no longer than `launch_grace`.
  Obtained obtain(const Key& key, const std::function<std::optional<Entry>()>& build,
                  std::chrono::milliseconds patience = std::chrono::seconds(5));

  /// The driver refused the entry: forgets and removes it. An entry of a bundle is skipped from now
  /// on, and what is built in its place is stored like any other. Releases the lock that obtain()
  /// kept.
  void reject(const Key& key);

  bool on_disk() const;  ///< false: memory only
  const std::string& directory() const;
  StoreCounters counters() const;
  std::vector<EntryInfo> list() const;  ///< verifies each entry; sorted by path
  /// Removes all entries and all unfinished files of any host (a writer whose file is removed keeps
  /// its kernel in memory); returns bytes freed.
  std::uint64_t clear();
  /// Removes the least recently used entries until the rest fits, and unfinished files of dead
  /// writers; returns bytes freed.
  std::uint64_t prune(std::uint64_t byte_cap);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lacuna::cache

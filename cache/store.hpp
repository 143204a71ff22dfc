// The kernel store: compiled kernels on disk, one file for each entry (design section 8).
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
#include <vector>

namespace lacuna::cache {

/// Everything that can change the bytes of a kernel, as canonical text, and its SHA-256.
struct Key {
  std::string target;  ///< "sm_90a": a folder of its own
  std::string text;    ///< compared byte for byte on a hit
  std::string sha256;  ///< 64 hex digits of `text`
};

struct KeyParts {
  std::string source_sha256;         ///< of the generated source and all headers it can include
  std::vector<std::string> options;  ///< code-affecting options, in order
  std::string target;
  std::string compiler;  ///< NVRTC version and build-id
};
Key make_key(const KeyParts& parts);

std::string sha256_hex(const std::string& bytes);

struct Entry {
  std::string key_text;
  std::string metadata;  ///< JSON: entry names, registers, spills, smem, compile_ms, tool versions
  std::string cubin;
  std::string log;
};

/// Anything worth telling the user once: {directory, what happened, consequence}.
using Warn = std::function<void(const std::string& message)>;

struct StoreOptions {
  std::string directory;  ///< empty: choose_directory()
  std::uint64_t byte_cap = std::uint64_t{1} << 30;
  Warn warn;
};

/// LACUNA_CACHE_DIR, $XDG_CACHE_HOME/lacuna, $HOME/.cache/lacuna; empty if none can be used.
/// `environment` looks a variable up (null: not set).
std::string choose_directory(const std::function<const char*(const char*)>& environment);

struct EntryInfo {
  std::string path, target, sha256, metadata;
  std::uint64_t bytes = 0;
  std::int64_t modified_s = 0;  ///< seconds since the epoch
  bool intact = false;
};

struct StoreCounters {
  std::uint64_t hits = 0, misses = 0, rejected = 0, published = 0, publish_failures = 0,
                evicted = 0;
};

class Store {
 public:
  explicit Store(StoreOptions options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// The intact entry of this key, or nothing. Damaged or foreign entries are removed (if ours) and
  /// counted.
  std::optional<Entry> load(const Key& key);

  /// Writes the entry: temporary file, fsync, rename. Returns false (and warns once) if it could
  /// not.
  bool publish(const Key& key, const Entry& entry);

  /// load, or build under a single flight: one thread of the process and, where locks work, one
  /// process of the node builds a key; the others wait for it, no longer than `patience`, then
  /// build themselves. `build` returns the entry or nothing (its failure is the caller's to
  /// report). Publishing is left to the caller, after the first launch.
  struct Obtained {
    std::optional<Entry> entry;
    bool hit = false;
  };
  Obtained obtain(const Key& key, const std::function<std::optional<Entry>()>& build,
                  std::chrono::milliseconds patience = std::chrono::seconds(5));

  /// The entry was rejected by the driver: remove it.
  void reject(const Key& key);

  bool on_disk() const;  ///< false: memory only
  const std::string& directory() const;
  StoreCounters counters() const;
  std::vector<EntryInfo> list() const;  ///< verifies each entry
  std::uint64_t clear();                ///< removes all entries; returns bytes freed
  std::uint64_t prune(std::uint64_t byte_cap);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lacuna::cache

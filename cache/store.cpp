// The store: memory, then bundles, then disk, then build. What each step means is in store.hpp and
// README.md.
#include "cache/store.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "cache/bundle.hpp"
#include "cache/entry_files.hpp"
#include "cache/entry_format.hpp"
#include "cache/eviction.hpp"
#include "cache/files/directories.hpp"
#include "cache/files/locks.hpp"
#include "cache/files/trust.hpp"
#include "cache/flights.hpp"

namespace lacuna::cache {
namespace {

const char* process_environment(const char* name) { return std::getenv(name); }

StoreOptions resolve(StoreOptions options) {
  if (options.directory.empty()) options.directory = choose_directory(process_environment);
  if (options.lock_directory.empty()) {
    options.lock_directory = choose_lock_directory(process_environment);
  }
  options.directory = absolute_path(options.directory);
  return options;
}

struct Counters {
  std::atomic<std::uint64_t> hits{0}, misses{0}, rejected{0}, published{0}, publish_failures{0},
      evicted{0};
};

using Clock = std::chrono::steady_clock;

std::string building(const Key& key) { return "build\n" + key.text; }
std::string launching(const Key& key) { return "launch\n" + key.text; }

/// What this process holds of a key that is not published yet.
struct HeldLocks {
  NodeLock build;   ///< from before the build
  NodeLock launch;  ///< from after the build: it waits for the first launch
};

}  // namespace

struct Store::State {
  explicit State(StoreOptions chosen)
      : options(resolve(std::move(chosen))), locks(options.lock_directory, options.directory) {}

  FileDescriptor open_directory(bool create);
  void distrust(const std::string& reason);
  SharedEntry find(const Key& key);
  SharedEntry find_in_bundles(const Key& key);
  SharedEntry find_on_disk(const Key& key);
  SharedEntry remember(const Key& key, Entry entry);
  NodeLock wait_for_build_lock(const Key& key, Clock::time_point deadline) const;
  void keep_locks(const Key& key, NodeLock build);
  void release_locks(const Key& key);
  std::string write(int directory, const Key& key, const std::string& bytes, bool loadable) const;
  void evict_if_over_cap(int directory, std::uint64_t new_bytes);
  void warn_once(std::atomic<bool>& warned, const std::string& what, const char* consequence);

  const StoreOptions options;
  const NodeLocks locks;
  Flights flights;
  Counters counters;
  std::atomic<bool> memory_only{false};
  std::atomic<bool> warned_directory{false}, warned_publish{false};

  mutable std::mutex mutex;  ///< of all below; held for map operations only
  std::vector<std::shared_ptr<const Bundle>> bundles;
  std::unordered_set<std::string> refused;  ///< keys whose entries in bundles are of no use
  std::unordered_map<std::string, SharedEntry> unpublished;  ///< by key text
  std::unordered_map<std::string, HeldLocks> held_locks;     ///< by key text
  std::unordered_set<std::string> swept_targets;
  std::optional<std::uint64_t> disk_bytes;  ///< estimate, from the first publish on
};

void Store::State::warn_once(std::atomic<bool>& warned, const std::string& what,
                             const char* consequence) {
  if (warned.exchange(true) || !options.warn) return;
  options.warn("cache directory " + options.directory + ": " + what + "; " + consequence);
}

/// From now on nothing in the directory is used.
void Store::State::distrust(const std::string& reason) {
  memory_only = true;
  warn_once(warned_directory, reason, "compiled kernels are kept in memory only");
}

/// Checked at each use: a directory can be removed, remounted or opened to others at any time.
FileDescriptor Store::State::open_directory(bool create) {
  if (memory_only.load()) return {};
  Opened directory = open_root(options.directory, create);
  if (!directory.distrust.empty()) distrust(directory.distrust);
  return std::move(directory.descriptor);
}

SharedEntry Store::State::find_in_bundles(const Key& key) {
  std::vector<std::shared_ptr<const Bundle>> all;
  {
    const std::lock_guard lock(mutex);
    if (!refused.contains(key.sha256)) all = bundles;
  }
  for (const auto& bundle : all) {
    if (auto entry = find_entry(*bundle, key)) {
      return std::make_shared<const Entry>(*std::move(entry));
    }
  }
  return nullptr;
}

SharedEntry Store::State::find_on_disk(const Key& key) {
  const std::string path = entry_path(key);
  const FileDescriptor directory = open_directory(false);
  if (!directory.valid() || path.empty()) return nullptr;
  ReadResult read = read_entry(directory.get(), path, &key.text, true);
  if (!read.distrust.empty()) distrust(read.distrust);
  if (read.absent) return nullptr;
  if (!read.decoded.damage.empty()) {
    ++counters.rejected;
    remove_entry(directory.get(), path);
    return nullptr;
  }
  return std::make_shared<const Entry>(std::move(read.decoded.entry));
}

SharedEntry Store::State::find(const Key& key) {
  {
    const std::lock_guard lock(mutex);
    if (const auto found = unpublished.find(key.text); found != unpublished.end()) {
      return found->second;
    }
  }
  if (SharedEntry entry = find_in_bundles(key)) return entry;
  return find_on_disk(key);
}

SharedEntry Store::State::remember(const Key& key, Entry entry) {
  entry.key_text = key.text;
  auto shared = std::make_shared<const Entry>(std::move(entry));
  const std::lock_guard lock(mutex);
  unpublished[key.text] = shared;
  return shared;
}

/// Nothing if locks do not work here, or patience is over.
NodeLock Store::State::wait_for_build_lock(const Key& key, Clock::time_point deadline) const {
  if (memory_only.load()) return {};
  bool is_built = false;
  for (auto pause = std::chrono::milliseconds(1);;
       pause = std::min(pause * 2, std::chrono::milliseconds(16))) {
    NodeLock lock = locks.try_acquire(building(key));
    if (!lock.is_busy()) return lock;
    const auto now = Clock::now();
    if (!is_built && locks.is_held(launching(key))) {
      is_built = true;
      deadline = std::min(deadline, now + options.launch_grace);
    }
    if (now >= deadline) return {};
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, deadline - now));
  }
}

void Store::State::keep_locks(const Key& key, NodeLock build) {
  if (!build.is_held()) return;
  NodeLock launch = locks.try_acquire(launching(key));
  const std::lock_guard lock(mutex);
  held_locks[key.text] = {std::move(build), std::move(launch)};
}

void Store::State::release_locks(const Key& key) {
  const std::lock_guard lock(mutex);
  held_locks.erase(key.text);
}

/// Returns what went wrong.
std::string Store::State::write(int directory, const Key& key, const std::string& bytes,
                                bool loadable) const {
  if (!loadable) return "a kernel that is not a cubin cannot be stored";
  if (bytes.size() > options.byte_cap) {
    return "a kernel of " + std::to_string(bytes.size()) + " bytes exceeds the cap of " +
           std::to_string(options.byte_cap);
  }
  return write_entry(directory, key, bytes);
}

void Store::State::evict_if_over_cap(int directory, std::uint64_t new_bytes) {
  {
    const std::lock_guard lock(mutex);
    if (disk_bytes) {
      *disk_bytes += new_bytes;
      if (*disk_bytes <= options.byte_cap) return;
    }
  }
  // One process at a time is enough. Without locks, two may evict at once, which does no harm.
  const NodeLock sole = locks.try_acquire("evict");
  if (sole.is_busy()) return;
  const Eviction eviction = evict(directory, options.byte_cap);
  counters.evicted += eviction.removed;
  const std::lock_guard lock(mutex);
  disk_bytes = eviction.left_bytes;
}

Store::Store(StoreOptions options) : state_(std::make_unique<State>(std::move(options))) {
  State& state = *state_;
  if (state.options.directory.empty()) {
    state.memory_only = true;
    if (state.options.warn) {
      state.options.warn(
          "no cache directory: none of LACUNA_CACHE_DIR, XDG_CACHE_HOME and HOME is set; compiled "
          "kernels are kept in memory only");
    }
    return;
  }
  const FileDescriptor directory = state.open_directory(false);
  if (!directory.valid()) return;
  const std::string reason = distrust_of_store(directory.get());
  if (!reason.empty()) state.distrust(reason);
}

Store::~Store() = default;

std::string Store::add_bundle(std::string_view bytes) {
  ReadBundle read = read_bundle(bytes);
  if (!read.damage.empty()) return read.damage;
  const std::lock_guard lock(state_->mutex);
  state_->bundles.push_back(std::make_shared<const Bundle>(std::move(read.bundle)));
  return "";
}

std::vector<std::string> Store::bundled_metadata() const {
  std::vector<std::shared_ptr<const Bundle>> all;
  {
    const std::lock_guard lock(state_->mutex);
    all = state_->bundles;
  }
  std::vector<std::string> result;
  for (const auto& bundle : all) {
    for (const Bundle::Item& item : bundle->items) {
      result.push_back(decode_entry(item.entry, nullptr).entry.metadata);
    }
  }
  return result;
}

std::optional<Entry> Store::load(const Key& key) {
  const SharedEntry entry = state_->find(key);
  ++(entry ? state_->counters.hits : state_->counters.misses);
  if (!entry) return std::nullopt;
  return *entry;
}

bool Store::publish(const Key& key, const Entry& entry) {
  State& state = *state_;
  Entry keyed = entry;
  keyed.key_text = key.text;
  const std::string bytes = encode_entry(keyed);

  const FileDescriptor directory = state.open_directory(true);
  const std::string problem =
      directory.valid() ? state.write(directory.get(), key, bytes, is_loadable(entry)) : "";
  if (!directory.valid() || !problem.empty()) {
    ++state.counters.publish_failures;
    state.remember(key, std::move(keyed));
    state.release_locks(key);
    if (!problem.empty()) {
      state.warn_once(state.warned_publish, problem, "kernels are compiled again next time");
    }
    return false;
  }
  ++state.counters.published;
  bool sweep = false;
  {
    const std::lock_guard lock(state.mutex);
    state.unpublished.erase(key.text);
    sweep = state.swept_targets.insert(key.target).second;
  }
  state.release_locks(key);
  if (sweep) sweep_targets(directory.get(), key.target, Sweep::kAbandoned);
  state.evict_if_over_cap(directory.get(), bytes.size());
  return true;
}

Store::Obtained Store::obtain(const Key& key, const std::function<std::optional<Entry>()>& build,
                              std::chrono::milliseconds patience) {
  State& state = *state_;
  const auto deadline = Clock::now() + patience;

  Flights::Ticket ticket = state.flights.join(key.text);
  SharedEntry entry;
  NodeLock lock;
  if (!ticket.leads()) {
    if (ticket.result().wait_until(deadline) == std::future_status::ready) {
      entry = ticket.result().get();
    }
  } else {
    entry = state.find(key);
    if (!entry) {
      lock = state.wait_for_build_lock(key, deadline);
      // Whoever held the lock has published by now, if all went well.
      entry = state.find(key);
    }
  }
  if (entry) {
    ++state.counters.hits;
    ticket.land(entry);
    return {*entry, true};
  }

  ++state.counters.misses;
  std::optional<Entry> built = build();
  if (!built) return {};
  entry = state.remember(key, *std::move(built));
  state.keep_locks(key, std::move(lock));
  ticket.land(entry);
  return {*entry, false};
}

void Store::reject(const Key& key) {
  State& state = *state_;
  ++state.counters.rejected;
  {
    const std::lock_guard lock(state.mutex);
    state.unpublished.erase(key.text);
    state.refused.insert(key.sha256);
  }
  const std::string path = entry_path(key);
  const FileDescriptor directory = state.open_directory(false);
  if (directory.valid() && !path.empty()) remove_entry(directory.get(), path);
  state.release_locks(key);
}

bool Store::on_disk() const { return !state_->memory_only.load(); }

const std::string& Store::directory() const { return state_->options.directory; }

StoreCounters Store::counters() const {
  const Counters& now = state_->counters;
  return {now.hits, now.misses, now.rejected, now.published, now.publish_failures, now.evicted};
}

std::vector<EntryInfo> Store::list() const {
  std::vector<EntryInfo> result;
  const FileDescriptor directory = state_->open_directory(false);
  if (!directory.valid()) return result;
  for (const EntryFile& file : scan_entries(directory.get())) {
    ReadResult read = read_entry(directory.get(), file.path, nullptr, false);
    if (read.absent) continue;  // removed since
    Decoded& decoded = read.decoded;
    if (decoded.damage.empty() && sha256_hex(decoded.entry.key_text) != file.sha256) {
      decoded.damage = "entry of another key";
    }
    const bool intact = decoded.damage.empty();
    result.push_back({.path = state_->options.directory + "/" + file.path,
                      .target = file.target,
                      .sha256 = file.sha256,
                      .metadata = intact ? std::move(decoded.entry.metadata) : "",
                      .bytes = file.bytes,
                      .modified_s = file.modified_ns / 1'000'000'000,
                      .intact = intact,
                      .damage = std::move(decoded.damage)});
  }
  std::sort(result.begin(), result.end(),
            [](const EntryInfo& a, const EntryInfo& b) { return a.path < b.path; });
  return result;
}

std::uint64_t Store::clear() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->unpublished.clear();
  }
  const std::uint64_t freed_bytes = prune(0);
  const FileDescriptor directory = state_->open_directory(false);
  return directory.valid() ? freed_bytes + sweep_targets(directory.get(), "", Sweep::kAll)
                           : freed_bytes;
}

std::uint64_t Store::prune(std::uint64_t byte_cap) {
  const FileDescriptor directory = state_->open_directory(false);
  if (!directory.valid()) return 0;
  const std::uint64_t swept_bytes = sweep_targets(directory.get(), "", Sweep::kAbandoned);
  const Eviction eviction = evict(directory.get(), byte_cap);
  state_->counters.evicted += eviction.removed;
  const std::lock_guard lock(state_->mutex);
  state_->disk_bytes = eviction.left_bytes;
  return eviction.freed_bytes + swept_bytes;
}

}  // namespace lacuna::cache

#include "cache/eviction.hpp"

#include <algorithm>
#include <tuple>

namespace lacuna::cache {

Eviction evict(int directory, std::uint64_t byte_cap) {
  std::vector<EntryFile> entries = scan_entries(directory);
  std::sort(entries.begin(), entries.end(), [](const EntryFile& a, const EntryFile& b) {
    return std::tie(a.modified_ns, a.path) < std::tie(b.modified_ns, b.path);
  });
  Eviction result;
  for (const EntryFile& entry : entries) result.left_bytes += entry.bytes;
  for (const EntryFile& entry : entries) {
    if (result.left_bytes <= byte_cap) break;
    if (!remove_entry(directory, entry.path)) continue;
    result.left_bytes -= entry.bytes;
    result.freed_bytes += entry.bytes;
    ++result.removed;
  }
  return result;
}

}  // namespace lacuna::cache

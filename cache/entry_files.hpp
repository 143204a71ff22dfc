// Entries as files below the store's directory:
//   v1/<target>/<first 2 hex>/<64 hex>.lacuna   an entry, complete whenever it is visible
//   v1/<target>/.tmp.<host>.<pid>.<random>      an entry being written
// All paths are relative to the directory's descriptor.
#pragma once

#include <string>
#include <vector>

#include "cache/entry_format.hpp"

namespace lacuna::cache {

/// Path of a key's entry; empty if target or SHA-256 could not be a file name.
std::string entry_path(const Key& key);

struct ReadResult {
  Decoded decoded;
  bool absent = false;
};

/// Reads and checks an entry: a regular file of this user, intact, of `key_text` (if given).
/// With `touch`, an entry unused for a day is marked as used now.
ReadResult read_entry(int directory, const std::string& path, const std::string* key_text,
                      bool touch);

/// Writes a temporary file, flushes it to the disk, renames it over the entry. Returns an errno
/// value; after a failure nothing is left behind.
int write_entry(int directory, const Key& key, const std::string& bytes);

/// Removes a file if it belongs to this user.
bool remove_own_file(int directory, const std::string& path);

/// Removes temporary files of this host that were not written to for an hour: their writers are
/// gone.
void sweep_temporary_files(int directory, const std::string& target);

struct EntryFile {
  std::string path, target, sha256;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
};

/// All entries, in no particular order.
std::vector<EntryFile> scan_entries(int directory);

}  // namespace lacuna::cache

// Entries as files below the store's directory:
//   v1/<target>/<first 2 hex>/<64 hex>.lacuna   an entry, complete whenever it is visible
//   v1/<target>/.tmp.<host>.<pid>.<random>      an entry being written
// All paths are relative to the directory's descriptor, and at each level trust.hpp's rule holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/entry_format.hpp"
#include "cache/files/whole_files.hpp"
#include "cache/key.hpp"

namespace lacuna::cache {

/// Path of a key's entry; empty if target or SHA-256 could not be a file name.
std::string entry_path(const Key& key);

/// Why the folders of a store cannot be used: "v1 is a symbolic link"; "" if they can, or are not
/// there.
std::string distrust_of_store(int directory);

struct ReadResult {
  Decoded decoded;
  bool absent = false;
  std::string distrust;  ///< of a folder on the way: the entry was not looked at
};

/// Reads and checks an entry: a file that can be trusted, intact, of `key_text` (if given). With
/// `touch`, an entry unused for a day is marked as used now.
ReadResult read_entry(int directory, const std::string& path, const std::string* key_text,
                      bool touch);

/// Writes an entry that is complete whenever it is visible. Returns what went wrong.
std::string write_entry(int directory, const Key& key, const std::string& bytes);

/// Removes an entry if it belongs to this user.
bool remove_entry(int directory, const std::string& path);

/// Removes the temporary files of a target, of all targets if it is empty; returns the bytes freed.
std::uint64_t sweep_targets(int directory, const std::string& target, Sweep sweep);

struct EntryFile {
  std::string path, target, sha256;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
};

/// All entries, in no particular order.
std::vector<EntryFile> scan_entries(int directory);

}  // namespace lacuna::cache

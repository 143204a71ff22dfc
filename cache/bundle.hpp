// A bundle: entries in one file, for kernels that are shipped with a host. Every byte is covered by
// a checksum.
//
//   header   magic "LACUNAK\n", version, number of entries, length of the file, checksum of header
//            and table (computed with this field zero)
//   table    for each entry: SHA-256 of its key text, offset, length; ascending by the SHA-256
//   entries  as entry_format.hpp writes them; without gaps
// Integers are little-endian.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.hpp"
#include "cache/key.hpp"

namespace lacuna::cache {

/// Of entries with one key the first is kept.
std::string encode_bundle(const std::vector<Entry>& entries);

/// A view of the caller's bytes.
struct Bundle {
  struct Item {
    std::string sha256;  ///< of the key
    std::string_view entry;
  };
  std::vector<Item> items;  ///< ascending by `sha256`
};

struct ReadBundle {
  Bundle bundle;       ///< only meaningful without damage
  std::string damage;  ///< what is wrong; empty: intact
};

/// Checks everything, entries included. Whatever the bytes are, it reads none beyond them and takes
/// memory in proportion to their number.
ReadBundle read_bundle(std::string_view bytes);

/// The entry of a key; nothing if there is none, or if the bytes have changed since they were read.
std::optional<Entry> find_entry(const Bundle& bundle, const Key& key);

}  // namespace lacuna::cache

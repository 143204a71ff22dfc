// Which entries leave when the store is full: those whose last use lies furthest back.
#pragma once

#include "cache/entry_files.hpp"

namespace lacuna::cache {

struct Eviction {
  std::uint64_t freed_bytes = 0;
  std::uint64_t removed = 0;  ///< entries
  std::uint64_t left_bytes = 0;
};

/// Removes the least recently used entries until the rest fits into `byte_cap`. Safe beside readers
/// and writers: a reader has read the whole file before it uses any of it.
Eviction evict(int directory, std::uint64_t byte_cap);

}  // namespace lacuna::cache

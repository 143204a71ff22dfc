// The bytes of an entry: header, section table, sections. Every byte is covered by a checksum.
//
//   header   magic "LACUNA\r\n", version, number of sections, length of the file, checksum of
//            header and table (computed with this field zero)
//   table    for each section: offset, length, checksum
//   sections key text, metadata, log, then a cubin for each kernel; without gaps
// Integers are little-endian; checksums are XXH3, 64 bits.
#pragma once

#include <string>
#include <string_view>

#include "cache/entry.hpp"

namespace lacuna::cache {

std::string encode_entry(const Entry& entry);

struct Decoded {
  Entry entry;         ///< only meaningful without damage
  std::string damage;  ///< what is wrong; empty: intact
};

/// Checks everything that the bytes themselves can tell, in this order: length, magic, version, the
/// key text (if `key_text` is given, it must be equal), checksums, and that the entry is loadable.
Decoded decode_entry(std::string_view bytes, const std::string* key_text);

/// It has kernels, and each is an ELF file, 64 bits, little-endian, machine 190 (CUDA).
bool is_loadable(const Entry& entry);

}  // namespace lacuna::cache

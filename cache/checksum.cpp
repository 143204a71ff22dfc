#include "cache/checksum.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lacuna::cache {

std::uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace lacuna::cache

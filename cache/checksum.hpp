// The checksum of everything that this folder writes: XXH3, 64 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace lacuna::cache {

std::uint64_t checksum(std::string_view bytes);

}  // namespace lacuna::cache

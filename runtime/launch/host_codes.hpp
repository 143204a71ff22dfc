// Keys and values of e4m3 on the CPU: the numbers that codes and scales stand for, in the type that
// the executors read.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/arguments.hpp"
#include "runtime/base/threads/parallel_for.hpp"

namespace lacuna {

/// Of a number of that type.
constexpr std::int64_t number_bytes(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

/// Of a scale tensor as it is bound; 1 where none was passed.
float scale_at(const BoundTensor& scales, std::int64_t entry, std::int64_t head);

/// `count` codes times `scale`, each rounded to `dtype`.
void write_numbers(const std::uint8_t* codes, std::int64_t count, float scale, DType dtype,
                   unsigned char* target);

/// What takes the place of rows of codes [n_b, heads, n, d], whose extents 1 and 3 are bound:
/// contiguous rows in `memory`. Entry b of the batch has the scales of entry b.
BoundTensor numbers_of_codes(const BoundTensor& codes, const BoundTensor& scales, std::int64_t n_b,
                             std::int64_t n, DType dtype, const Threads& threads,
                             std::vector<unsigned char>& memory);

}  // namespace lacuna

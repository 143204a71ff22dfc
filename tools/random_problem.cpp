#include "tools/random_problem.hpp"

#include <array>
#include <random>
#include <vector>

namespace lacuna::tools {
namespace {

/// splitmix64: enough for a benchmark, and as fast as memory.
struct Generator {
  std::uint64_t state;
  std::uint64_t next() {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t x = state;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31U);
  }
};

constexpr std::size_t kPool = std::size_t{1} << 16U;

/// 65536 normal values; tensors draw from them, which leaves their distribution as it is.
std::vector<float> normal_pool(std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> pool(kPool);
  for (float& x : pool) x = normal(generator);
  return pool;
}

Array random_tensor(std::vector<std::int64_t> shape, const Array& pool, Generator& generator) {
  const auto step = static_cast<std::size_t>(size_bytes(pool.type));
  const auto count = static_cast<std::size_t>(element_count(shape).value_or(0));
  Array array{pool.type, std::move(shape), std::string(count * step, '\0')};
  std::uint64_t bits = 0;
  for (std::size_t n = 0; n < count; ++n) {
    bits = n % 4 == 0 ? generator.next() : bits >> 16U;
    pool.bytes.copy(array.bytes.data() + n * step, step, (bits & (kPool - 1)) * step);
  }
  return array;
}

}  // namespace

Inputs random_inputs(const LaunchShape& shape, int head_dim, DType dtype, std::uint64_t seed) {
  const Array pool = from_f32(normal_pool(seed), {std::int64_t{kPool}}, array_type(dtype));
  Generator generator{seed};
  Inputs inputs;
  inputs.origin = "random normal values, seed " + std::to_string(seed);
  inputs.q = random_tensor({shape.n_b, shape.n_h, shape.n_q, head_dim}, pool, generator);
  inputs.k = random_tensor({shape.n_b, shape.n_h_kv, shape.n_k, head_dim}, pool, generator);
  inputs.v = random_tensor({shape.n_b, shape.n_h_kv, shape.n_k, head_dim}, pool, generator);
  return inputs;
}

Array random_tile_mask(const LaunchShape& shape, int tile_q, int tile_k, double density,
                       std::uint64_t seed) {
  const std::int64_t q_tiles = (shape.n_q + tile_q - 1) / tile_q;
  const std::int64_t k_tiles = (shape.n_k + tile_k - 1) / tile_k;
  const std::int64_t rows = std::int64_t{shape.n_b} * shape.n_h * q_tiles;
  Array mask{ArrayType::kU8, {shape.n_b, shape.n_h, q_tiles, k_tiles}, {}};
  mask.bytes.assign(static_cast<std::size_t>(rows * k_tiles), '\0');
  Generator generator{seed};
  const double threshold = density * 0x1p53;
  for (std::int64_t row = 0; row < rows; ++row) {
    char* tiles = mask.bytes.data() + row * k_tiles;
    for (std::int64_t j = 0; j < k_tiles; ++j)
      tiles[j] = static_cast<double>(generator.next() >> 11U) < threshold ? 1 : 0;
    const auto columns = static_cast<std::uint64_t>(k_tiles);
    if (k_tiles > 0) tiles[generator.next() % columns] = 1;
  }
  return mask;
}

}  // namespace lacuna::tools

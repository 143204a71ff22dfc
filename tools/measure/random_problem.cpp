#include "tools/measure/random_problem.hpp"

#include <cmath>
#include <cstring>
#include <functional>
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

// The value sets; tools/dev/gpu/values.py makes the same ones.
constexpr std::int64_t kSinkKeys = 4;
constexpr float kSinkLogit = 14;  // the largest of 16384 random logits is about 4
constexpr std::int64_t kTileKeys = 128;
/// How far queries lie along one direction; their other parts have a length of sqrt(head_dim).
constexpr float kCommon = 8;

/// 65536 normal values; tensors draw from them, which leaves their distribution as it is.
std::vector<float> normal_pool(std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> pool(kPool);
  for (float& x : pool) x = normal(generator);
  return pool;
}

/// Four elements of the pool for each number of the generator.
template <class Element>
void draw(const Array& pool, Generator& generator, std::size_t count, char* to) {
  const char* const from = pool.bytes.data();
  std::uint64_t bits = 0;
  for (std::size_t n = 0; n < count; ++n) {
    bits = n % 4 == 0 ? generator.next() : bits >> 16U;
    std::memcpy(to + n * sizeof(Element), from + (bits & (kPool - 1)) * sizeof(Element),
                sizeof(Element));
  }
}

Array random_tensor(std::vector<std::int64_t> shape, const Array& pool, Generator& generator) {
  const auto step = static_cast<std::size_t>(size_bytes(pool.type));
  const auto count = static_cast<std::size_t>(element_count(shape).value_or(0));
  Array array{pool.type, std::move(shape), std::string(count * step, '\0')};
  const auto draw_elements = step == 2   ? draw<std::uint16_t>
                             : step == 4 ? draw<std::uint32_t>
                             : step == 8 ? draw<std::uint64_t>
                                         : draw<std::uint8_t>;
  draw_elements(pool, generator, count, array.bytes.data());
  return array;
}

/// A change of one row of head_dim values: that of token t of each head.
using ChangeRow = std::function<void(std::int64_t token, float* row)>;

/// [batch, heads, tokens, head_dim] of f32 values of the pool, each row changed, then rounded.
Array changed_tensor(std::vector<std::int64_t> shape, ArrayType type, const Array& pool,
                     Generator& generator, const ChangeRow& change) {
  const std::int64_t tokens = shape[2], head_dim = shape[3];
  Array array{type, std::move(shape), {}};
  // Head by head: f32 values of the whole tensor would be as much memory again, twice.
  for (std::int64_t head = 0; head < array.shape[0] * array.shape[1]; ++head) {
    std::vector<float> values = to_f32(random_tensor({tokens, head_dim}, pool, generator));
    for (std::int64_t token = 0; token < tokens; ++token)
      change(token, values.data() + token * head_dim);
    array.bytes += from_f32(values, {tokens, head_dim}, type).bytes;
  }
  return array;
}

/// A unit vector, times `length`.
std::vector<float> random_direction(const std::vector<float>& pool, int head_dim, float length) {
  std::vector<float> direction(pool.begin(), pool.begin() + head_dim);
  float squares = 0;
  for (const float x : direction) squares += x * x;
  for (float& x : direction) x *= length / std::sqrt(squares);
  return direction;
}

/// How a key of a value set is changed, `per_logit` being what raises its logit with every query by
/// about 1.
ChangeRow change_of_keys(ValueKind kind, std::int64_t keys, std::vector<float> per_logit) {
  return [kind, keys, per_logit = std::move(per_logit)](std::int64_t token, float* row) {
    const bool is_sink = kind == ValueKind::kSink;
    if (is_sink && token >= kSinkKeys) return;
    const std::int64_t place = kind == ValueKind::kFalling ? keys - 1 - token : token;
    const float kept = is_sink ? 0.0F : 1.0F;
    const std::int64_t tile = place / kTileKeys;
    const float logits = is_sink ? kSinkLogit : static_cast<float>(tile);
    for (std::size_t d = 0; d < per_logit.size(); ++d)
      row[d] = kept * row[d] + logits * per_logit[d];
  };
}

/// q of the sets whose queries lie along one direction, and k changed along it.
void add_directed(Inputs& inputs, const LaunchShape& shape, int head_dim, ArrayType type,
                  const std::vector<float>& normal, Generator& generator, ValueKind kind) {
  const Array pool = from_f32(normal, {std::int64_t{kPool}}, ArrayType::kF32);
  const std::vector<float> common = random_direction(normal, head_dim, kCommon);
  const std::vector<float> per_logit =
      random_direction(normal, head_dim, std::sqrt(static_cast<float>(head_dim)) / kCommon);
  inputs.q = changed_tensor({shape.n_b, shape.n_h, shape.n_q, head_dim}, type, pool, generator,
                            [&common](std::int64_t, float* row) {
                              for (std::size_t d = 0; d < common.size(); ++d) row[d] += common[d];
                            });
  inputs.k = changed_tensor({shape.n_b, shape.n_h_kv, shape.n_k, head_dim}, type, pool, generator,
                            change_of_keys(kind, shape.n_k, per_logit));
}

}  // namespace

Inputs random_inputs(const LaunchShape& shape, int head_dim, DType dtype, std::uint64_t seed,
                     const ValueSet& values, int head_dim_v) {
  const ArrayType type = array_type(dtype);
  const std::vector<float> normal = normal_pool(seed);
  const Array pool = from_f32(normal, {std::int64_t{kPool}}, type);
  Generator generator{seed};
  Inputs inputs;
  inputs.origin = "values " + print_values(values) + ", seed " + std::to_string(seed);
  if (values.kind == ValueKind::kNormal) {
    std::vector<float> scaled = normal;
    for (float& x : scaled) x = static_cast<float>(static_cast<double>(x) * values.query_factor);
    const Array q_pool = from_f32(scaled, {std::int64_t{kPool}}, type);
    inputs.q = random_tensor({shape.n_b, shape.n_h, shape.n_q, head_dim}, q_pool, generator);
    inputs.k = random_tensor({shape.n_b, shape.n_h_kv, shape.n_k, head_dim}, pool, generator);
  } else {
    add_directed(inputs, shape, head_dim, type, normal, generator, values.kind);
  }
  const int width = head_dim_v > 0 ? head_dim_v : head_dim;
  inputs.v = random_tensor({shape.n_b, shape.n_h_kv, shape.n_k, width}, pool, generator);
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

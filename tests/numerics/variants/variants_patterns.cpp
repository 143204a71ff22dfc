// Published patterns and biases of place: each once more, as its paper says it.
#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

using oracle::TileFacts;

/// MurmurHash3_x86_32 of the bytes of `counter`, byte by byte.
std::uint32_t murmur3(std::uint32_t seed, std::uint32_t counter) {
  const auto rotated = [](std::uint32_t x, int by) { return x << by | x >> (32 - by); };
  std::uint32_t block = 0;
  for (int byte = 3; byte >= 0; --byte) block = block << 8 | (counter >> (8 * byte) & 0xffU);
  std::uint32_t hash = seed ^ rotated(block * 0xcc9e2d51U, 15) * 0x1b873593U;
  hash = rotated(hash, 13) * 5U + 0xe6546b64U;
  hash ^= 4U;
  hash ^= hash >> 16;
  hash *= 0x85ebca6bU;
  hash ^= hash >> 13;
  hash *= 0xc2b2ae35U;
  return hash ^ hash >> 16;
}

void make_t5_bias(Variant& v, Random& random) {
  const int n_h = v.problem.n_h;
  std::vector<double> bias;
  for (int x = 0; x < n_h * 32; ++x) bias.push_back(as_f32(uniform(random, -3, 3)));
  v.params = {{"bias", false, bias, {n_h, 32}}};
  v.problem.scale = 1;
  v.problem.score = [=](double s, int q, int k, int h, int) {
    const int distance = std::abs(k - q);
    int bucket = distance;
    if (distance >= 8) {  // as the original, where only whole powers meet a border
      const double steps = std::log(distance / 8.0) / std::log(128 / 8.0) * 8;
      bucket = std::min(15, 8 + static_cast<int>(std::floor(steps + 1e-9)));
    }
    return s + bias[static_cast<std::size_t>(h * 32 + bucket + (k > q ? 16 : 0))];
  };
}

void make_prefix_lm(Variant& v, Random& random) {
  const int shift = v.problem.n_k - v.problem.n_q;
  std::vector<double> prefix;
  for (int b = 0; b < v.problem.n_b; ++b) prefix.push_back(whole(random, 0, 200));
  v.params = {{"prefix", true, prefix, {v.problem.n_b}}};
  v.problem.mask = [=](int q, int k, int, int b) {
    return k < prefix[static_cast<std::size_t>(b)] || k <= q + shift;
  };
}

void make_longformer(Variant& v, Random& random) {
  std::vector<double> globals;
  for (int b = 0; b < v.problem.n_b; ++b) globals.push_back(whole(random, 0, 3));
  v.params = {{"globals", true, globals, {v.problem.n_b}}};
  const auto window = head_count(v, "window", random, 0, 150);
  v.problem.mask = [=](int q, int k, int h, int b) {
    const int side = static_cast<int>(window[static_cast<std::size_t>(h)]) / 2;
    const double first = globals[static_cast<std::size_t>(b)];
    bool is_local = false;
    for (int x = -side; x <= side; ++x) is_local = is_local || k == q + x;
    return q < first || k < first || is_local;
  };
}

/// The box of 2 * radius + 1 places around x that lies within `length`, or all of it.
bool is_near(int x, int y, int radius, int length) {
  const int first = std::clamp(x - radius, 0, std::max(length - 2 * radius - 1, 0));
  return y >= first && y <= first + 2 * radius;
}

void make_natten(Variant& v, Random& random) {
  const int frames = whole(random, 1, 4), height = whole(random, 3, 9);
  const int width = whole(random, 5, 20);
  pass(v, "frames", frames), pass(v, "height", height), pass(v, "width", width);
  const auto radius_t = head_count(v, "radius_t", random, 0, (frames - 1) / 2);
  const auto radius_h = head_count(v, "radius_h", random, 0, (height - 1) / 2);
  const auto radius_w = head_count(v, "radius_w", random, 0, (width - 1) / 2);
  v.problem.mask = [=](int q, int k, int head, int) {
    const auto h = static_cast<std::size_t>(head);
    const int plane = height * width;
    return is_near(q / plane, k / plane, static_cast<int>(radius_t[h]), frames) &&
           is_near(q / width % height, k / width % height, static_cast<int>(radius_h[h]), height) &&
           is_near(q % width, k % width, static_cast<int>(radius_w[h]), width);
  };
}

/// A random tree: each drafted token but the first hangs below one of the nine before it.
void make_tree(Variant& v, Random& random) {
  const int n_b = v.problem.n_b, n_q = v.problem.n_q, past = v.problem.n_k - n_q;
  constexpr int kWords = 16;
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(n_b * n_q * kWords));
  const auto row = [=](int b, int q) { return static_cast<std::size_t>((b * n_q + q) * kWords); };
  // Behind 512 tokens formulas read the last word.
  const auto word = [=](int b, int q, int x) {
    return row(b, q) + static_cast<std::size_t>(std::min(x / 32, kWords - 1));
  };
  for (int b = 0; b < n_b; ++b)
    for (int q = 0; q < n_q; ++q) {
      if (q > 0)
        std::copy_n(bits.begin() + std::ptrdiff_t(row(b, whole(random, std::max(0, q - 9), q - 1))),
                    kWords, bits.begin() + std::ptrdiff_t(row(b, q)));
      bits[word(b, q, q)] |= 1U << (q % 32);
    }
  std::vector<double> words;
  for (const std::uint32_t word : bits) words.push_back(static_cast<std::int32_t>(word));
  v.params = {{"ancestors", true, words, {n_b, n_q, kWords}}};
  v.problem.mask = [=](int q, int k, int, int b) {
    const int drafted = k - past;
    if (drafted < 0) return true;
    if (drafted > q) return false;
    return (bits[word(b, q, drafted)] >> (drafted % 32) & 1U) == 1U;
  };
}

void make_pair_bias(Variant& v, Random& random) {
  const oracle::Problem& p = v.problem;
  const int n_h = p.n_h, n_q = p.n_q, n_k = p.n_k;
  std::vector<double> bias;
  for (int x = 0; x < p.n_b * n_h * n_q * n_k; ++x)
    bias.push_back(x % 11 == 3 ? -kInfinity : as_f32(uniform(random, -2, 2)));
  v.params = {{"bias", false, bias, {p.n_b, n_h, n_q, n_k}}};
  v.problem.score = [=](double s, int q, int k, int h, int b) {
    return s + bias[static_cast<std::size_t>(((b * n_h + h) * n_q + q) * n_k + k)];
  };
}

oracle::Predictor& patterned(Variant& v, int tile_q, int tile_k) {
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = tile_q, v.predictor->tile_k = tile_k;
  v.predictor->uses_rank = false;
  return *v.predictor;
}

void make_bigbird(Variant& v, Random& random) {
  const int globals = whole(random, 0, 1), window = 2 * whole(random, 0, 1) + 1;
  const int seed = whole(random, -1000, 1000);
  pass(v, "globals", globals), pass(v, "window", window), pass(v, "seed", seed);
  patterned(v, 64, 64).keep = [=](const TileFacts& t) {
    const int i = t.tile.i, j = t.tile.j;
    bool is_drawn = false;
    for (int x = 0; x < 3; ++x) {
      const std::uint32_t of_head =
          murmur3(static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(t.tile.h));
      // The remainder is that of a signed number, rounded down.
      const std::int64_t drawn =
          static_cast<std::int32_t>(murmur3(of_head, static_cast<std::uint32_t>(3 * i + x)));
      is_drawn = is_drawn || ((drawn % t.n_j) + t.n_j) % t.n_j == j;
    }
    return i < globals || j < globals || std::abs(i - j) <= window / 2 || is_drawn;
  };
}

void make_sliding_tile(Variant& v, Random& random) {
  constexpr int kTokens = 128;  // of a cube, so that there are some
  const int cubes_t = whole(random, 1, 2), cubes_h = whole(random, 1, 2), cubes_w = 2;
  pass(v, "cubes_t", cubes_t), pass(v, "cubes_h", cubes_h), pass(v, "cubes_w", cubes_w);
  pass(v, "cube", kTokens);
  const auto window_t = head_count(v, "window_t", random, 1, 3);
  const auto window_h = head_count(v, "window_h", random, 1, 3);
  const auto window_w = head_count(v, "window_w", random, 1, 3);
  patterned(v, 128, 128).keep = [=](const TileFacts& t) {
    const auto h = static_cast<std::size_t>(t.tile.h);
    const int q = t.tile.q0 / kTokens, k = t.tile.k0 / kTokens;
    const auto near = [&](int x, int y, double window, int length) {
      return is_near(x, y, static_cast<int>(window) / 2, length);
    };
    if (std::max(q, k) >= cubes_t * cubes_h * cubes_w) return true;
    return near(q / (cubes_h * cubes_w), k / (cubes_h * cubes_w), window_t[h], cubes_t) &&
           near(q / cubes_w % cubes_h, k / cubes_w % cubes_h, window_h[h], cubes_h) &&
           near(q % cubes_w, k % cubes_w, window_w[h], cubes_w);
  };
}

constexpr const char* kValues = R"({"version": 1, "name": "values",
  "attention": {
    "mask": "hash(hash(seed, h), q // 16) >> (k // 8 & 31) & 1 == 1 or (q ^ k << 1) % n_h == (k | 5) % n_h",
    "score": "s + table[16 + int(clamp(s * 4, -inf, 60))] + pairs[q, k]"},
  "params": {"seed": {"type": "i32", "doc": "of random keys"},
             "table": {"shape": "[heads, 33]", "doc": "by four times the logit"},
             "pairs": {"shape": "[batch, heads, n_q, n_k]", "doc": "of each pair"}}})";

/// Integers, their bits, random ones, tables of a fixed extent and of four dimensions.
void make_values(Variant& v, Random& random) {
  const oracle::Problem& p = v.problem;
  const int n_h = p.n_h, n_q = p.n_q, n_k = p.n_k, seed = whole(random, -99, 99);
  pass(v, "seed", seed);
  std::vector<double> table, pairs;
  for (int x = 0; x < n_h * 33; ++x) table.push_back(as_f32(0.01 * (x % 33)));
  for (int x = 0; x < p.n_b * n_h * n_q * n_k; ++x) pairs.push_back(as_f32(uniform(random, -2, 2)));
  v.params.push_back({"table", false, table, {n_h, 33}});
  v.params.push_back({"pairs", false, pairs, {p.n_b, n_h, n_q, n_k}});
  v.problem.mask = [=](int q, int k, int h, int) {
    const std::uint32_t of_head =
        murmur3(static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(h));
    const std::uint32_t drawn = murmur3(of_head, static_cast<std::uint32_t>(q / 16));
    return (drawn >> (k / 8 % 32) & 1U) == 1U || (q ^ 2 * k) % n_h == (k | 5) % n_h;
  };
  v.problem.score = [=](double s, int q, int k, int h, int b) {
    const int step = std::clamp(static_cast<int>(std::clamp(s * 4, -1e6, 60.0)) + 16, 0, 32);
    return s + table[static_cast<std::size_t>(h * 33 + step)] +
           pairs[static_cast<std::size_t>(((b * n_h + h) * n_q + q) * n_k + k)];
  };
}

constexpr const char* kChunks = R"({"version": 1, "name": "chunks",
  "attention": {"mask": "k <= q + n_k - n_q and k // chunk == (q + n_k - n_q) // chunk"},
  "params": {"chunk": {"type": "i32", "range": [1, "inf"], "doc": "tokens of a chunk"}}})";

constexpr const char* kChunksBefore = R"({"version": 1, "name": "chunks-before",
  "let": {"place": "q + n_k - n_q"},
  "attention": {"mask": "k // chunk <= place // chunk and place // chunk - k // chunk <= back"},
  "params": {"chunk": {"type": "i32", "shape": "[heads]", "range": [1, 1048576], "doc": "tokens"},
             "back": {"type": "i32", "range": [0, 64], "doc": "chunks before one's own"}}})";

/// Of single tokens, in the middle of tiles, of whole tiles, and longer than any sequence.
constexpr int kChunkTokens[] = {1, 7, 64, 1 << 20};

int chunk_of(int token, int chunk) {
  return static_cast<int>(std::floor(static_cast<double>(token) / chunk));
}

void make_chunks(Variant& v, Random& random) {
  const int shift = v.problem.n_k - v.problem.n_q, chunk = kChunkTokens[whole(random, 0, 3)];
  pass(v, "chunk", chunk);
  v.problem.mask = [=](int q, int k, int, int) {
    return k <= q + shift && chunk_of(k, chunk) == chunk_of(q + shift, chunk);
  };
}

void make_chunks_before(Variant& v, Random& random) {
  const int n_h = v.problem.n_h, shift = v.problem.n_k - v.problem.n_q;
  const int first = whole(random, 0, 3), back = whole(random, 0, 3);
  std::vector<double> chunks;
  for (int h = 0; h < n_h; ++h) chunks.push_back(kChunkTokens[(first + h) % 4]);
  v.params = {{"chunk", true, chunks, {n_h}}};
  pass(v, "back", back);
  v.problem.mask = [=](int q, int k, int h, int) {
    const int chunk = static_cast<int>(chunks[static_cast<std::size_t>(h)]);
    const int before = chunk_of(q + shift, chunk) - chunk_of(k, chunk);
    return before >= 0 && before <= back;
  };
}

}  // namespace

std::string pattern_spec(const std::string& name) {
  if (name == "chunks") return kChunks;
  if (name == "chunks-before") return kChunksBefore;
  return name == "values" ? kValues : "";
}

bool make_pattern_variant(const std::string& name, Variant& v, KernelTile, Random& random) {
  if (name == "t5-bias") return make_t5_bias(v, random), true;
  if (name == "prefix-lm") return make_prefix_lm(v, random), true;
  if (name == "longformer") return make_longformer(v, random), true;
  if (name == "natten") return make_natten(v, random), true;
  if (name == "tree") return make_tree(v, random), true;
  if (name == "pair-bias") return make_pair_bias(v, random), true;
  if (name == "bigbird") return make_bigbird(v, random), true;
  if (name == "sliding-tile") return make_sliding_tile(v, random), true;
  if (name == "values") return make_values(v, random), true;
  if (name == "chunks") return make_chunks(v, random), true;
  if (name == "chunks-before") return make_chunks_before(v, random), true;
  return false;
}

}  // namespace lacuna::numerics

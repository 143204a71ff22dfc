#include "runtime/group/chunks.hpp"

#include <algorithm>

namespace lacuna::group {
namespace {

/// Heads of a chunk, at most, for each head that came before it.
constexpr std::int32_t kGrowth = 2;

Range heads_of(const std::vector<Piece>& pieces) {
  Range all;
  for (const Piece& piece : pieces) {
    all = all.empty()
              ? piece.heads
              : Range{std::min(all.begin, piece.heads.begin), std::max(all.end, piece.heads.end)};
  }
  return all;
}

/// The heads that come in chunks. A block is all query heads of a KV head, or a single one.
struct Blocks {
  std::int32_t first = 0, count = 0, heads_of_block = 1;
};

Blocks blocks_of(const std::vector<Piece>& pieces, const LaunchShape& shape,
                 const CutRules& rules) {
  const Range heads = heads_of(pieces), kv_heads = kv_heads_of(heads, shape);
  if (kv_heads.count() == 1 && !rules.whole_kv_heads) return {heads.begin, heads.count(), 1};
  return {kv_heads.begin, kv_heads.count(), shape.n_h / shape.n_h_kv};
}

/// Those of the first chunk's heads first, under which it arrives; the others last, under which
/// results travel.
void put_early_pieces_around(std::vector<Piece>& pieces) {
  const auto place = [](const Piece& piece) { return !piece.early ? 1 : piece.chunk == 0 ? 0 : 2; };
  std::ranges::stable_sort(pieces, {}, place);
}

}  // namespace

std::vector<std::int32_t> chunk_heads(std::int32_t heads, bool ends_small) {
  std::vector<std::int32_t> chunks;
  const std::int32_t last = ends_small && heads > 2 ? 1 : 0;
  for (std::int32_t taken = 0; taken < heads - last; taken += chunks.back())
    chunks.push_back(std::min(std::max(1, kGrowth * taken), heads - last - taken));
  if (last > 0) chunks.push_back(last);
  return chunks;
}

int cut_into_chunks(std::vector<std::vector<Piece>>& ranks, const LaunchShape& shape,
                    const CutRules& rules, bool ends_small) {
  int most = 1;
  for (std::vector<Piece>& pieces : ranks) {
    if (pieces.empty()) continue;
    const Blocks blocks = blocks_of(pieces, shape, rules);
    std::vector<Piece> cut;
    int chunk = 0;
    std::int32_t begin = blocks.first;
    for (const std::int32_t count : chunk_heads(blocks.count, ends_small)) {
      const Range heads = {begin * blocks.heads_of_block, (begin + count) * blocks.heads_of_block};
      for (const Piece& piece : pieces) {
        const Range part = intersect(piece.heads, heads);
        if (!part.empty()) cut.push_back({part, piece.q, chunk, piece.early});
      }
      begin += count;
      ++chunk;
    }
    pieces = std::move(cut);
    put_early_pieces_around(pieces);
    most = std::max(most, chunk);
  }
  return most;
}

}  // namespace lacuna::group

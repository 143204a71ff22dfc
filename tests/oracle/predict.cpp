#include "tests/oracle/predict.hpp"

#include <array>
#include <limits>

#include "tests/oracle/access.hpp"
#include "tests/oracle/estimate.hpp"

namespace lacuna::oracle {
namespace {

/// Rank and mass of tile j among the visible tiles of its row, and the row's largest p.
struct Standing {
  Band rank, mass;
  Band largest{-kInfinity, -kInfinity, -kInfinity};  ///< p of the row
};

Standing standing_of(const Prepared& x, const Row& row, int b, int h, int i, int j) {
  const auto width = [&](int tile) {
    const TileIndex t = facts_of(x, b, h, i, tile).tile;
    return t.k1 - t.k0;
  };
  Standing out;
  const Band& mine = row.estimate.p[static_cast<std::size_t>(j)];
  for (int other = 0; other < x.k_tiles; ++other) {
    const auto at = static_cast<std::size_t>(other);
    if (other == j || row.estimate.visible[at] == 0) continue;
    const Band& p = row.estimate.p[at];
    // Equal tiles compute equal bits; a sum over fewer tokens may round differently.
    const bool tie = p.value == mine.value && p.low == mine.low && p.high == mine.high &&
                     width(other) == width(j);
    const bool larger = p.value > mine.value || (p.value == mine.value && other < j);
    const bool certain = tie ? larger : p.low > mine.high;
    const bool possible = tie ? larger : p.high >= mine.low;
    out.rank.low += certain, out.rank.value += larger, out.rank.high += possible;
    out.mass.low += certain ? p.low : 0, out.mass.value += larger ? p.value : 0;
    out.mass.high += possible ? p.high : 0;
  }
  for (int other = 0; other < x.k_tiles; ++other) {
    const auto at = static_cast<std::size_t>(other);
    if (row.estimate.visible[at] == 0) continue;
    const Band& p = row.estimate.p[at];
    out.largest = {std::max(out.largest.low, p.low), std::max(out.largest.value, p.value),
                   std::max(out.largest.high, p.high)};
  }
  out.mass.low *= 1 - 1e-6, out.mass.high *= 1 + 1e-6;
  return out;
}

using Corner = std::array<double, 7>;

Verdict judge_keep(const Prepared& x, const TileFacts& nominal, const std::array<Band, 7>& bands) {
  TileFacts facts = nominal;
  const auto set = [&](const Corner& v) {
    facts.score = v[0], facts.p = v[1], facts.rank = static_cast<int>(v[2]);
    facts.mass_before = v[3], facts.similar_q = v[4], facts.similar_k = v[5], facts.p_max = v[6];
    return x.predictor->keep(facts);
  };
  Corner v{};
  for (std::size_t n = 0; n < v.size(); ++n) v[n] = bands[n].value;
  Verdict verdict{set(v), true};
  for (unsigned corner = 0; corner < 128 && verdict.stable; ++corner) {
    bool repeats = false;  // a band without width has one corner
    for (std::size_t n = 0; n < v.size(); ++n) {
      const bool high = (corner >> n & 1U) != 0;
      repeats = repeats || (high && bands[n].low == bands[n].high);
      v[n] = high ? bands[n].high : bands[n].low;
    }
    verdict.stable = repeats || set(v) == verdict.holds;
  }
  return verdict;
}

Verdict judge_tile(const Prepared& x, const Row& row, int b, int h, int i, int j) {
  const auto at = static_cast<std::size_t>(j);
  if (row.estimate.visible[at] == 0) return {false, true};
  TileFacts facts = facts_of(x, b, h, i, j);
  for (const std::uint8_t seen : row.estimate.visible) facts.visible += seen;
  Band score = row.estimate.score[at], p = row.estimate.p[at];
  Standing standing;
  if (x.predictor->estimate && x.predictor->uses_rank) standing = standing_of(x, row, b, h, i, j);
  if (row.shaken) {
    score = {-kInfinity, score.value, kInfinity}, p = {-kInfinity, p.value, kInfinity};
    standing.rank = {0, standing.rank.value, facts.visible - 1.0};
    standing.mass = {0, standing.mass.value, kInfinity};
    standing.largest = {-kInfinity, standing.largest.value, kInfinity};
  }
  return judge_keep(x, facts,
                    {score, p, standing.rank, standing.mass, row_similarity(x, b, h, i),
                     column_similarity(x, b, h, j), standing.largest});
}

/// The verdict on a tile with what the step before says of it.
Verdict after(const KeptRow& first, int j, const Verdict& own, bool joins) {
  const auto at = static_cast<std::size_t>(j);
  const bool kept = first.kept[at] != 0, stable = first.stable[at] != 0;
  if (!joins) return {own.holds, own.stable && stable};
  const bool is_certain = (kept && stable) || (own.holds && own.stable);
  return {kept || own.holds, is_certain || (stable && own.stable)};
}

/// Heads of one KV head keep what any of them keeps.
void unite_heads(const Problem& p, KeptTiles& tiles) {
  const auto cells =
      static_cast<std::size_t>(tiles.q_tiles) * static_cast<std::size_t>(tiles.k_tiles);
  const KeptTiles own = tiles;
  for (int b = 0; b < p.n_b; ++b)
    for (int h = 0; h < p.n_h; ++h)
      for (std::size_t cell = 0; cell < cells; ++cell) {
        bool any = false, any_stable = false, all_stable = true;
        for (int other = 0; other < p.n_h; ++other) {
          if (kv_head(p, other) != kv_head(p, h)) continue;
          const std::size_t at = flat_row(b, p.n_h, other, 1, 0) * cells + cell;
          any = any || own.kept[at] != 0;
          any_stable = any_stable || (own.kept[at] != 0 && own.stable[at] != 0);
          all_stable = all_stable && own.stable[at] != 0;
        }
        const std::size_t at = flat_row(b, p.n_h, h, 1, 0) * cells + cell;
        tiles.kept[at] = any ? 1 : 0, tiles.stable[at] = any_stable || all_stable ? 1 : 0;
      }
}

}  // namespace

KeptTiles oracle_kept(const Problem& p, const Predictor& predictor) {
  KeptTiles out;
  out.q_tiles = tiles_of(p.n_q, predictor.tile_q), out.k_tiles = tiles_of(p.n_k, predictor.tile_k);
  std::vector<WorkTile> rows;
  for (int row = 0; row < p.n_b * p.n_h * out.q_tiles; ++row) {
    const int head = row / out.q_tiles;
    rows.push_back({head / p.n_h, head % p.n_h, row % out.q_tiles});
  }
  for (const KeptRow& row : oracle_kept_rows(p, predictor, rows)) {
    out.kept.insert(out.kept.end(), row.kept.begin(), row.kept.end());
    out.stable.insert(out.stable.end(), row.stable.begin(), row.stable.end());
  }
  if (predictor.shared_heads) unite_heads(p, out);
  return out;
}

std::vector<KeptRow> oracle_kept_rows(const Problem& p, const Predictor& predictor,
                                      const std::vector<WorkTile>& rows) {
  std::vector<KeptRow> before;
  if (!predictor.before.empty()) before = oracle_kept_rows(p, predictor.before.front(), rows);
  const Prepared prepared = prepare(p, predictor);
  std::vector<KeptRow> out(rows.size());
  for_each_index(static_cast<int>(rows.size()), [&](int n) {
    const auto& [b, h, i] = rows[static_cast<std::size_t>(n)];
    const KeptRow* const first = before.empty() ? nullptr : &before[static_cast<std::size_t>(n)];
    const Row row = estimate_row(prepared, b, h, i, predictor.joins ? nullptr : first);
    KeptRow& to = out[static_cast<std::size_t>(n)];
    for (int j = 0; j < prepared.k_tiles; ++j) {
      Verdict verdict = judge_tile(prepared, row, b, h, i, j);
      if (first != nullptr) verdict = after(*first, j, verdict, predictor.joins);
      to.kept.push_back(verdict.holds ? 1 : 0), to.stable.push_back(verdict.stable ? 1 : 0);
    }
  });
  return out;
}

RowEstimate oracle_estimate(const Problem& problem, const Predictor& predictor, int b, int h,
                            int i) {
  return estimate_row(prepare(problem, predictor), b, h, i).estimate;
}

}  // namespace lacuna::oracle

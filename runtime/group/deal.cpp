#include "runtime/group/deal.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lacuna::group {
namespace {

/// A cut this close to the boundary between two heads, as a share of a rank's work, is moved there:
/// that saves a launch.
constexpr double kSnap = 0.01;

/// Cuts the heads so that each piece has one KV head, or all query heads of several.
void add_pieces(Range heads, Range q, const LaunchShape& shape, std::vector<Piece>& pieces) {
  if (heads.empty() || q.empty()) return;
  const std::int32_t group = shape.n_h / shape.n_h_kv;
  const std::int32_t first_whole = (heads.begin + group - 1) / group * group;
  const std::int32_t last_whole = heads.end / group * group;
  const auto add = [&](Range part) {
    if (!part.empty()) pieces.push_back({part, q});
  };
  if (first_whole > last_whole) return add(heads);
  add({heads.begin, first_whole});
  add({first_whole, last_whole});
  add({last_whole, heads.end});
}

Deal deal_shares(const std::vector<Share>& shares, const LaunchShape& shape,
                 const CutRules& rules) {
  Deal deal{Scheme::kGather, {}, ""};
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    std::vector<Piece>& pieces = deal.ranks.emplace_back();
    for (const Range& q : shares[rank].q) {
      if (q != Range{0, shape.n_q} && !rules.no_query_cut.empty())
        deal.refusal = rules.no_query_cut;
      if (q.begin % rules.unit != 0 && rules.reads_tiles && deal.refusal.empty()) {
        deal.refusal = "rank " + std::to_string(rank) + " has queries from " +
                       std::to_string(q.begin) + " on, in the middle of a tile of " +
                       std::to_string(rules.unit);
      }
      add_pieces(shares[rank].heads, q, shape, pieces);
    }
  }
  return deal;
}

/// Where the sum of `costs` is nearest to `share` of the whole.
std::size_t cut_at(const std::vector<double>& sums, double share) {
  const double target = sums.back() * share;
  const auto above = std::lower_bound(sums.begin(), sums.end(), target);
  if (above == sums.begin() || above == sums.end()) {
    return static_cast<std::size_t>(above - sums.begin());
  }
  const bool is_below = target - *(above - 1) < *above - target;
  return static_cast<std::size_t>(above - sums.begin()) - (is_below ? 1 : 0);
}

/// sums[n]: of the first n.
std::vector<double> running_sums(const std::vector<double>& costs) {
  std::vector<double> sums = {0};
  for (const double cost : costs) sums.push_back(sums.back() + cost);
  return sums;
}

/// Cuts a rank's queries into those that it holds itself, which are read and written in place, and
/// those of other ranks. A rank that holds stripes is not cut: there may be many of them.
std::vector<Range> parts_of(Range q, const Share& share, const CutRules& rules) {
  if (share.q.size() != 1) return {q};
  std::vector<Range> parts;
  for (const std::int32_t cut : {share.q.front().begin, share.q.front().end, q.end}) {
    const std::int32_t begin = parts.empty() ? q.begin : parts.back().end;
    const bool may_cut = cut == q.end || !rules.reads_tiles || cut % rules.unit == 0;
    if (may_cut && begin < cut && cut <= q.end) parts.push_back({begin, cut});
  }
  return parts;
}

Deal deal_rows(const std::vector<Share>& shares, const LaunchShape& shape, const CutRules& rules,
               const Work& work) {
  const std::size_t size = shares.size();
  Deal deal{Scheme::kRows, {}, rules.no_query_cut};
  std::vector<double> costs(static_cast<std::size_t>(work.units), 0);
  for (std::int32_t h = 0; h < work.heads; ++h) {
    for (std::int32_t u = 0; u < work.units; ++u)
      costs[static_cast<std::size_t>(u)] += work.cost(h, u);
  }
  const std::vector<double> sums = running_sums(costs);
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    const bool is_last = rank + 1 == size;
    const double share = static_cast<double>(rank + 1) / static_cast<double>(size);
    const std::size_t end = is_last ? costs.size() : std::max(begin, cut_at(sums, share));
    const Range q = {static_cast<std::int32_t>(begin) * rules.unit,
                     std::min(static_cast<std::int32_t>(end) * rules.unit, shape.n_q)};
    std::vector<Piece>& pieces = deal.ranks.emplace_back();
    for (const Range part : parts_of(q, shares[rank], rules))
      add_pieces({0, shape.n_h}, part, shape, pieces);
    begin = end;
  }
  return deal;
}

/// Blocks of heads that decide together, one after the other, each unit after unit.
struct Line {
  std::int32_t block_heads = 1;
  std::size_t units = 0;
  std::vector<double> sums;

  std::size_t length() const { return sums.size() - 1; }
};

Line line_of(const LaunchShape& shape, const CutRules& rules, const Work& work) {
  Line line;
  line.block_heads = rules.whole_kv_heads ? shape.n_h / shape.n_h_kv : 1;
  line.units = static_cast<std::size_t>(work.units);
  std::vector<double> costs;
  for (std::int32_t h = 0; h < work.heads; h += line.block_heads) {
    for (std::int32_t u = 0; u < work.units; ++u) {
      double cost = 0;
      for (std::int32_t of_block = 0; of_block < line.block_heads; ++of_block)
        cost += work.cost(h + of_block, u);
      costs.push_back(cost);
    }
  }
  line.sums = running_sums(costs);
  return line;
}

/// The nearest end of a block, if the rules want one or it is near enough.
std::size_t snap(std::size_t cut, const Line& line, const CutRules& rules, std::size_t size) {
  const std::size_t before = cut / line.units * line.units;
  const std::size_t after = std::min(before + line.units, line.length());
  const double to_before = line.sums[cut] - line.sums[before];
  const double to_after = line.sums[after] - line.sums[cut];
  const std::size_t nearest = to_before <= to_after ? before : after;
  const double limit = kSnap * line.sums.back() / static_cast<double>(size);
  const bool must = !rules.no_query_cut.empty();
  return must || std::min(to_before, to_after) <= limit ? nearest : cut;
}

void add_segment(std::size_t begin, std::size_t end, const Line& line, const LaunchShape& shape,
                 const CutRules& rules, std::vector<Piece>& pieces) {
  const auto add = [&](std::size_t first_block, std::size_t last_block, std::size_t first_unit,
                       std::size_t last_unit) {
    const auto heads = static_cast<std::size_t>(line.block_heads);
    const auto unit = static_cast<std::size_t>(rules.unit);
    add_pieces({static_cast<std::int32_t>(first_block * heads),
                static_cast<std::int32_t>(last_block * heads)},
               {static_cast<std::int32_t>(first_unit * unit),
                std::min(static_cast<std::int32_t>(last_unit * unit), shape.n_q)},
               shape, pieces);
  };
  const std::size_t first = begin / line.units, last = end / line.units;
  const std::size_t head = begin % line.units, tail = end % line.units;
  if (first == last) return add(first, first + 1, head, tail);
  if (head != 0) add(first, first + 1, head, line.units);
  add(head != 0 ? first + 1 : first, last, 0, line.units);
  if (tail != 0) add(last, last + 1, 0, tail);
}

Deal deal_heads(std::size_t size, const LaunchShape& shape, const CutRules& rules,
                const Work& work) {
  Deal deal{Scheme::kHeads, {}, ""};
  const Line line = line_of(shape, rules, work);
  if (line.length() == 0) {
    deal.ranks.resize(size);
    return deal;
  }
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    const bool is_last = rank + 1 == size;
    const double share = static_cast<double>(rank + 1) / static_cast<double>(size);
    std::size_t end = line.length();
    if (!is_last) end = std::max(begin, snap(cut_at(line.sums, share), line, rules, size));
    std::vector<Piece>& pieces = deal.ranks.emplace_back();
    if (begin < end) add_segment(begin, end, line, shape, rules, pieces);
    begin = end;
  }
  return deal;
}

}  // namespace

std::string_view name_of(Scheme scheme) {
  constexpr std::array<std::string_view, 3> kNames = {"gather", "rows", "heads"};
  return kNames[static_cast<std::size_t>(scheme)];
}

Deal deal_work(Scheme scheme, const std::vector<Share>& shares, const LaunchShape& shape,
               const CutRules& rules, const Work& work) {
  switch (scheme) {
    case Scheme::kGather:
      return deal_shares(shares, shape, rules);
    case Scheme::kRows:
      return deal_rows(shares, shape, rules, work);
    case Scheme::kHeads:
      break;
  }
  return deal_heads(shares.size(), shape, rules, work);
}

void mark_early(std::vector<Piece>& pieces, const Share& share, const LaunchShape& shape,
                const CutRules& rules, const Work& work) {
  if (rules.reads_all_keys || work.seen.empty()) return;
  const auto holds = [](const std::vector<Range>& held, Range tokens) {
    return tokens.empty() ||
           std::ranges::any_of(held, [&](const Range& range) { return range.contains(tokens); });
  };
  std::vector<Piece> cut;
  for (const Piece& piece : pieces) {
    std::int32_t end = piece.q.begin;
    if (share.heads.contains(piece.heads) &&
        share.heads_kv.contains(kv_heads_of(piece.heads, shape)) && holds(share.q, piece.q)) {
      for (std::int32_t u = end / rules.unit; end < piece.q.end; ++u) {
        if (!holds(share.k, work.seen[static_cast<std::size_t>(u)])) break;
        end = std::min((u + 1) * rules.unit, piece.q.end);
      }
    }
    if (end > piece.q.begin) cut.push_back({piece.heads, {piece.q.begin, end}, piece.chunk, true});
    if (end < piece.q.end) cut.push_back({piece.heads, {end, piece.q.end}, piece.chunk});
  }
  pieces = std::move(cut);
}

double overhead_of(const std::vector<Piece>& pieces, const Work& work, std::int32_t unit) {
  double units = 0;
  for (const Piece& piece : pieces)
    units += static_cast<double>(piece.heads.count()) * piece.q.count() / unit;
  return units * work.pairs_of_unit;
}

double pairs_of(const std::vector<Piece>& pieces, const Work& work, std::int32_t unit) {
  double pairs = 0;
  for (const Piece& piece : pieces) {
    for (std::int32_t h = piece.heads.begin; h < piece.heads.end; ++h) {
      const std::int32_t end = (piece.q.end + unit - 1) / unit;
      for (std::int32_t u = piece.q.begin / unit; u < end; ++u) {
        const Range whole = {u * unit, u * unit + unit};
        const double share =
            static_cast<double>(intersect(whole, piece.q).count()) / static_cast<double>(unit);
        pairs += work.at(h, u) * (u + 1 == work.units && share > 0 ? 1.0 : share);
      }
    }
  }
  return pairs;
}

}  // namespace lacuna::group

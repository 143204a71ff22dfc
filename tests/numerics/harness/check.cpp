// The two parts of a comparison: which tiles, then what came of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "tests/numerics/harness/harness.hpp"
#include "tests/oracle/access.hpp"
#include "tests/oracle/order.hpp"

namespace lacuna::numerics {
namespace {

constexpr double kSmallestNormal = std::numeric_limits<float>::min();
constexpr double kRowInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Tolerance tolerance_of(DType dtype, const oracle::Problem& computed, bool is_cuda) {
  // f32 exists on the CPU only; there the 16-bit types round nothing but the output.
  Tolerance allowed = {4e-3, 8e-3, is_cuda ? 1e-3 : 1e-4};
  if (dtype == DType::kF32) allowed = {1e-5, 1e-4, 1e-4};
  if (dtype == DType::kF16) allowed = {5e-4, 1e-3, is_cuda ? 1e-3 : 1e-4};
  // A mean over one row is no mean: where two keys share a row, weights rounded to bf16 alone bring
  // 2 of 1000 random rows of 64 channels above 4e-3, and the largest to 4.8e-3.
  const int rows = computed.n_b * computed.n_h * computed.n_q;
  allowed.rel_l1 *= 1 + 0.5 / std::max(rows, 1);
  // The tensor core keeps fewer bits of the sums of 8-bit products.
  if (computed.e4m3_weights)
    allowed.rel_l1 = 3 * std::max(allowed.rel_l1, 5e-4),
    allowed.rel_max = 3 * std::max(allowed.rel_max, 1e-3);
  return allowed;
}

Tolerance exact_tolerance_of(const oracle::Quantisation& quantisation) {
  if (quantisation.v_bits == 8) return {6e-2, 8e-2, 5e-2};
  return {2e-2, 3e-2, 5e-2};
}

OutputError compare_output(const Variant& variant, const oracle::Output& expected,
                           const Reported& got, double warp_band) {
  OutputError error;
  double sum = 0, sum_error = 0, largest = 0, largest_error = 0;
  const auto d = static_cast<std::size_t>(variant.problem.value_dim());
  for (std::size_t row = 0; row < expected.lse.size(); ++row) {
    if (expected.row_margin[row] < warp_band) continue;
    const auto same_class = [](double a, double b) {
      return std::isnan(a) == std::isnan(b) && std::isinf(a) == std::isinf(b);
    };
    if (!same_class(expected.lse[row], got.lse[row]) && error.mismatch.empty())
      error.mismatch = "lse of row " + std::to_string(row) + ": expected " +
                       std::to_string(expected.lse[row]) + ", got " + std::to_string(got.lse[row]);
    if (std::isfinite(expected.lse[row]) && std::isfinite(got.lse[row]))
      error.lse = std::max(error.lse, std::abs(expected.lse[row] - got.lse[row]) /
                                          std::max(1.0, std::abs(expected.lse[row])));
    for (std::size_t x = row * d; x < (row + 1) * d; ++x) {
      const double a = expected.o[x], b = got.o[x];
      const bool empty = expected.lse[row] == -kRowInfinity;
      if ((!same_class(a, b) || (empty && b != 0)) && error.mismatch.empty())
        error.mismatch = "o of row " + std::to_string(row) + ", channel " + std::to_string(x % d) +
                         ": expected " + std::to_string(a) + ", got " + std::to_string(b);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      // Below the smallest normal f32 there is nothing to be precise about; devices flush.
      const double beyond = std::abs(a - b) - expected.reach[x];
      const double difference = beyond < kSmallestNormal ? 0 : beyond;
      sum += std::abs(a), sum_error += difference;
      largest = std::max(largest, std::abs(a));
      largest_error = std::max(largest_error, difference);
    }
  }
  error.rel_l1 = sum > 0 ? sum_error / sum : sum_error;
  error.rel_max = largest > 0 ? largest_error / largest : largest_error;
  return error;
}

ExpectedTiles expected_tiles(const Variant& variant, const oracle::KeptTiles& kept) {
  const oracle::Problem p = ordered_problem(variant);
  const oracle::Tiling& t = variant.tiling;
  const int q_tiles = oracle::tiles_of(p.n_q, t.tile_q),
            k_tiles = oracle::tiles_of(p.n_k, t.tile_k);
  ExpectedTiles out;
  for (int row = 0; row < p.n_b * p.n_h * q_tiles; ++row)
    for (int j = 0; j < k_tiles; ++j) {
      const int head = row / q_tiles, i = row % q_tiles;
      const auto tile = oracle::tile_index(p, t.tile_q, t.tile_k, head / p.n_h, head % p.n_h, i, j);
      const std::size_t from =
          oracle::flat_row(0, 1, head, kept.q_tiles, tile.q0 / variant.predictor->tile_q) *
              static_cast<std::size_t>(kept.k_tiles) +
          static_cast<std::size_t>(tile.k0 / variant.predictor->tile_k);
      const bool seen = oracle::has_visible_pair(p, tile);
      out.visited.push_back(seen ? kept.kept[from] : 0);
      out.stable.push_back(seen ? kept.stable[from] : variant.has_loose_bounds ? 0 : 1);
    }
  return out;
}

namespace {

/// The tiles of a report that were visited, whatever the gate said then.
std::vector<std::uint8_t> visited_of(const std::vector<std::uint8_t>& tile_mask) {
  std::vector<std::uint8_t> visited = tile_mask;
  for (std::uint8_t& code : visited) code = code != 0;
  return visited;
}

/// Those of a report and all that have a visible pair.
std::vector<std::uint8_t> with_visible(const oracle::Problem& p, const oracle::Tiling& t,
                                       std::vector<std::uint8_t> visited) {
  const int q_tiles = oracle::tiles_of(p.n_q, t.tile_q),
            k_tiles = oracle::tiles_of(p.n_k, t.tile_k);
  for (std::size_t x = 0; x < visited.size(); ++x) {
    const int row = static_cast<int>(x) / k_tiles, head = row / q_tiles;
    visited[x] |= oracle::has_visible_pair(
        p, oracle::tile_index(p, t.tile_q, t.tile_k, head / p.n_h, head % p.n_h, row % q_tiles,
                              static_cast<int>(x) % k_tiles));
  }
  return visited;
}

/// Part 1 of a predictor: tiles that are kept. Afterwards the reported ones are taken as given.
std::string check_kept(const ExpectedTiles& expected, const Reported& got) {
  std::int64_t flips = 0;
  std::ostringstream text;
  const std::vector<std::uint8_t> visited = visited_of(got.tile_mask);
  if (visited.size() != expected.visited.size()) return "tile mask has the wrong size; ";
  for (std::size_t x = 0; x < visited.size(); ++x) {
    if (visited[x] == expected.visited[x] || expected.stable[x] == 0) continue;
    if (flips++ == 0)
      text << "tile " << x << ": expected " << (expected.visited[x] ? "kept" : "not kept") << "; ";
  }
  if (flips) text << flips << " kept tiles differ of " << visited.size() << "; ";
  return text.str();
}

/// Part 1 of gates. Tiles whose decision lies within `band` of its threshold may differ.
std::string check_gates(const oracle::TileDecisions& expected, const Variant& variant,
                        const Reported& got, double band) {
  std::ostringstream text;
  if (got.tile_mask.size() != expected.code.size()) return "tile mask has the wrong size";
  std::int64_t flips = 0, visited = 0, gated = 0;
  for (std::size_t x = 0; x < expected.code.size(); ++x) {
    visited += got.tile_mask[x] != 0, gated += got.tile_mask[x] == 2;
    if (got.tile_mask[x] == expected.code[x]) continue;
    const bool both_visited = got.tile_mask[x] != 0 && expected.code[x] != 0;
    if (both_visited && expected.margin[x] < band) continue;
    if (flips++ == 0)
      text << "tile " << x << ": expected " << int{expected.code[x]} << ", got "
           << int{got.tile_mask[x]} << " (margin " << expected.margin[x] << "); ";
  }
  if (flips) text << flips << " tiles differ of " << expected.code.size() << "; ";
  std::int64_t sums[3] = {0, 0, 0};
  for (std::size_t x = 0; x < got.counts.size(); ++x) sums[x % 3] += got.counts[x];
  // With lists, `visible` still counts the tiles the mask leaves visible; by loose bounds some
  // more.
  std::int64_t visible = expected.visible;
  const bool is_chosen = variant.predictor || !variant.tiling.listed.empty();
  if (variant.has_loose_bounds) visible = is_chosen ? std::max(sums[0], visible) : visited;
  if (sums[0] != visible || sums[1] != visited || sums[2] != gated)
    text << "counts: expected " << visible << " visible, " << visited << " visited, " << gated
         << " gated, got " << sums[0] << ", " << sums[1] << ", " << sums[2] << "; ";
  return text.str();
}

/// Part 2: the output under the reported mask.
std::string check_output(const oracle::Output& expected, const Variant& variant,
                         const Reported& got, double band, const Tolerance& allowed,
                         const char* what) {
  const OutputError error = compare_output(variant, expected, got, band);
  std::ostringstream text;
  text << error.mismatch;
  if (!(error.rel_l1 <= allowed.rel_l1))
    text << " rel_l1 " << error.rel_l1 << " > " << allowed.rel_l1;
  if (!(error.rel_max <= allowed.rel_max))
    text << " rel_max " << error.rel_max << " > " << allowed.rel_max;
  if (!(error.lse <= allowed.lse)) text << " lse " << error.lse << " > " << allowed.lse;
  return text.str().empty() ? "" : what + text.str() + "; ";
}

/// Inputs on which quantisation is meant to be good.
bool is_ordinary(Fill fill) {
  return fill == Fill::kNormal || fill == Fill::kUneven || fill == Fill::kClustered;
}

oracle::Output output_of(const oracle::Problem& problem, const Variant& variant,
                         const std::vector<std::uint8_t>& tile_mask) {
  auto output = oracle::oracle_attention(problem, variant.tiling, variant.gate, tile_mask);
  return variant.order.empty() ? output : restored_output(problem, output, variant.order);
}

}  // namespace

Expectation expectation_of(const Case& c, const Variant& variant,
                           const std::vector<std::uint8_t>& tile_mask, const Variant* decided_by) {
  Expectation expected;
  expected.tile_mask = tile_mask;
  Variant given = variant;
  if (variant.predictor) {
    const Variant& decision = decided_by ? *decided_by : variant;
    expected.kept =
        expected_tiles(variant, oracle_kept(ordered_problem(decision), *decision.predictor));
    given.tiling.listed = visited_of(tile_mask);
  }
  expected.problem = computed_problem(variant);
  if (variant.has_loose_bounds && !variant.predictor && variant.tiling.listed.empty())
    given.tiling.listed = with_visible(expected.problem, given.tiling, visited_of(tile_mask));
  expected.tiles = oracle::oracle_tiles(expected.problem, given.tiling, given.gate);
  expected.output = output_of(expected.problem, given, tile_mask);
  const bool quantised = variant.quantisation.qk_bits == 8 || variant.quantisation.v_bits == 8;
  if (quantised && is_ordinary(c.fill) && variant.knows_exact) {
    given.quantisation = {};
    expected.exact = output_of(computed_problem(given), given, tile_mask);
  }
  return expected;
}

std::string check_against(const Expectation& expected, const Case& c, const Variant& variant,
                          const Reported& got, bool is_cuda) {
  std::ostringstream text;
  if (got.padding_touched) text << "bytes between the rows of o were written; ";
  // Logits are exact products in f32; their rounding grows with their size.
  const double band = c.fill == Fill::kHuge ? 0.05 : 1e-3;
  // The reported tiles of a predictor are taken as given afterwards.
  if (expected.kept) text << check_kept(*expected.kept, got);
  text << check_gates(expected.tiles, variant, got, band);
  text << check_output(expected.output, variant, got, band,
                       tolerance_of(c.dtype, expected.problem, is_cuda), "output: ");
  if (expected.exact) {
    // Warps whose decision quantisation may turn are left out.
    text << check_output(*expected.exact, variant, got, 0.3,
                         exact_tolerance_of(variant.quantisation), "against exact arithmetic: ");
  }
  return text.str();
}

std::string check_variant(const Case& c, const Variant& variant, const Reported& got, bool is_cuda,
                          const Variant* decided_by) {
  if (!got.error.empty()) return got.error;
  const Expectation expected = expectation_of(c, variant, got.tile_mask, decided_by);
  return check_against(expected, c, variant, got, is_cuda);
}

std::string check_case(const Case& c, std::uint32_t seed) {
  TestKernel kernel(engine(), c);
  if (!kernel.error.empty()) return kernel.error;
  const Variant variant = make_variant(c, kernel.tile, seed);
  const Reported got = run_variant(engine(), kernel, c, variant);
  if (!got.error.empty()) return got.error;
  Expectation expected = expectation_of(c, variant, got.tile_mask);
  const std::string wrong = check_against(expected, c, variant, got, engine().is_cuda);
  TestEngine* const other = interpreter();
  if (other == nullptr) return wrong;
  TestKernel interpreted(*other, c);  // of the same plan, so with the same tiles
  const Reported second =
      interpreted.error.empty() ? run_variant(*other, interpreted, c, variant) : Reported{};
  const std::string failed = interpreted.error + second.error;
  if (!failed.empty()) return wrong + "interpreter: " + failed;
  if (second.tile_mask != got.tile_mask) expected = expectation_of(c, variant, second.tile_mask);
  const std::string also_wrong = check_against(expected, c, variant, second, other->is_cuda);
  return wrong + (also_wrong.empty() ? "" : "interpreter: " + also_wrong);
}

}  // namespace lacuna::numerics

// The real sample: layers of a language model, block-sparse by calibrated thresholds. The shipped
// 4k slices always, the full files where LACUNA_SAMPLES names their folder (their thresholds beside
// them or made by tools/dev/bsfa_thresholds.py). A few work tiles are compared with the oracle;
// the counts say the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "tests/numerics/harness/harness.hpp"
#include "tests/oracle/access.hpp"
#include "tools/io/safetensors.hpp"

namespace lacuna::numerics {
namespace {

namespace fs = std::filesystem;
using tools::Safetensors;

constexpr int kTileQ = 128, kTileK = 64, kKept = 16;

/// Samples (not their thresholds) of a folder.
std::vector<fs::path> samples_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing))
    if (entry.path().extension() == ".safetensors" &&
        entry.path().stem().string().find('.') == std::string::npos)
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

Safetensors load(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  Diagnostics diagnostics;
  auto file = tools::parse_safetensors(bytes.str(), diagnostics);
  if (!file) ADD_FAILURE() << render(diagnostics, {path.string(), ""});
  return file.value_or(Safetensors{});
}

std::vector<double> values_of(const Safetensors& file, const char* name) {
  const std::vector<float> values = tools::to_f32(file.tensors.at(name));
  return {values.begin(), values.end()};
}

struct Sample {
  Case c;
  Variant variant;
};

Sample open_sample(const fs::path& path) {
  const Safetensors file = load(path);
  const auto& q = file.tensors.at("q").shape;
  const auto& k = file.tensors.at("k").shape;
  const auto n = static_cast<int>(q[1]);
  Sample sample;
  sample.c = {"bsfa",
              DType::kBF16,
              static_cast<int>(q[2]),
              1,
              static_cast<int>(q[0]),
              static_cast<int>(k[0]),
              n,
              n,
              Fill::kNormal,
              false};
  oracle::Problem& p = sample.variant.problem;
  p.n_h = sample.c.n_h, p.n_h_kv = sample.c.n_h_kv, p.n_q = p.n_k = n, p.d = sample.c.d;
  p.scale = static_cast<double>(static_cast<float>(1 / std::sqrt(p.d)));
  sample.variant.tiling = {kTileQ, kTileK, true, {}};
  p.q = values_of(file, "q"), p.k = values_of(file, "k"), p.v = values_of(file, "v");
  const fs::path thresholds = path.parent_path() / (path.stem().string() + ".bsfa-k" +
                                                    std::to_string(kKept) + ".safetensors");
  sample.variant.params = {
      {"threshold", false, values_of(load(thresholds), "threshold"), {p.n_h, n / kTileQ}}};
  return sample;
}

/// One work tile of one head, as a problem of its own whose mask and threshold know where it
/// stands.
Variant work_tile_index(const Sample& sample, int h, int i) {
  const oracle::Problem& whole = sample.variant.problem;
  Variant row;
  oracle::Problem& p = row.problem;
  p.n_q = kTileQ, p.n_k = whole.n_k, p.d = whole.d, p.scale = whole.scale;
  p.k = whole.k, p.v = whole.v;
  const auto begin = static_cast<std::ptrdiff_t>(h * whole.n_q + i * kTileQ) * whole.d;
  p.q.assign(whole.q.begin() + begin, whole.q.begin() + begin + kTileQ * whole.d);
  const int q0 = i * kTileQ;
  p.mask = [q0](int q, int k, int, int) { return k <= q0 + q; };
  const double threshold =
      sample.variant.params[0].values[static_cast<std::size_t>(h * (whole.n_q / kTileQ) + i)];
  oracle::GateRule gate;
  gate.skips_exp = true;
  gate.skip = [=](double tile_max, double, const oracle::TileIndex& t) {
    return t.k1 < q0 && tile_max < threshold;
  };
  gate.margin = [=](double tile_max, double, const oracle::TileIndex& t) {
    return t.k1 >= q0 ? std::numeric_limits<double>::infinity() : std::abs(tile_max - threshold);
  };
  row.gate = gate;
  row.tiling = {kTileQ, kTileK, true, {}};
  return row;
}

template <class T>
std::vector<T> slice(const std::vector<T>& all, std::size_t row, std::size_t length) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * length);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

Reported row_of_report(const Variant& v, const Reported& got, int h, int i) {
  const oracle::Problem& p = v.problem;
  const oracle::Tiling& t = v.tiling;
  const auto q_tiles = static_cast<std::size_t>(oracle::tiles_of(p.n_q, t.tile_q));
  const std::size_t row = static_cast<std::size_t>(h) * q_tiles + static_cast<std::size_t>(i);
  Reported part;
  part.o = slice(got.o, row, static_cast<std::size_t>(t.tile_q * p.d));
  part.lse = slice(got.lse, row, static_cast<std::size_t>(t.tile_q));
  part.counts = slice(got.counts, row, 3);
  part.tile_mask =
      slice(got.tile_mask, row, static_cast<std::size_t>(oracle::tiles_of(p.n_k, t.tile_k)));
  return part;
}

/// A work tile of a variant's computed problem, as a problem of its own whose mask, score and
/// gate know where it stands.
Variant cut_row(const Variant& whole, const oracle::Problem& computed, int h, int i) {
  Variant row;
  const int q0 = i * whole.tiling.tile_q;
  oracle::Problem& p = row.problem;
  p = computed;
  p.n_h = p.n_h_kv = 1, p.n_q = std::min(whole.tiling.tile_q, computed.n_q - q0);
  const auto width = static_cast<std::size_t>(p.d), keys = static_cast<std::size_t>(p.n_k);
  const auto head = static_cast<std::size_t>(oracle::kv_head(computed, h));
  const std::size_t first = oracle::query_index(computed, 0, h, q0);
  const auto cut = [](std::vector<double>& x, std::size_t begin, std::size_t count) {
    if (x.empty()) return;
    const auto from = x.begin() + static_cast<std::ptrdiff_t>(begin);
    x = std::vector<double>(from, from + static_cast<std::ptrdiff_t>(count));
  };
  const auto rows = static_cast<std::size_t>(p.n_q);
  cut(p.q, first * width, rows * width), cut(p.row_bias, first, rows);
  cut(p.k, head * keys * width, keys * width), cut(p.v, head * keys * width, keys * width);
  cut(p.column_bias, static_cast<std::size_t>(h) * keys, keys);
  if (whole.problem.mask)
    p.mask = [=, &whole](int q, int k, int, int) { return whole.problem.mask(q + q0, k, h, 0); };
  row.tiling = whole.tiling;
  if (!whole.gate) return row;
  row.gate = whole.gate;
  const auto placed = [=](oracle::TileIndex t) {
    t.h = h, t.i += i, t.q0 += q0, t.q1 += q0;
    return t;
  };
  row.gate->skip = [=, &whole](double tile_max, double gap, const oracle::TileIndex& t) {
    return whole.gate->skip(tile_max, gap, placed(t));
  };
  row.gate->margin = [=, &whole](double tile_max, double gap, const oracle::TileIndex& t) {
    return whole.gate->margin(tile_max, gap, placed(t));
  };
  return row;
}

/// Tiles of a report's row that contradict the predictor, and are no matter of rounding.
int wrong_tiles(const Variant& v, const oracle::WorkTile& row, const oracle::KeptRow& kept,
                const Reported& part) {
  int wrong = 0;
  for (int j = 0; j < static_cast<int>(part.tile_mask.size()); ++j) {
    const auto tile = oracle::tile_index(v.problem, v.tiling.tile_q, v.tiling.tile_k, 0, row.h,
                                         row.i * v.predictor->tile_q / v.tiling.tile_q, j);
    const auto from = static_cast<std::size_t>(tile.k0 / v.predictor->tile_k);
    const bool expected = kept.kept[from] != 0 && oracle::has_visible_pair(v.problem, tile);
    const bool got = part.tile_mask[static_cast<std::size_t>(j)] != 0;
    wrong += got != expected && kept.stable[from] != 0;
  }
  return wrong;
}

/// Every predicted spec on the real queries, keys and values: kept tiles and outputs of the first,
/// a middle and the last work tile.
void check_predicted(TestEngine& engine, const Sample& sample, const std::string& name) {
  SCOPED_TRACE(name);
  Case c = sample.c;
  c.variant = name;
  TestKernel kernel(engine, c);
  ASSERT_EQ(kernel.error, "");
  Variant v = make_variant(c, kernel.tile, 3);
  v.problem.q = sample.variant.problem.q, v.problem.k = sample.variant.problem.k;
  v.problem.v = sample.variant.problem.v;
  const Reported got = run_variant(engine, kernel, c, v);
  ASSERT_EQ(got.error, "");
  const int q_tiles = oracle::tiles_of(c.n_q, v.predictor->tile_q);
  const std::vector<oracle::WorkTile> rows = {{0, 0, 0}, {0, 1, q_tiles / 2}, {0, 3, q_tiles - 1}};
  const auto kept = oracle::oracle_kept_rows(v.problem, *v.predictor, rows);
  const oracle::Problem computed = computed_problem(v);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const int h = rows[n].h, i = rows[n].i * v.predictor->tile_q / v.tiling.tile_q;
    Reported part = row_of_report(v, got, h, i);
    EXPECT_EQ(wrong_tiles(v, rows[n], kept[n], part), 0) << "row " << i;
    Variant row = cut_row(v, computed, h, i);
    row.tiling.listed = part.tile_mask;
    for (std::uint8_t& code : row.tiling.listed) code = code != 0;
    EXPECT_EQ(check_variant(c, row, part, engine.is_cuda), "") << "row " << i;
  }
}

void check_sample(TestEngine& engine, const fs::path& path) {
  SCOPED_TRACE(path.filename().string());
  const Sample sample = open_sample(path);
  TestKernel kernel(engine, sample.c);
  ASSERT_EQ(kernel.error, "");
  ASSERT_EQ(kernel.tile.q, kTileQ);
  ASSERT_EQ(kernel.tile.k, kTileK);
  const Reported got = run_variant(engine, kernel, sample.c, sample.variant);
  ASSERT_EQ(got.error, "");
  const int q_tiles = sample.c.n_q / kTileQ;
  for (int h = 0; h < sample.c.n_h; ++h)
    for (const int i : {0, 1, q_tiles / 3, q_tiles - 1})
      EXPECT_EQ(check_variant(sample.c, work_tile_index(sample, h, i),
                              row_of_report(sample.variant, got, h, i), engine.is_cuda),
                "")
          << "head " << h << ", work tile " << i;
  // What the thresholds were made for: every row keeps 16 tiles before its diagonal, or all it has.
  for (std::size_t row = 0; row < got.counts.size() / 3; ++row) {
    const int i = static_cast<int>(row) % q_tiles, before = i * kTileQ / kTileK;
    EXPECT_NEAR(got.counts[3 * row + 1] - got.counts[3 * row + 2] - 2, std::min(kKept, before), 1)
        << "row " << row;
  }
}

TEST(Sample, ShippedSlices) {
  TestEngine engine;
  const auto paths = samples_in(fs::path(source_dir()) / "tests/data");
  ASSERT_EQ(paths.size(), 2U);
  for (const fs::path& path : paths) check_sample(engine, path);
}

TEST(Sample, PredictorsOnAShippedSlice) {
  TestEngine engine;
  const auto paths = samples_in(fs::path(source_dir()) / "tests/data");
  ASSERT_FALSE(paths.empty());
  const Sample sample = open_sample(paths.front());
  for (const char* name : {"sparge", "sale", "xattention", "topk-blocks", "fg-attn-pooled",
                           "minference-vertical-slash", "similar-mass"})
    check_predicted(engine, sample, name);
}

TEST(Sample, FullFiles) {
  const char* folder = std::getenv("LACUNA_SAMPLES");
  if (folder == nullptr) GTEST_SKIP() << "LACUNA_SAMPLES names no folder with the full samples";
  const auto paths = samples_in(folder);
  ASSERT_FALSE(paths.empty()) << folder;
  TestEngine engine;
  for (const fs::path& path : paths) check_sample(engine, path);
}

}  // namespace
}  // namespace lacuna::numerics

// Batches of sequences through the C ABI, on the device under test.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "tests/numerics/harness/graphs.hpp"
#include "tests/numerics/harness/sequence_kernels.hpp"
#include "tests/tier.hpp"

namespace lacuna::numerics {
namespace {

/// Lengths, layouts and values that nobody chose.
TEST(Sequences, AnyBatchAgreesWithTheOracle) {
  // For long runs: how many batches, drawn from which seed; then with sequences of up to 4097 keys.
  const char *runs_text = std::getenv("LACUNA_TEST_BATCHES"),
             *seed_text = std::getenv("LACUNA_TEST_SEED");
  std::mt19937 random(seed_text != nullptr ? static_cast<unsigned>(std::atoi(seed_text)) : 5U);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const int runs = runs_text != nullptr ? std::atoi(runs_text) : test::by_tier(60, 16);
  const int longest = runs_text != nullptr ? 4097 : 300;
  for (int n = 0; n < runs; ++n) {
    SequenceCase c;
    const auto& variants = sequence_variants();
    c.variant = variants[static_cast<std::size_t>(pick(0, static_cast<int>(variants.size()) - 1))];
    c.dtype = pick(0, 3) == 0 ? DType::kF16 : DType::kBF16;
    c.d = std::array{64, 96, 128}[static_cast<std::size_t>(pick(0, 2))];
    c.n_h_kv = pick(1, 2);
    c.n_h = c.n_h_kv * pick(1, 8);
    c.page_tokens = pick(0, 1) == 0 ? 0 : 16 << pick(0, 3);
    c.heads_inside = pick(0, 1) == 1;
    c.spare = pick(0, 1) * pick(0, 40);
    const int count = pick(1, 6), most = pick(0, 3) == 0 ? longest : 160;
    for (int s = 0; s < count; ++s) {
      const int n_k = pick(0, 5) == 0 ? 0 : pick(1, most);
      const int few = pick(0, 1) * pick(0, 20);
      c.lengths.emplace_back(pick(0, 2) == 0 ? few : std::min(pick(0, most), 300), n_k);
    }
    SCOPED_TRACE(testing::Message() << "run " << n << ": " << c.text());
    SequenceBatch batch(engine().is_cuda, c.fitting_order(), static_cast<std::uint32_t>(random()));
    EXPECT_EQ(launch(batch), "");
  }
}

/// Head dims that are no multiples of 64. Of a few queries of many keys, several blocks share the
/// keys and merge their results.
TEST(Sequences, RowsNeedNotBeWholePanels) {
  std::uint32_t seed = 0;
  for (const int d : {80, 96, 112}) {
    for (const char* variant : {"dense", "flash-decoding", "window"}) {
      SequenceCase c;
      c.variant = variant, c.d = d, c.n_h = 8, c.n_h_kv = 2;
      c.page_tokens = seed % 2 == 0 ? 0 : 32;
      c.lengths = {{3, 1500}, {130, 130}, {0, 5}, {40, 0}, {200, 70}};
      SCOPED_TRACE(c.text());
      SequenceBatch batch(engine().is_cuda, c, ++seed);
      EXPECT_EQ(launch(batch), "");
    }
  }
}

/// Rows of V that are shorter or longer than those of K, also of parts of panels, as numbers and as
/// codes. One query of many keys is split, by the device or into a fixed number of items.
TEST(Sequences, ValuesMayBeOfAnotherWidthThanKeys) {
  struct Widths {
    int d, d_v;
  };
  constexpr Widths kWidths[] = {{192, 128}, {64, 128}, {128, 64}, {256, 128}, {80, 112}, {96, 256}};
  std::size_t turn = 0;
  for (const char* variant : {"dense", "flash-decoding", "window", "sink", "alibi"}) {
    for (std::size_t n = 0; n < std::size(kWidths); ++n) {
      const bool is_turn = n == turn % std::size(kWidths) || n == (turn + 1) % std::size(kWidths);
      if (!test::by_tier(true, is_turn)) continue;
      for (const bool e4m3 : {false, true}) {
        SequenceCase c;
        c.variant = variant, c.d = kWidths[n].d, c.d_v = kWidths[n].d_v, c.e4m3 = e4m3;
        if (e4m3 && (c.d % 64 != 0 || c.d_v % 64 != 0)) continue;  // whole panels of codes
        c.dtype = n % 2 == 0 ? DType::kBF16 : DType::kF16;
        c.n_h = 8, c.n_h_kv = n % 3 == 0 ? 8 : 2, c.heads_inside = (n + turn) % 2 == 1;
        c.page_tokens = (turn + n) % 2 == 0 ? 0 : 32, c.spare = n % 2 == 0 ? 0 : 50;
        c.lengths = {{1, 1500}, {130, 130}, {0, 5}, {40, 0}, {200, 70}, {3, 300}};
        SCOPED_TRACE(c.text());
        SequenceBatch batch(engine().is_cuda, c, static_cast<std::uint32_t>(40 + turn * 10 + n));
        EXPECT_EQ(launch(batch), "");
      }
    }
    ++turn;
  }
}

/// Keys and values in 8 bits, with scales of pages and heads.
TEST(Sequences, KeysAndValuesMayBeE4m3) {
  std::mt19937 random(11);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int turn = 0;
  for (const char* variant :
       {"dense", "flash-decoding", "window", "skip-softmax", "topk-blocks", "quest", "sparge-topk",
        "weighted-branches", "pooled-branches", "ordered-branches"}) {
    for (const int page_tokens : {0, 16, 64}) {
      SequenceCase c;
      c.variant = variant, c.page_tokens = page_tokens, c.e4m3 = true;
      c.d = test::by_tier(turn % 2 == 0 ? 128 : 64, 64);
      c.dtype = turn % 3 == 0 ? DType::kF16 : DType::kBF16;
      c.n_h = 2 * pick(1, 4), c.heads_inside = turn++ % 2 == 1;
      c.tile = kernel_for(c).tile;
      for (int s = 0; s < 4; ++s) c.lengths.emplace_back(pick(0, 1) * pick(0, 150), pick(0, 300));
      c.lengths.emplace_back(1, 129);
      SCOPED_TRACE(c.text());
      SequenceBatch batch(engine().is_cuda, c.fitting_order(),
                          static_cast<std::uint32_t>(random()));
      EXPECT_EQ(launch(batch), "");
    }
  }
}

/// The same with tiles of each sequence's own: what a predictor keeps and a gate leaves out.
TEST(Sequences, TilesOfAnyBatchAgreeWithTheOracle) {
  const char *runs_text = std::getenv("LACUNA_TEST_BATCHES"),
             *seed_text = std::getenv("LACUNA_TEST_SEED");
  std::mt19937 random(seed_text != nullptr ? static_cast<unsigned>(std::atoi(seed_text)) : 6U);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto& variants = tiled_sequence_variants();
  const int count = static_cast<int>(variants.size());
  const int runs = runs_text != nullptr ? std::atoi(runs_text) : test::by_tier(4 * count, count);
  for (int n = 0; n < runs; ++n) {
    SequenceCase c;
    c.variant = variants[static_cast<std::size_t>(n % count)];
    c.n_h_kv = pick(1, 2);
    c.n_h = c.n_h_kv * (runs_text != nullptr ? pick(1, 8) : pick(1, 3));
    c.page_tokens = pick(0, 1) == 0 ? 0 : 16 << pick(0, 3);
    c.heads_inside = pick(0, 1) == 1;
    c.spare = pick(0, 1) * pick(0, 300);
    c.fill = pick(0, 1) == 0 ? Fill::kNormal : Fill::kClustered;
    c.tile = kernel_for(c).tile;
    const int sequences = pick(1, 5), most = pick(0, 2) == 0 ? 700 : 250;
    for (int s = 0; s < sequences; ++s) {
      const int n_k = pick(0, 6) == 0 ? 0 : pick(1, most);
      c.lengths.emplace_back(pick(0, 1) == 0 ? pick(0, 8) : std::min(pick(0, most), 300), n_k);
    }
    SCOPED_TRACE(testing::Message() << "run " << n << ": " << c.text());
    SequenceBatch batch(engine().is_cuda, c.fitting_order(), static_cast<std::uint32_t>(random()));
    EXPECT_EQ(launch(batch), "");
  }
}

/// Several attends for each sequence: over its tokens, its means, a band of its rows.
TEST(Sequences, BranchesOfAnyBatchAgreeWithTheOracle) {
  std::mt19937 random(12);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  std::vector<SequenceCase> cases;
  for (const std::string& variant : branch_sequence_variants()) {
    for (const int page_tokens : {0, 16, 64}) {
      const std::size_t turn = cases.size();
      SequenceCase& c = cases.emplace_back();
      c.variant = variant, c.page_tokens = page_tokens;
      c.d = variant == "differential" ? 128 : 64;
      c.dtype = turn % 3 == 0 ? DType::kF16 : DType::kBF16;
      c.n_h_kv = pick(1, 2), c.n_h = c.n_h_kv * pick(1, 3), c.heads_inside = turn % 2 == 1;
      c.spare = pick(0, 1) * pick(0, 300);
      for (int s = 0; s < 3; ++s) c.lengths.emplace_back(pick(1, 150), pick(1, 400));
      c.lengths.emplace_back(1, 129);
      if (variant != "nsa") {
        c.lengths.emplace_back(0, 50);
        c.lengths.emplace_back(30, 0);
      }
    }
  }
  compile_ahead(cases);
  for (const SequenceCase& c : cases) {
    SCOPED_TRACE(c.text());
    SequenceBatch batch(engine().is_cuda, c.fitting_order(), static_cast<std::uint32_t>(random()));
    EXPECT_EQ(launch(batch), "");
    batch.poison();  // a second launch finds the sums of the first
    EXPECT_EQ(launch(batch), "");
  }
}

/// A branch reports tiles of each sequence, laid out for the longest.
TEST(Sequences, BranchesReportTilesOfEachSequence) {
  SequenceCase c;
  c.variant = "nsa", c.n_h = 2, c.n_h_kv = 1, c.page_tokens = 32, c.spare = 70;
  c.lengths = {{90, 300}, {150, 150}, {3, 257}};
  SequenceBatch batch(engine().is_cuda, c, 4);
  lacuna_kernel* kernel = kernel_for(c).kernel;
  lacuna_branch_args report{};
  report.struct_size = sizeof report, report.name = "selected";
  std::int32_t tile_q = 1, tile_k = 1;
  ASSERT_EQ(lacuna_branch_tile(kernel, "selected", &tile_q, &tile_k), LACUNA_OK);
  const auto tiles = [](int tokens, int tile) { return (tokens + tile - 1) / tile; };
  const int most_q = tiles(batch.sequences.max_n_q, tile_q),
            most_k = tiles(batch.sequences.max_n_k, tile_k);
  Tensor tile_mask = batch.tensors.poisoned_u8({3, c.n_h, most_q, most_k});
  report.tile_mask = tile_mask.view();
  const lacuna_branch_args* all[] = {&report};
  batch.args.branches = all, batch.args.branches_count = 1;
  EXPECT_EQ(launch(batch), "");
  const std::vector<std::uint8_t> got = batch.tensors.download_u8(tile_mask);
  for (std::size_t b = 0; b < c.lengths.size(); ++b) {
    const auto& [n_q, n_k] = c.lengths[b];
    const oracle::Problem& problem = batch.variants[b].problem;
    for (int row = 0; row < c.n_h * most_q; ++row) {
      int visited = 0;
      for (int j = 0; j < most_k; ++j) {
        const bool is_visited =
            got[(b * static_cast<std::size_t>(c.n_h * most_q) + static_cast<std::size_t>(row)) *
                    static_cast<std::size_t>(most_k) +
                static_cast<std::size_t>(j)] != 0;
        visited += is_visited ? 1 : 0;
        const int q1 = std::min((row % most_q + 1) * tile_q, n_q) - 1;
        if (is_visited) {
          EXPECT_LT(row % most_q, tiles(n_q, tile_q)) << "sequence " << b;
          EXPECT_TRUE(j * tile_k <= q1 + problem.n_k - problem.n_q) << "sequence " << b;
        }
      }
      // The first block always counts.
      if (row % most_q < tiles(n_q, tile_q)) {
        EXPECT_GT(visited, 0) << "sequence " << b << " row " << row;
      }
    }
  }
}

/// A captured launch serves other lengths, starts and pages: those that are there when it runs.
TEST(Sequences, ReplayFromAGraphWithOtherLengths) {
  REQUIRE_GPU();
  const Graphs graphs;
  const auto device = open_gpu();
  ASSERT_TRUE(device);
  const ContextScope current(*device);
  ASSERT_EQ(current.result(), kCudaSuccess);
  std::mt19937 random(9);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  std::vector<std::string> variants = sequence_variants();
  variants.insert(variants.end(), tiled_sequence_variants().begin(),
                  tiled_sequence_variants().end());
  variants.insert(variants.end(), branch_sequence_variants().begin(),
                  branch_sequence_variants().end());
  std::vector<SequenceCase> cases;
  constexpr int kPageTokens[] = {0, 16, 64};
  for (std::size_t v = 0; v < variants.size(); ++v) {
    for (std::size_t n = 0; n < std::size(kPageTokens); ++n) {
      if (!test::by_tier(true, n == v % std::size(kPageTokens))) continue;
      SequenceCase& c = cases.emplace_back();
      c.variant = variants[v], c.d = 128, c.n_h = 8, c.page_tokens = kPageTokens[n], c.room = 700;
    }
  }
  compile_ahead(cases);
  for (SequenceCase& c : cases) {
    const std::string& variant = c.variant;
    c.tile = kernel_for(c).tile;
    const auto draw_lengths = [&] {
      c.lengths.clear();
      const int least = variant == "nsa" ? 1 : 0;  // whose predictor is asked for each
      for (int s = 0; s < 5; ++s)
        c.lengths.emplace_back(std::max(pick(0, 2) * pick(0, 100), least), pick(least, 700));
      c = c.fitting_order();
    };
    draw_lengths();
    SCOPED_TRACE(c.text());
    SequenceBatch batch(true, c, static_cast<std::uint32_t>(random()));
    lacuna_kernel* kernel = kernel_for(c).kernel;
    ASSERT_EQ(provide(batch, kernel), "");
    void* const executable = graphs.capture(batch.args.stream, [&] {
      EXPECT_EQ(lacuna_launch(kernel, &batch.args), LACUNA_OK) << lacuna_last_error();
    });
    ASSERT_NE(executable, nullptr);
    for (int round = 0; round < 3; ++round) {
      draw_lengths();
      const SequenceBatch fresh(true, c, static_cast<std::uint32_t>(random()));
      batch.take(fresh);
      batch.poison();
      ASSERT_EQ(graphs.launch(executable, batch.args.stream), 0);
      EXPECT_EQ(batch.check(true), "") << c.text();
    }
  }
}

/// What a host gets wrong is said by name.
TEST(Sequences, ArgumentsThatDoNotFitAreRefused) {
  SequenceCase c;
  c.variant = "dense", c.page_tokens = 16, c.lengths = {{3, 20}, {1, 40}};
  const auto refusal = [&](auto change) {
    SequenceBatch batch(engine().is_cuda, c, 3);
    change(batch);
    return launch(batch);
  };
  EXPECT_NE(refusal([](SequenceBatch& b) { b.args.sequences = nullptr; }).find("sequences"),
            std::string::npos);
  EXPECT_NE(refusal([](SequenceBatch& b) { b.sequences.pages = nullptr; }).find("pages"),
            std::string::npos);
  EXPECT_NE(refusal([](SequenceBatch& b) {
              b.sequences.k_begin = b.k_begin.view();
            }).find("keys lie in pages"),
            std::string::npos);
  EXPECT_NE(refusal([](SequenceBatch& b) { b.sequences.max_n_k = 4000; }).find("max_pages"),
            std::string::npos);
}

}  // namespace
}  // namespace lacuna::numerics

// The search space: what a spec leaves open, what decides its meaning, what the compiler refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/tune/space.hpp"
#include "tools/tune/cost_model.hpp"

namespace lacuna::tune {
namespace {

SpecDocument document_with(const std::string& fields) {
  Diagnostics found;
  SpecDocument document =
      read_spec({"t.json", R"({"version": 1, "name": "t")" + fields + "}"}, found);
  EXPECT_FALSE(found.has_errors()) << render(found, document.source, false);
  return document;
}

Machine cpu(int processors = 4, int cores = 4) { return {*find_target("cpu"), processors, cores}; }
Machine gpu(const char* name = "sm_90a") { return {*find_target(name), 132, 132}; }

constexpr LaunchShape kManyRows{1, 32, 8, 8192, 8192}, kFewRows{1, 8, 8, 1, 131072};

Space space_of(const std::string& fields, const Machine& machine, int threads = 0,
               const LaunchShape& shape = kManyRows) {
  Diagnostics found;
  Space space = search_space(document_with(fields), {}, machine, threads, shape, found);
  EXPECT_FALSE(found.has_errors());
  return space;
}

std::vector<std::string> fixed_of(const std::string& fields, const Machine& machine,
                                  const LaunchShape& shape = kManyRows) {
  Diagnostics found;
  const SpecDocument document = document_with(fields);
  return fixed_fields(document, make_plan(document, {}, machine.target, found), machine, 0, shape);
}

std::set<int> splits_of(const Space& space) {
  std::set<int> splits;
  for (const Candidate& candidate : space.candidates) splits.insert(candidate.config.split_kv);
  return splits;
}

std::set<std::string> names(const Space& space) {
  std::set<std::string> all;
  for (const Candidate& candidate : space.candidates) all.insert(print_config(candidate.config));
  return all;
}

const std::string kGate =
    R"(, "params": {"t": {"shape": "scalar", "default": -5, "doc": "d"}},
       "gate": {"scope": "tile", "skip": "gap < t", "skips": ["pv"]})";

TEST(TuneConfig, TextsAreReadBack) {
  for (const Config& config :
       {Config{128, 64, 2, TileOrder::kDescending, 0},
        Config{128, 64, 2, TileOrder::kAscending, 0, 8},
        Config{128, 64, 2, TileOrder::kAscending, 0, 2, QueryPlace::kSharedMemory},
        Config{16, 256, 0, TileOrder::kAscending, 3}})
    EXPECT_EQ(parse_config(print_config(config)), config);
  EXPECT_EQ(print_config({128, 64, 0, TileOrder::kAscending, 2}), "q128 k64 ascending threads2");
  EXPECT_EQ(print_config({128, 64, 2, TileOrder::kAscending, 0, 8}),
            "q128 k64 ascending stages2 split8");
  EXPECT_EQ(print_config({128, 64, 2, TileOrder::kAscending, 0, 1, QueryPlace::kSharedMemory}),
            "q128 k64 ascending stages2 shared_memory");
  for (const char* text : {"", "q128", "q128 k64 sideways", "q0 k64", "q128 kk64", "q128  k64"})
    EXPECT_FALSE(parse_config(text)) << text;
}

TEST(TuneSpace, TheFirstIsWhatIsUsedWithoutTuning) {
  for (const Machine& machine : {cpu(), gpu()}) {
    const SpecDocument document = document_with("");
    Diagnostics found;
    const Space space = search_space(document, {}, machine, 0, kManyRows, found);
    const Plan usual = make_plan(document, {}, machine.target, found);
    ASSERT_GT(space.candidates.size(), 20u);
    EXPECT_EQ(space.candidates.front().config,
              config_of(usual, machine.target.kind == TargetKind::kCpu ? 4 : 0));
    for (std::size_t n = 0; n < space.candidates.size(); ++n)
      EXPECT_EQ(space.candidates[n].id, static_cast<int>(n));
    EXPECT_EQ(names(space).size(), space.candidates.size()) << "no point twice";
  }
}

TEST(TuneSpace, EveryPointIsOneThatTheCompilerTakes) {
  const SpecDocument document = document_with("");
  Diagnostics found;
  const Space space = search_space(document, {}, gpu("sm_86"), 0, kFewRows, found);
  for (const Candidate& candidate : space.candidates) {
    SpecDocument written = document;
    written.spec = fixed_spec(document.spec, candidate.config);
    Diagnostics errors;
    const Plan plan = make_plan(written, {}, *find_target("sm_86"), errors);
    EXPECT_FALSE(errors.has_errors()) << print_config(candidate.config);
    EXPECT_EQ(config_of(plan, 0), candidate.config);
  }
  const auto refused = std::ranges::find(space.refused, Config{256, 256, 4}, &Refused::config);
  ASSERT_NE(refused, space.refused.end());
  EXPECT_EQ(refused->reason,
            "tile 256x256 with 4 stages at head_dim 128 needs 589824 bytes of shared memory, "
            "sm_86 has 101376 for a block");
}

TEST(TuneSpace, AGateKeepsItsTilesAndItsOrder) {
  const Space space = space_of(kGate, gpu());
  for (const Candidate& candidate : space.candidates) {
    EXPECT_EQ(candidate.config.tile_q, 128);
    EXPECT_EQ(candidate.config.tile_k, 64);
    EXPECT_EQ(candidate.config.order, TileOrder::kAscending);
  }
  EXPECT_EQ(space.candidates.size(), 5u) << "stages are open, and with two of them queries";
  EXPECT_EQ(fixed_of(kGate, gpu(), kFewRows),
            (std::vector<std::string>{"tile.q (the gate judges tiles of it)",
                                      "tile.k (the gate judges tiles of it)",
                                      "tile.order (the gate depends on it)",
                                      "tile.split_kv (the gate depends on the tiles before)"}));
}

TEST(TuneSpace, AListIsTheAuthorsWord) {
  const std::string list = kGate + R"(, "tile": {"q": [128, 64], "k": 64, "stages": 2,
      "queries": "registers"})";
  EXPECT_EQ(names(space_of(list, gpu())),
            (std::set<std::string>{"q128 k64 ascending stages2", "q64 k64 ascending stages2"}));
}

TEST(TuneSpace, WarpsAreRowsOfATile) {
  const std::string rest = R"("k": 64, "stages": 2, "order": "ascending"})";
  EXPECT_EQ(names(space_of(R"(, "tile": {"warps": 4, )" + rest, gpu("sm_80"))),
            (std::set<std::string>{"q64 k64 ascending stages2"}));
  EXPECT_EQ(names(space_of(R"(, "tile": {"warps": [4, 8], )" + rest, gpu("sm_80"))),
            (std::set<std::string>{"q64 k64 ascending stages2", "q128 k64 ascending stages2"}));
  const std::string warps = R"(, "tile": {"warps": 4})";
  EXPECT_EQ(fixed_of(warps, cpu()), std::vector<std::string>{"tile.q (written)"});
  Diagnostics found;
  const SpecDocument document = document_with(warps);
  const Plan usual = make_plan(document, {}, gpu().target, found);
  EXPECT_EQ(dimensions_of(document, usual, gpu(), 0, kManyRows).tile_q, std::vector{64})
      << "a record of 128 rows does not serve, nor does any part of it";
}

TEST(TuneSpace, ValuesForEachTileFixTheTiles) {
  const std::string spec = R"(, "params": {"t": {"shape": "[heads, q_tiles]", "default": "-inf",
      "doc": "d"}}, "gate": {"scope": "tile", "skip": "tile_max < t", "skips": ["pv"]},
      "tile": {"q": [128, 64], "k": [64, 32], "stages": 2, "queries": "registers"})";
  EXPECT_EQ(names(space_of(spec, gpu())),
            (std::set<std::string>{"q128 k64 ascending stages2", "q128 k32 ascending stages2"}));
  const Space external = space_of(R"(, "mask": "external")", cpu());
  for (const Candidate& candidate : external.candidates) {
    EXPECT_EQ(candidate.config.tile_q, external.candidates.front().config.tile_q);
    EXPECT_EQ(candidate.config.tile_k, external.candidates.front().config.tile_k);
  }
}

TEST(TuneSpace, APredictorsTilesAreDivided) {
  const Space space = space_of(R"(, "predictor": {"tile": {"q": 64, "k": 32},
      "keep": "k0 < 128 or q0 - k1 < 512"})",
                               cpu());
  for (const Candidate& candidate : space.candidates) {
    EXPECT_EQ(64 % candidate.config.tile_q, 0);
    EXPECT_EQ(32 % candidate.config.tile_k, 0);
  }
  EXPECT_GT(space.candidates.size(), 4u);
}

TEST(TuneSpace, EveryPointIsASpecThatCanBeRead) {
  const SpecDocument document = document_with(
      R"(, "quantise": {"qk": {"bits": 8}}, "predictor": {"smooth": ["k"], "keep": "true"})");
  Diagnostics found;
  for (const Candidate& candidate :
       search_space(document, {}, cpu(), 0, kManyRows, found).candidates)
    read_spec({"t.json", print_spec(fixed_spec(document.spec, candidate.config))}, found);
  EXPECT_FALSE(found.has_errors()) << "a predictor that only smooths keeps no tiles";
}

TEST(TuneSpace, RowsAreSplitWhereTheyLeaveMultiprocessorsWithoutOne) {
  EXPECT_EQ(splits_of(space_of("", gpu(), 0, kFewRows)), (std::set{1, 2, 4, 8, 16}));
  EXPECT_EQ(splits_of(space_of("", gpu())), (std::set{1}));
  EXPECT_EQ(splits_of(space_of("", cpu(), 0, kFewRows)), (std::set{1}));
  EXPECT_EQ(splits_of(space_of(kGate, gpu(), 0, kFewRows)), (std::set{1}));
  const std::string e4m3 = R"(, "quantise": {"qk": {"bits": 8}, "v": {"bits": 8}})";
  EXPECT_EQ(splits_of(space_of(e4m3, gpu(), 0, kFewRows)), (std::set{1}));
  const std::string list = R"(, "tile": {"split_kv": [1, 3]})";
  EXPECT_EQ(splits_of(space_of(list, gpu())), (std::set{1, 3})) << "the author's word";
  EXPECT_EQ(splits_of(space_of(R"(, "tile": {"split_kv": 3})", gpu(), 0, kFewRows)), (std::set{3}));
  const std::string stages = R"(, "tile": {"stages": 2})";
  EXPECT_EQ(fixed_of(stages, gpu()),
            (std::vector<std::string>{"tile.stages (written)",
                                      "tile.split_kv (there is a row for each multiprocessor)"}));
  EXPECT_EQ(fixed_of(stages, gpu(), kFewRows), std::vector<std::string>{"tile.stages (written)"});
}

TEST(TuneSpace, QueriesAreInEitherPlaceWhereRegistersHaveRoom) {
  const std::string tiles = R"(, "tile": {"q": 128, "k": 64, "stages": 2, "order": "ascending")";
  EXPECT_EQ(names(space_of(tiles + "}", gpu())),
            (std::set<std::string>{"q128 k64 ascending stages2",
                                   "q128 k64 ascending stages2 shared_memory"}));
  EXPECT_EQ(names(space_of(tiles + R"(, "queries": "shared_memory"})", gpu())),
            (std::set<std::string>{"q128 k64 ascending stages2 shared_memory"}));
  EXPECT_EQ(space_of(tiles + "}", gpu("sm_80")).candidates.size(), 1u);
  const std::string integers = R"(, "quantise": {"qk": {"bits": 8}}, "tile": {"q": 128, "k": 64,
      "stages": 2, "order": "ascending"})";
  EXPECT_EQ(names(space_of(integers, gpu())),
            (std::set<std::string>{"q128 k64 ascending stages2 shared_memory"}));
}

TEST(TuneSpace, ThreadsOfTheCpuAreOpenUnlessTheCallerFixedThem) {
  std::set<int> counts;
  for (const Candidate& candidate : space_of("", cpu(16, 8)).candidates)
    counts.insert(candidate.config.threads);
  EXPECT_EQ(counts, (std::set{16, 8, 4}));
  for (const Candidate& candidate : space_of("", cpu(16, 8), 3).candidates)
    EXPECT_EQ(candidate.config.threads, 3);
  const std::string fixed = R"(, "tile": {"q": 128, "k": 64, "order": "ascending"})";
  EXPECT_EQ(space_of(fixed, cpu(1, 1)).candidates.size(), 1u);
  EXPECT_EQ(fixed_of(fixed, cpu(1, 1)),
            (std::vector<std::string>{"tile.q (written)", "tile.k (written)",
                                      "tile.order (written)", "threads (there is one)"}));
}

TEST(TuneSpace, ASpecThatCannotBeCompiledHasNone) {
  Diagnostics found;
  const Space space = search_space(document_with(R"(, "tile": {"q": 256, "k": 256})"), {}, gpu(), 0,
                                   kManyRows, found);
  EXPECT_TRUE(found.has_errors());
  EXPECT_EQ(space.candidates.size(), 0u);
}

TEST(TuneCost, TheUsualOneIsTriedFirstAndNeverPruned) {
  for (const Machine& machine : {cpu(), gpu(), gpu("sm_89")}) {
    const Space space = space_of("", machine);
    const Ordered ordered = order_by_cost(space, machine, {1, 32, 8, 8192, 8192}, 1);
    EXPECT_EQ(ordered.ids.front(), 0);
    EXPECT_EQ(ordered.ids.size() + ordered.pruned.size(), space.candidates.size());
    EXPECT_GT(ordered.pruned.size(), 0u);
    for (std::size_t n = 2; n < ordered.ids.size(); ++n) {
      const auto cost = [&](std::size_t at) {
        return estimate_cost(space.candidates[static_cast<std::size_t>(ordered.ids[at])], machine,
                             {1, 32, 8, 8192, 8192}, 1)
            .cycles;
      };
      EXPECT_LE(cost(n - 1), cost(n));
    }
  }
}

TEST(TuneCost, SaysWhyAPointIsHopeless) {
  const Machine machine = cpu();
  const Space space = space_of("", machine);
  const Ordered ordered = order_by_cost(space, machine, {1, 8, 8, 4096, 4096}, 1);
  const auto of = [&](const char* config) {
    for (const Pruned& pruned : ordered.pruned)
      if (print_config(space.candidates[static_cast<std::size_t>(pruned.id)].config) == config)
        return pruned.reason;
    return std::string("not pruned");
  };
  EXPECT_EQ(of("q128 k128 ascending threads2"),
            "guessed at 2.20 times the best on cpu, limited by idle cores");
  EXPECT_EQ(of("q128 k64 ascending threads2"), "not pruned") << "the usual one but for its threads";
}

TEST(TuneCost, SplitKvCostLessWhereThereAreFew) {
  const Machine machine = gpu();
  const auto cycles = [&](int split_kv, const LaunchShape& shape) {
    const std::string tile = R"(, "tile": {"split_kv": )" + std::to_string(split_kv) + "}";
    return estimate_cost(space_of(tile, machine).candidates.front(), machine, shape, 1).cycles;
  };
  EXPECT_LT(cycles(8, kFewRows), 0.2 * cycles(1, kFewRows));
  EXPECT_LT(cycles(16, kFewRows), cycles(8, kFewRows));
  EXPECT_GT(cycles(8, kManyRows), cycles(1, kManyRows));
  const LaunchShape few_keys{1, 8, 8, 1, 128};
  EXPECT_GT(cycles(8, few_keys), cycles(1, few_keys)) << "one tile cannot be shared out";
}

TEST(TuneCost, FewerTilesAndMoreMachineCostLess) {
  const Machine machine = gpu();
  const Candidate usual = space_of("", machine).candidates.front();
  const LaunchShape shape{1, 32, 8, 32768, 32768};
  const double all = estimate_cost(usual, machine, shape, 1).cycles;
  EXPECT_LT(estimate_cost(usual, machine, shape, 0.25).cycles, 0.5 * all);
  EXPECT_GT(estimate_cost(usual, machine, {2, 32, 8, 32768, 32768}, 1).cycles, 1.5 * all);
  EXPECT_GT(estimate_cost(usual, machine, {1, 64, 8, 32768, 32768}, 1).cycles, 1.5 * all);
  Machine half = machine;
  half.processors /= 2;
  EXPECT_GT(estimate_cost(usual, half, shape, 1).cycles, 1.5 * all);
}

}  // namespace
}  // namespace lacuna::tune

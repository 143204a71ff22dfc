// Which record a kernel is compiled with, and what of it the compiler takes.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstddef>
#include <cstring>

#include "compiler/target/plan.hpp"
#include "runtime/cpu/host_plugin.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/kernel.hpp"
#include "runtime/tune/lookup.hpp"
#include "tests/runtime/temporary_directory.hpp"
#include "tools/tune/child/verify.hpp"

namespace lacuna::tune {
namespace {

constexpr const char* kDense = R"({"version": 1, "name": "dense"})";

SpecDocument document_of(const std::string& text) {
  Diagnostics found;
  SpecDocument document = read_spec({"t.json", text}, found);
  EXPECT_FALSE(found.has_errors());
  return document;
}

cache::TuningRecord record_of(const LaunchShape& shape, const std::string& config,
                              double median_us) {
  cache::TuningRecord record;
  record.hardware = "box-2";
  record.variant = variant_of(document_of(kDense).spec, {});
  record.problem = print_bucket(bucket_of(shape));
  record.density = "1";
  record.config = config;
  record.median_us = median_us;
  record.rung = 2;
  record.shape = "n=" + std::to_string(shape.n_k);
  record.library = "0";
  record.compiler = "LLVM 19";
  return record;
}

constexpr LaunchShape kSmall{1, 4, 4, 1024, 1024}, kLarge{1, 32, 8, 16384, 16384};

/// Everything that a spec without tiles leaves open, on two threads.
Dimensions open_dimensions() {
  return {{64, 128},
          {32, 64},
          {0},
          {2, 1},
          {TileOrder::kAscending, TileOrder::kDescending},
          {1},
          {QueryPlace::kRegisters}};
}

std::string chosen(const std::vector<cache::TuningRecord>& records,
                   std::optional<LaunchShape> shape = std::nullopt,
                   const Dimensions& dimensions = open_dimensions()) {
  const auto answer = choose_record(records, dimensions, shape);
  return answer ? print_config(answer->config) : "none";
}

TEST(TuneBucket, SizesAreRoundedToPowersOfTwo) {
  EXPECT_EQ(print_bucket(bucket_of({2, 24, 8, 119056, 9000})),
            "rows=64 group=3 n_q=131072 n_k=8192");
  EXPECT_EQ(parse_bucket("rows=64 group=3 n_q=131072 n_k=8192"),
            bucket_of({2, 24, 8, 119056, 9000}));
  for (const char* text :
       {"", "rows=64", "rows=3 group=1 n_q=8 n_k=8", "rows=0 group=1 n_q=8 n_k=8"})
    EXPECT_FALSE(parse_bucket(text)) << text;
  EXPECT_EQ(density_bucket(1), "1");
  EXPECT_EQ(density_bucket(0.3), "1/4");
  EXPECT_EQ(density_bucket(0), "1/128");
  EXPECT_EQ(density_of("1/8"), 0.125);
  EXPECT_EQ(density_of("x"), 0);
}

TEST(TuneBucket, TheVariantKnowsNoTilesAndNoWords) {
  const auto of = [](const std::string& text, BuildOptions options = {}) {
    return variant_of(document_of(text).spec, options);
  };
  const std::string dense = of(kDense);
  EXPECT_EQ(dense, of(R"({"version": 1, "name": "x", "doc": "y", "tile": {"q": 64}})"));
  EXPECT_NE(dense, of(R"({"version": 1, "name": "dense", "attention": {"mask": "k <= q"}})"));
  EXPECT_NE(dense, of(kDense, {64, DType::kBF16}));
  EXPECT_NE(dense, of(kDense, {128, DType::kF16}));
  EXPECT_EQ(dense, of(kDense, {.head_dim_v = 128})) << "which it is without being said";
  EXPECT_NE(dense, of(kDense, {.head_dim_v = 64}));
  const std::string narrow = R"({"version": 1, "name": "narrow", "attention": {"head_dim_v": 64}})";
  EXPECT_EQ(of(narrow), of(narrow, {.head_dim_v = 64}));
  EXPECT_EQ(hardware_name("NVIDIA H200 (x)", 132), "nvidia-h200-x-132");
}

TEST(TuneLookup, TakesTheNearestProblemElseTheLargest) {
  const std::vector records{record_of(kSmall, "q64 k32 ascending threads2", 10),
                            record_of(kLarge, "q128 k64 ascending threads2", 900)};
  EXPECT_EQ(chosen(records, LaunchShape{1, 4, 4, 1500, 1500}), "q64 k32 ascending threads2");
  EXPECT_EQ(chosen(records, LaunchShape{1, 8, 8, 12000, 12000}), "q128 k64 ascending threads2");
  EXPECT_EQ(chosen(records), "q128 k64 ascending threads2");
  EXPECT_EQ(chosen({}), "none");
}

TEST(TuneLookup, TakesTheWinnerElseTheFastestOfTheBestMeasured) {
  std::vector records{record_of(kSmall, "q64 k32 ascending threads2", 10),
                      record_of(kSmall, "q128 k64 ascending threads2", 20),
                      record_of(kSmall, "q128 k32 ascending threads2", 5)};
  records[2].rung = 0;
  EXPECT_EQ(chosen(records), "q64 k32 ascending threads2");
  records[1].best = "space";
  EXPECT_EQ(chosen(records), "q128 k64 ascending threads2");
}

TEST(TuneLookup, OfSeveralWinnersTakesTheFastest) {
  std::vector records{record_of(kSmall, "q64 k32 ascending threads2", 20),
                      record_of(kSmall, "q128 k64 ascending threads2", 10)};
  records[0].best = records[1].best = "space";
  records[0].budget_s = 1;
  EXPECT_EQ(chosen(records), "q128 k64 ascending threads2") << "found by the longer search";
  std::swap(records[0], records[1]);
  EXPECT_EQ(chosen(records), "q128 k64 ascending threads2") << "the other spec left less open";
  records[1].median_us = 10.1;
  EXPECT_EQ(chosen(records), "q64 k32 ascending threads2") << "as fast, and found later";
}

TEST(TuneLookup, PassesOverWhatFailedAndWhatTheSpecDoesNotLeaveOpen) {
  std::vector records{record_of(kSmall, "q64 k32 descending threads2", 1),
                      record_of(kSmall, "q256 k64 ascending threads2", 2),
                      record_of(kSmall, "q128 k64 ascending threads2", 3),
                      record_of(kSmall, "something else", 1)};
  records[0].status = cache::TuningStatus::kWrong;
  EXPECT_EQ(chosen(records), "q128 k64 ascending threads2");
  Dimensions fixed = open_dimensions();
  fixed.tile_q = {64};
  EXPECT_EQ(chosen(records, std::nullopt, fixed), "none");
  fixed = open_dimensions();
  fixed.threads = {1};
  EXPECT_EQ(chosen(records, std::nullopt, fixed), "q128 k64 ascending threads1")
      << "threads of the caller, tiles of the record";
}

TEST(TuneLookup, RowsAreSplitOnlyForShapesThatWantIt) {
  const std::vector records{record_of(kSmall, "q64 k32 ascending threads2 split8", 1),
                            record_of(kSmall, "q128 k64 ascending threads2", 3)};
  EXPECT_EQ(chosen(records), "q128 k64 ascending threads2");
  Dimensions few_rows = open_dimensions();
  few_rows.split_kv = {1, 8};
  EXPECT_EQ(chosen(records, std::nullopt, few_rows), "q64 k32 ascending threads2 split8");
}

TEST(TuneLookup, ComparesOnlyTimesOfOneCompiler) {
  std::vector records{record_of(kSmall, "q64 k32 ascending threads2", 10),
                      record_of(kSmall, "q128 k64 ascending threads2", 20)};
  records[1].compiler = "LLVM 20";
  EXPECT_EQ(chosen(records), "q128 k64 ascending threads2");
}

TEST(TuneLookup, ThePlanNamesTheRecordWhereTheSpecLeftAChoice) {
  const SpecDocument document = document_of(R"({"version": 1, "name": "t", "tile": {"k": 64}})");
  Diagnostics found;
  BuildOptions options;
  options.tuned = tuned_tiles({64, 64, 3, TileOrder::kDescending, 0}, "measured");
  const AttendPlan plan = make_plan(document, options, *find_target("sm_90a"), found).attend;
  EXPECT_FALSE(found.has_errors());
  EXPECT_EQ(plan.tile_q.value, 64);
  EXPECT_EQ(plan.tile_q.origin, Origin::kTuned);
  EXPECT_EQ(plan.tile_q.reason, "measured");
  EXPECT_EQ(plan.tile_k.origin, Origin::kSpec);
  EXPECT_EQ(plan.stages.value, 3);
  EXPECT_EQ(plan.stages.origin, Origin::kTuned);
  EXPECT_EQ(plan.order.value, TileOrder::kDescending);
  EXPECT_EQ(plan.warps.value, 4);
}

TEST(TuneLookup, ThePlanPassesOverTilesThatAreNotLegal) {
  Diagnostics found;
  BuildOptions options;
  options.tuned = tuned_tiles({256, 256, 4, TileOrder::kAscending, 0}, "measured");
  const AttendPlan plan =
      make_plan(document_of(kDense), options, *find_target("sm_86"), found).attend;
  EXPECT_FALSE(found.has_errors());
  EXPECT_EQ(plan.tile_q.value, 128);
  EXPECT_EQ(plan.tile_q.origin, Origin::kDefault);
}

TEST(TuneLookup, ACompileTakesTilesAndThreadsWithoutAFlag) {
  const TemporaryDirectory directory;
  EngineSettings settings;
  settings.device = "cpu";
  settings.cache_directory = directory.text();
  Diagnostics found;
  const auto engine = create_engine(settings, found);
  ASSERT_NE(engine, nullptr);
  const int threads = engine->hardware.machine.processors;
  auto record = record_of(kSmall, "q64 k32 descending threads" + std::to_string(threads), 10);
  record.hardware = engine->hardware.name;
  record.compiler = engine->hardware.compiler + " 19";
  auto others = record_of(kLarge, "q64 k64 ascending threads1", 5);
  others.hardware = engine->hardware.name;
  others.compiler = engine->hardware.compiler == "LLVM" ? "interpreter" : "LLVM 19";
  ASSERT_EQ(cache::TuningDatabase(directory.text(), "").append({others}), "");
  const auto unserved = compile_kernel(engine, {"t.json", kDense}, {}, found);
  ASSERT_NE(unserved, nullptr);
  EXPECT_EQ(unserved->planned.plan.attend.tile_q.origin, Origin::kDefault)
      << "measured with another compiler's code";
  ASSERT_EQ(cache::TuningDatabase(directory.text(), "").append({record}), "");

  const auto kernel = compile_kernel(engine, {"t.json", kDense}, {}, found);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->planned.contract.tile_q, 64);
  EXPECT_EQ(kernel->planned.contract.tile_k, 32);
  EXPECT_EQ(kernel->threads, threads);
  EXPECT_EQ(kernel->planned.plan.attend.tile_q.origin, Origin::kTuned);
  EXPECT_EQ(kernel->planned.plan.attend.tile_q.reason,
            "measured 10 us at n=1024 with " + record.compiler);

  const auto other = compile_kernel(engine, {"t.json", kDense}, {64, DType::kBF16}, found);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->planned.contract.tile_q, 128) << "another head dim has not been measured";
  EXPECT_EQ(other->threads, 0);
}

TEST(TuneLookup, TroubleWithTheRecordsIsToldOnce) {
  const TemporaryDirectory directory;
  std::vector<std::string> events;
  EngineSettings settings;
  settings.device = "cpu";
  settings.cache_directory = directory.text();
  settings.user = &events;
  settings.on_event = [](void* user, const char* event, const char* detail) {
    if (std::string(event) == "cache_warning")
      static_cast<std::vector<std::string>*>(user)->push_back(detail);
  };
  Diagnostics found;
  const auto engine = create_engine(settings, found);
  ASSERT_NE(engine, nullptr);
  const std::string tuning = directory.text() + "/tuning";
  ASSERT_EQ(::mkdir(tuning.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(tuning.c_str(), 0770), 0);
  for (int round = 0; round < 2; ++round)
    ASSERT_NE(compile_kernel(engine, {"t.json", kDense}, {}, found), nullptr);
  EXPECT_EQ(events, std::vector<std::string>{
                        "{\"message\": \"cache directory " + directory.text() +
                        ": tuning can be written by others (mode 0770, expected 0700)\"}"});
}

TEST(TuneLookup, TheCallersShapeChoosesTheRecord) {
  const TemporaryDirectory directory;
  lacuna_engine_options engine_options{};
  engine_options.struct_size = sizeof engine_options;
  engine_options.device = "cpu";
  engine_options.threads = 1;
  const std::string path = directory.text();
  engine_options.cache_directory = path.c_str();
  lacuna_engine* engine = nullptr;
  ASSERT_EQ(lacuna_engine_create(&engine_options, &engine), LACUNA_OK);
  const Hardware here = host_hardware(*find_target("cpu"), lacuna_engine_device_name(engine),
                                      version_of(load_host_plugin()));
  std::vector records{record_of(kSmall, "q64 k32 ascending threads2", 10),
                      record_of(kLarge, "q128 k32 ascending threads2", 900)};
  for (cache::TuningRecord& record : records) {
    record.hardware = here.name;
    record.compiler = here.compiler;
  }
  ASSERT_EQ(cache::TuningDatabase(path, "").append(records), "");

  const auto tile_q = [engine](const lacuna_compile_options& options) {
    lacuna_kernel* kernel = nullptr;
    EXPECT_EQ(lacuna_compile(engine, kDense, std::strlen(kDense), &options, &kernel), LACUNA_OK)
        << lacuna_last_error();
    std::int32_t q = 0, k = 0;
    lacuna_kernel_tile(kernel, &q, &k);
    lacuna_kernel_destroy(kernel);
    return q;
  };
  lacuna_shape shape{sizeof(lacuna_shape), 1, 4, 4, 1000, 1000};
  lacuna_compile_options options{sizeof options,       128, LACUNA_BF16,   nullptr, &shape,
                                 LACUNA_BATCH_UNIFORM, 0,   LACUNA_KV_SAME};
  EXPECT_EQ(tile_q(options), 64);
  options.shape = nullptr;
  EXPECT_EQ(tile_q(options), 128) << "the largest that was measured";
  options.shape = &shape;
  options.struct_size = offsetof(lacuna_compile_options, shape);
  EXPECT_EQ(tile_q(options), 128) << "a host that does not know the field";

  options.struct_size = sizeof options;
  shape.struct_size = 4;
  lacuna_kernel* none = nullptr;
  EXPECT_EQ(lacuna_compile(engine, kDense, std::strlen(kDense), &options, &none),
            LACUNA_ERROR_INPUT);
  EXPECT_NE(std::string(lacuna_last_error()).find("lacuna_shape.struct_size: expected 32, got 4"),
            std::string::npos)
      << lacuna_last_error();
  lacuna_engine_destroy(engine);
}

TEST(TuneVerify, SaysHowFarAnOutputIsOff) {
  const VariantSpec spec = document_of(kDense).spec;
  const Tolerance allowed = tolerance_of(spec, DType::kBF16);
  const std::vector<float> expected{1, -2, 3, 0};
  EXPECT_EQ(compare_outputs(expected, expected, allowed), "");
  EXPECT_EQ(compare_outputs(expected, std::vector<float>{1, -2.3F, 3, 0}, allowed),
            "relative L1 error 5.0e-02, allowed 4.0e-03");
  EXPECT_EQ(compare_outputs(expected, std::vector<float>{1, -2, 3, NAN}, allowed),
            "element 3: expected 0.000000, got nan");
  EXPECT_EQ(compare_outputs(expected, std::vector<float>{1}, allowed),
            "expected 4 elements, got 1");
  std::vector<float> many(1000, 1), off = many;
  off[0] = 1.5F;
  EXPECT_EQ(compare_outputs(many, off, allowed), "largest relative error 5.0e-01, allowed 8.0e-03");
}

}  // namespace
}  // namespace lacuna::tune

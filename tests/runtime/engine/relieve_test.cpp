// The ladder of plans that take fewer registers, walked with an assembler that says what the test
// wants; and how the store remembers which of them was compiled.
#include "runtime/engine/build/relieve.hpp"

#include <gtest/gtest.h>

#include "compiler/passes/relief.hpp"
#include "runtime/engine/build/build.hpp"
#include "runtime/engine/build/metadata.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

const char* const kCapped = R"json({"version": 1, "name": "cap",
  "attention": {"score": "30 * tanh(s / 30)", "mask": "k <= q"}})json";

struct Walk {
  SpecDocument document;
  BuildOptions options;
  Plan plan;
  Diagnostics diagnostics;
  std::vector<int> spills{};  ///< of each compilation in turn; 0 for those behind the last
  int compilations = 0;

  std::optional<RelievedBuild> run() {
    return build_relieved(
        plan, document, options,
        [this](const CudaSource& source, Diagnostics&) {
          const auto n = static_cast<std::size_t>(compilations++);
          Compilation made;
          made.cubins.assign(source.kernels.size(), "code");
          for (const CudaKernel& kernel : source.kernels)
            made.kernels.push_back({kernel.entry, 168, n < spills.size() ? spills[n] : 0, 0, 0});
          return made;
        },
        diagnostics);
  }
};

Walk walk(const char* spec, const char* target, std::vector<int> spills,
          BuildOptions options = {}) {
  Diagnostics errors;
  SpecDocument document = read_spec({"spec.json", spec}, errors);
  Plan plan = make_plan(document, options, *find_target(target), errors);
  EXPECT_FALSE(errors.has_errors()) << render(errors, document.source);
  return {std::move(document), options, std::move(plan), {}, std::move(spills)};
}

TEST(Relief, APlanThatFitsIsTaken) {
  Walk fits = walk(kCapped, "sm_90a", {});
  const auto built = fits.run();
  ASSERT_TRUE(built.has_value());
  EXPECT_EQ(fits.compilations, 1);
  EXPECT_EQ(built->relief, 0);
  EXPECT_TRUE(built->complaints.empty());
}

TEST(Relief, QueriesFirstThenFewerScoresThenTheOtherFamily) {
  Walk once = walk(kCapped, "sm_90a", {40});
  const auto reading = once.run();
  ASSERT_TRUE(reading.has_value());
  EXPECT_EQ(once.plan.attend.queries.value, QueryPlace::kRegisters);
  EXPECT_EQ(reading->plan.attend.queries.value, QueryPlace::kSharedMemory);
  EXPECT_EQ(reading->plan.attend.step_keys.value, 128);
  EXPECT_EQ(once.compilations, 2) << "without a plan for two warpgroups: it has them";
  Walk twice = walk(kCapped, "sm_90a", {40, 12});
  const auto shorter = twice.run();
  ASSERT_TRUE(shorter.has_value());
  EXPECT_EQ(shorter->plan.attend.step_keys.value, 64);
  EXPECT_EQ(shorter->plan.attend.family.value, AttendFamily::kWgmma);
  Walk thrice = walk(kCapped, "sm_90a", {40, 12, 8});
  const auto other = thrice.run();
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->plan.attend.family.value, AttendFamily::kMma);
  EXPECT_EQ(other->plan.attend.family.reason, "registers spill in the wgmma family");
  EXPECT_EQ(other->complaints.size(), 3U);
}

TEST(Relief, QueriesThatAreReadAnywayAreNotGivenUp) {
  for (
      const char* spec :
      {R"({"version": 1, "name": "i", "quantise": {"qk": {"bits": 8, "group": "block"}}})",
       R"({"version": 1, "name": "g", "gate": {"scope": "tile", "skip": "tile_max < 0", "skips": ["exp", "pv"]}})"}) {
    const Walk of = walk(spec, "sm_90a", {});
    const auto plan = relieved_plan(of.document, of.options, 2, of.plan.target);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->attend.queries.reason, of.plan.attend.queries.reason) << spec;
    EXPECT_NE(plan->attend.queries.reason, reliefs()[2].reason) << spec;
  }
}

TEST(Relief, QueriesThatTheSpecKeepsInRegistersStay) {
  Walk kept = walk(R"-({"version": 1, "name": "k", "tile": {"queries": "registers"},
    "attention": {"score": "30 * tanh(s / 30)"}})-",
                   "sm_90a", {40});
  const auto built = kept.run();
  ASSERT_TRUE(built.has_value());
  EXPECT_EQ(built->plan.attend.queries.value, QueryPlace::kRegisters);
  EXPECT_EQ(built->plan.attend.step_keys.value, 64) << "keys give way";
}

TEST(Relief, NarrowRowsGiveUpTheThirdWarpgroup) {
  Walk narrow = walk(R"({"version": 1, "name": "m", "attention": {"mask": "k <= q"}})", "sm_90a",
                     {40}, {.head_dim = 64});
  const auto built = narrow.run();
  ASSERT_TRUE(built.has_value());
  EXPECT_EQ(narrow.plan.attend.warpgroups.value, 3);
  EXPECT_EQ(built->plan.attend.warpgroups.value, 2);
  EXPECT_EQ(built->plan.attend.step_keys.value, 128);
}

TEST(Relief, WhereAllSpillTheLeastIsTaken) {
  Walk all = walk(kCapped, "sm_80", {40, 4, 12});
  const auto built = all.run();
  ASSERT_TRUE(built.has_value());
  EXPECT_FALSE(all.diagnostics.has_errors());
  EXPECT_EQ(all.compilations, 3);
  EXPECT_EQ(built->plan.attend.tile_k.value, 32);
}

TEST(Relief, TilesThatOthersSeeStay) {
  Walk gated = walk(R"({"version": 1, "name": "g",
    "gate": {"scope": "tile", "skip": "gap < -8", "skips": ["exp", "pv"]}})",
                    "sm_80", {40, 40, 40});
  const auto built = gated.run();
  ASSERT_TRUE(built.has_value());
  EXPECT_EQ(gated.compilations, 1);
  Walk written =
      walk(R"({"version": 1, "name": "t", "tile": {"q": 128, "k": 64}})", "sm_80", {40, 40});
  ASSERT_TRUE(written.run().has_value());
  EXPECT_EQ(written.compilations, 1);
}

TEST(Relief, AFamilyThatWasAskedForStaysAndTheErrorSaysSo) {
  Walk pinned = walk(kCapped, "sm_90a", {40, 40, 40, 40, 40}, {.family = AttendFamily::kWgmma});
  EXPECT_FALSE(pinned.run().has_value());
  ASSERT_EQ(pinned.diagnostics.items.size(), 1U);
  EXPECT_EQ(pinned.diagnostics.items[0].code, Code::kAssembly);
  ASSERT_EQ(pinned.diagnostics.items[0].helps.size(), 1U);
  EXPECT_NE(pinned.diagnostics.items[0].helps[0].find("LACUNA_ATTEND_FAMILY"), std::string::npos);
}

TEST(Relief, TheNoteSaysWhatChangedAndWhatTookRegisters) {
  Walk once = walk(kCapped, "sm_90a", {40});
  const auto built = once.run();
  ASSERT_TRUE(built.has_value());
  Diagnostics notes;
  notes.add(relief_note(once.document, once.plan, built->plan, built->complaints));
  EXPECT_EQ(notes.items[0].code, Code::kRelief);
  EXPECT_EQ(notes.items[0].severity, Severity::kPerf);
  EXPECT_EQ(notes.items[0].pointer, "/attention/score");
  EXPECT_EQ(
      notes.items[0].message,
      "attend on sm_90a is built with tile.queries = shared_memory (was registers): registers "
      "of the first choice spill");
  ASSERT_EQ(notes.items[0].notes.size(), 2U);
  EXPECT_EQ(notes.items[0].notes[0], "registers go to attention.score; attention.mask");
}

/// An entry of the store that was compiled from the mma plan; `source`: what it says of its source.
struct Stored {
  BuiltKernel built;
  Diagnostics diagnostics;
};

/// That plan of this spec, compiled.
BuiltKernel build_relief(const Walk& of_mma, const std::shared_ptr<const Nvrtc>& nvrtc) {
  Diagnostics diagnostics;
  const auto mma = relieved_plan(of_mma.document, of_mma.options, 4, of_mma.plan.target);
  EXPECT_TRUE(mma.has_value());
  return build_kernel({*mma, of_mma.document, at_hand(nvrtc), nullptr, ""}, diagnostics);
}

Stored take_stored(const Walk& of_mma, BuiltKernel entry, const std::shared_ptr<const Nvrtc>& nvrtc,
                   bool is_of_this_source) {
  Stored result;
  auto metadata = read_metadata(entry.entry.metadata);
  EXPECT_TRUE(metadata.has_value());
  metadata->relief = 4;
  metadata->relieved_source_sha256 = is_of_this_source ? source_sha256(entry.source) : "another";
  metadata->complaints = {"spills"};
  entry.entry.metadata = write_metadata(*metadata);
  const cache::Key key =
      kernel_key(emit_cuda(of_mma.plan, of_mma.document), "sm_90a", "", result.diagnostics);
  entry.entry.key_text = key.text;
  const TemporaryDirectory directory;
  cache::StoreOptions options;
  options.directory = directory.text();
  cache::Store store(options);
  EXPECT_TRUE(store.publish(key, entry.entry));
  result.built = build_kernel({.plan = of_mma.plan,
                               .document = of_mma.document,
                               .nvrtc = at_hand(nvrtc),
                               .store = &store,
                               .template_path = "",
                               .options = &of_mma.options},
                              result.diagnostics);
  return result;
}

TEST(Relief, AHitIsOfThePlanThatWasCompiled) {
  Diagnostics missing;
  const auto nvrtc = load_nvrtc(0, missing);
  if (nvrtc == nullptr) GTEST_SKIP() << missing.items.front().message;
  const Walk of_mma = walk(kCapped, "sm_90a", {}, {.head_dim = 64});
  const BuiltKernel relieved = build_relief(of_mma, nvrtc);
  const Stored same = take_stored(of_mma, relieved, nvrtc, true);
  EXPECT_TRUE(same.built.hit);
  EXPECT_EQ(same.built.relief, 4);
  ASSERT_TRUE(same.built.relieved.has_value());
  EXPECT_EQ(same.built.relieved->attend.family.value, AttendFamily::kMma);
  ASSERT_EQ(same.diagnostics.items.size(), 1U);
  EXPECT_EQ(same.diagnostics.items[0].code, Code::kRelief);
  const Stored other = take_stored(of_mma, relieved, nvrtc, false);
  EXPECT_FALSE(other.built.hit) << "another text of ours wrote that source";
  EXPECT_FALSE(other.built.relieved.has_value());
  EXPECT_FALSE(other.built.entry.cubins.empty());
}

}  // namespace
}  // namespace lacuna

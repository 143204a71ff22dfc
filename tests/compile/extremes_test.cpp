// The largest tiles that the planner lets through: they do not spill, and one step further it
// refuses.
#include <filesystem>

#include "compiler/target/plan.hpp"
#include "tests/compile/nvrtc.hpp"
#include "tests/spec/golden_file.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

/// A spec changed in memory, and the largest tile.k that the planner lets through on sm_90a.
struct Extreme {
  const char* spec;
  bool gates_warps;
  int head_dim, tile_k;
};

SpecDocument document_of(const Extreme& extreme, int tile_k) {
  Diagnostics diagnostics;
  const std::filesystem::path path =
      std::string(LACUNA_SOURCE_DIR "/specs/") + extreme.spec + ".json";
  SpecDocument document = read_spec({path, test::read_file(path)}, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors());
  document.spec.tile.q.values = {64};
  document.spec.tile.k.values = {tile_k};
  if (extreme.gates_warps) {
    document.spec.gate->scope = GateScope::kWarp;
    document.spec.gate->skips_v_load = document.spec.gate->skips_exp = false;
  }
  return document;
}

std::vector<Extreme> all_extremes() {
  std::vector<Extreme> extremes;
  for (const auto& [head_dim, tile_k] : {std::pair(64, 160), {96, 128}, {128, 96}, {256, 64}}) {
    extremes.push_back({"dense", false, head_dim, tile_k});
    extremes.push_back({"window", false, head_dim, tile_k});
    extremes.push_back({"skip-softmax", false, head_dim, tile_k});
    extremes.push_back({"skip-softmax", true, head_dim, tile_k});
  }
  return extremes;
}

TEST(Resources, LargestLegalTilesDoNotSpill) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  const std::vector<Extreme> extremes = test::in_tier(
      all_extremes(),
      [](const Extreme& extreme) {
        return test::Properties{extreme.spec + std::to_string(extreme.gates_warps ? 1 : 0),
                                std::to_string(extreme.head_dim)};
      },
      1);
  std::vector<std::string> failures(extremes.size());
  run_all(extremes.size(), [&](std::size_t n) {
    Diagnostics diagnostics;
    const SpecDocument document = document_of(extremes[n], extremes[n].tile_k);
    const Plan plan = make_plan(document, {.head_dim = extremes[n].head_dim},
                                find_target("sm_90a").value(), diagnostics);
    if (!diagnostics.has_errors()) {
      const Compilation made =
          compile_cuda(*nvrtc, emit_cuda(plan, document), "sm_90a", {}, diagnostics);
      if (made.kernels.size() != 1 || made.kernels[0].spill_bytes != 0) failures[n] = made.log;
    }
    if (diagnostics.has_errors()) failures[n] = render(diagnostics, document.source);
  });
  for (std::size_t n = 0; n < extremes.size(); ++n) {
    EXPECT_EQ(failures[n], "") << extremes[n].spec << (extremes[n].gates_warps ? " by warp" : "")
                               << " d" << extremes[n].head_dim << " k" << extremes[n].tile_k;
  }
}

TEST(Resources, LargerTilesAreRefused) {
  for (const Extreme& extreme : all_extremes()) {
    Diagnostics diagnostics;
    (void)make_plan(document_of(extreme, extreme.tile_k + 16), {.head_dim = extreme.head_dim},
                    find_target("sm_90a").value(), diagnostics);
    EXPECT_TRUE(diagnostics.has_errors()) << "d" << extreme.head_dim << " k" << extreme.tile_k;
  }
}

}  // namespace
}  // namespace lacuna

// What `check` finds good, builds: random legal specs are compiled for an architecture of each
// kind, and nothing fails or spills. In the short tier one for each architecture.
#include <optional>
#include <span>
#include <string>

#include "runtime/engine/build/build.hpp"
#include "tests/compile/drawn_spec.hpp"
#include "tests/compile/nvrtc.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

constexpr int kSpecCount = 40, kShortSpecCount = 3;

/// What is wrong with what is built; "" if nothing.
std::string failure_of(const test::DrawnSpec& drawn, const char* target,
                       const std::shared_ptr<const Nvrtc>& nvrtc, cache::Store* store) {
  Diagnostics diagnostics;
  const Plan plan =
      make_plan(drawn.document, drawn.options, find_target(target).value(), diagnostics);
  const BuiltKernel built = build_kernel({.plan = plan,
                                          .document = drawn.document,
                                          .nvrtc = at_hand(nvrtc),
                                          .store = store,
                                          .template_path = "",
                                          .options = &drawn.options},
                                         diagnostics);
  if (built.entry.cubins.empty()) return render(diagnostics, drawn.document.source);
  for (const KernelResources& kernel : built.kernels) {
    if (kernel.spill_bytes == 0) continue;
    return kernel.name + " spills " + std::to_string(kernel.spill_bytes) + " bytes; " +
           render(diagnostics, drawn.document.source);
  }
  if (store != nullptr && !built.hit) store->publish(built.key, built.entry);
  return "";
}

/// All of them, or in the short tier one for each spec in turn.
std::span<const char* const> targets_of(int n) {
  const std::span<const char* const> all = test::kTargets;
  return test::is_short_tier() ? all.subspan(static_cast<std::size_t>(n) % all.size(), 1) : all;
}

TEST(RandomSpecs, WhatIsLegalBuildsAndNothingSpills) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  const auto store = stored_kernels(*nvrtc);
  std::uint64_t seed = 1;
  for (int n = 0; n < test::by_tier(kSpecCount, kShortSpecCount); ++n) {
    const std::optional<test::DrawnSpec> drawn = test::draw_legal(seed);
    ASSERT_TRUE(drawn) << "before seed " << seed;
    for (const char* target : targets_of(n)) {
      EXPECT_EQ(failure_of(*drawn, target, nvrtc, store.get()), "")
          << target << " d" << drawn->options.head_dim << " " << name_of(drawn->options.dtype)
          << "\n"
          << drawn->document.source.text;
    }
  }
}

}  // namespace
}  // namespace lacuna

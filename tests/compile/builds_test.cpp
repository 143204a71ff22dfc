// What `check` finds good, builds: random legal specs are compiled for an architecture of each
// kind, and nothing fails or spills. In the short tier one for each architecture.
#include <optional>
#include <span>
#include <string>

#include "compiler/target/plan.hpp"
#include "runtime/engine/build/build.hpp"
#include "tests/compile/nvrtc.hpp"
#include "tests/compile/random_spec.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

constexpr const char* kTargets[] = {"sm_90a", "sm_80", "sm_100a"};
constexpr int kSpecCount = 40, kShortSpecCount = 3;

struct Drawn {
  SpecDocument document;
  BuildOptions options;
};

/// The first spec from `seed` on that is legal for every target; `seed` is then the next one's.
/// Nothing: hardly any is legal.
std::optional<Drawn> draw_legal(std::uint64_t& seed) {
  for (int tries = 0; tries < 50; ++tries) {
    test::RandomSpec random(seed);
    const std::string name = "random-" + std::to_string(seed++) + ".json";
    Diagnostics found;
    Drawn drawn{read_spec({name, random.text()}, found), {}};
    drawn.options.head_dim = random.head_dim();
    drawn.options.dtype = random.is_f16() ? DType::kF16 : DType::kBF16;
    for (const char* target : kTargets) {
      if (!found.has_errors())
        (void)make_plan(drawn.document, drawn.options, find_target(target).value(), found);
    }
    if (!found.has_errors()) return drawn;
  }
  return std::nullopt;
}

/// What is wrong with what is built; "" if nothing.
std::string failure_of(const Drawn& drawn, const char* target,
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
  const std::span<const char* const> all = kTargets;
  return test::is_short_tier() ? all.subspan(static_cast<std::size_t>(n) % all.size(), 1) : all;
}

TEST(RandomSpecs, WhatIsLegalBuildsAndNothingSpills) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  const auto store = stored_kernels(*nvrtc);
  std::uint64_t seed = 1;
  for (int n = 0; n < test::by_tier(kSpecCount, kShortSpecCount); ++n) {
    const std::optional<Drawn> drawn = draw_legal(seed);
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

// What `check` finds good, builds: random legal specs are compiled for an architecture of each
// kind, and nothing fails or spills. In the short tier one for each architecture.
#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "compiler/ir/names.hpp"
#include "runtime/engine/build/build.hpp"
#include "tests/compile/drawn_spec.hpp"
#include "tests/compile/nvrtc.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

constexpr int kSpecCount = 40, kShortSpecCount = 3;

/// Does a note say that every plan spills? In batches tiles that a spec asks for may leave only
/// mma.
bool says_that_it_spills(const Diagnostics& diagnostics) {
  return std::ranges::any_of(diagnostics.items, [](const Diagnostic& d) {
    return d.message.find("no other plan spills less") != std::string::npos;
  });
}

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
    if (drawn.options.batch != BatchLayout::kUniform && says_that_it_spills(diagnostics)) continue;
    return kernel.name + " spills " + std::to_string(kernel.spill_bytes) + " bytes; " +
           render(diagnostics, drawn.document.source);
  }
  if (store != nullptr && !built.hit) store->publish(built.key, built.entry);
  return "";
}

/// A build may ask for keys and values in rows or in pages; not every spec is legal then.
std::optional<test::DrawnSpec> in_batches(test::DrawnSpec drawn, BatchLayout batch) {
  drawn.options.batch = batch;
  Diagnostics found;
  (void)make_plan(drawn.document, drawn.options, find_target("sm_90a").value(), found);
  return found.has_errors() ? std::nullopt : std::optional(std::move(drawn));
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

/// In batches attend may have a second kernel, for sequences of few queries.
TEST(RandomSpecs, WhatIsLegalBuildsInBatches) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  const auto store = stored_kernels(*nvrtc);
  std::uint64_t seed = 3007;
  for (int n = 0; n < test::by_tier(kSpecCount, 1);) {
    const std::optional<test::DrawnSpec> drawn = test::draw_legal(seed);
    ASSERT_TRUE(drawn) << "before seed " << seed;
    const auto batch =
        in_batches(*drawn, n % 2 == 0 ? BatchLayout::kPages : BatchLayout::kSequences);
    if (!batch) continue;
    EXPECT_EQ(failure_of(*batch, "sm_90a", nvrtc, store.get()), "")
        << name_of(batch->options.batch) << " d" << batch->options.head_dim << " "
        << name_of(batch->options.dtype) << "\n"
        << batch->document.source.text;
    ++n;
  }
}

}  // namespace
}  // namespace lacuna

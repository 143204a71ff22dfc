// Random specs with what a caller says of them, of which `check` finds every one good.
#pragma once

#include <optional>
#include <string>

#include "compiler/target/plan.hpp"
#include "tests/compile/random_spec.hpp"

namespace lacuna::test {

/// Architectures of each kind of kernel.
inline constexpr const char* kTargets[] = {"sm_90a", "sm_80", "sm_100a"};

struct DrawnSpec {
  SpecDocument document;
  BuildOptions options;
};

/// Nothing: what the seed draws is not legal for every target.
inline std::optional<DrawnSpec> draw_spec(std::uint64_t seed) {
  RandomSpec random(seed);
  Diagnostics found;
  DrawnSpec drawn{read_spec({"random-" + std::to_string(seed) + ".json", random.text()}, found),
                  {}};
  drawn.options.head_dim = random.head_dim();
  drawn.options.dtype = random.is_f16() ? DType::kF16 : DType::kBF16;
  drawn.options.head_dim_v = random.head_dim_v();
  for (const char* target : kTargets) {
    if (!found.has_errors())
      (void)make_plan(drawn.document, drawn.options, find_target(target).value(), found);
  }
  if (found.has_errors()) return std::nullopt;
  return drawn;
}

/// Of the first seed from `seed` on that draws a legal one; `seed` is then the next one's. Nothing:
/// hardly any is legal.
inline std::optional<DrawnSpec> draw_legal(std::uint64_t& seed) {
  for (int tries = 0; tries < 50; ++tries) {
    if (std::optional<DrawnSpec> drawn = draw_spec(seed++)) return drawn;
  }
  return std::nullopt;
}

}  // namespace lacuna::test

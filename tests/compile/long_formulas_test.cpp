// Formulas that take many instructions stand in a kernel a few times, not once for each score of a
// lane, so that it is compiled in seconds, at the first choice of tiles and family. What is bounded
// here is the size of the kernel, which does not depend on the machine: a second and a half of
// compiling is some 150 KB.
#include <array>
#include <filesystem>

#include "compiler/target/plan.hpp"
#include "tests/compile/nvrtc.hpp"
#include "tests/spec/golden_file.hpp"

namespace lacuna {
namespace {

/// A spec of tests/device/specs, and what its attend may be.
struct LongFormula {
  const char* spec;
  int head_dim;
  const char* target;
  std::size_t most_kib;
};

/// Of attend alone, as planned; what is wrong with it, or "".
std::string failure_of(const LongFormula& formula, const Nvrtc& nvrtc, cache::Store* store) {
  Diagnostics diagnostics;
  const std::filesystem::path path =
      std::string(LACUNA_SOURCE_DIR "/tests/device/specs/") + formula.spec + ".json";
  const SpecDocument document = read_spec({path, test::read_file(path)}, diagnostics);
  const Plan plan = make_plan(document, {.head_dim = formula.head_dim},
                              find_target(formula.target).value(), diagnostics);
  if (diagnostics.has_errors()) return render(diagnostics, document.source);
  CudaSource source = emit_cuda(plan, document);
  std::erase_if(source.kernels, [](const CudaKernel& kernel) { return kernel.name != "attend"; });
  const Compilation made = compile_stored(store, nvrtc, source, formula.target, diagnostics);
  if (made.cubins.size() != 1) return render(diagnostics, document.source);
  if (made.kernels[0].spill_bytes + made.kernels[0].stack_bytes > 0) return "it spills";
  const std::size_t kib = made.cubins[0].size() / 1024;
  return kib <= formula.most_kib ? "" : "its machine code has " + std::to_string(kib) + " KiB";
}

TEST(LongFormulas, StandInAKernelAFewTimes) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  const auto store = stored_kernels(*nvrtc);
  constexpr auto kFormulas = std::to_array<LongFormula>({{"long-formulas", 64, "sm_90a", 160},
                                                         {"long-formulas", 64, "sm_80", 110},
                                                         {"image-bias", 64, "sm_90a", 240},
                                                         {"image-bias", 64, "sm_80", 160}});
  std::array<std::string, kFormulas.size()> failures;
  run_all(kFormulas.size(),
          [&](std::size_t n) { failures[n] = failure_of(kFormulas[n], *nvrtc, store.get()); });
  for (std::size_t n = 0; n < kFormulas.size(); ++n)
    EXPECT_EQ(failures[n], "") << kFormulas[n].spec << " " << kFormulas[n].target;
}

}  // namespace
}  // namespace lacuna

// Every shipped spec, compiled by NVRTC for every architecture: it compiles, nothing spills (a
// relief that this takes stands in the table), and the resources are those of resources.txt
// (LACUNA_UPDATE_GOLDENS=1 rewrites it). What a target refuses stands there too, with the code of
// the diagnostic. What the planner decides is checked for every case; NVRTC compiles, in the short
// tier, every spec, every attend in each family that it has, every other kernel with and without
// wgmma, every head dim and dtype of each target.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>

#include "compiler/passes/relief.hpp"
#include "compiler/target/plan.hpp"
#include "runtime/engine/build/assembly.hpp"
#include "runtime/engine/build/build.hpp"
#include "tests/compile/nvrtc.hpp"
#include "tests/spec/golden_file.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

const fs::path kSpecs = LACUNA_SOURCE_DIR "/specs";
const fs::path kTable = LACUNA_SOURCE_DIR "/tests/compile/resources.txt";
constexpr const char* kArchitectures[] = {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"};
/// Registers are ptxas's affair: the table's belong to this version.
constexpr int kTableMajor = 13, kTableMinor = 0;
constexpr const char* kRegisters = "  registers ";

struct Case {
  std::string spec, target;  ///< of a branch the name that it has: "nsa-selected"
  BuildOptions options;
  std::shared_ptr<const SpecDocument> document;
};

struct Outcome {
  std::string row;     ///< as in the table
  std::string errors;  ///< of the compilation; empty: compiled, or refused by the planner
  int spill_bytes = 0;
};

void add_cases(const std::shared_ptr<const SpecDocument>& attend, std::vector<Case>& cases) {
  const auto add = [&](const char* target, BuildOptions options) {
    cases.push_back({attend->spec.name, target, options, attend});
  };
  // The kernels of a predictor are compiled again with every spec: fewer cases of those.
  const bool predicts = attend->spec.predictor.has_value();
  for (const char* target : kArchitectures) {
    add(target, {.head_dim = 128});
    if (!predicts) add(target, {.head_dim = 256});
  }
  if (predicts) add("sm_90a", {.head_dim = 256});
  for (const int head_dim : {64, 96})
    if (head_dim == 64 || !predicts) add("sm_90a", {.head_dim = head_dim});
  add("sm_90a", {.head_dim = 128, .dtype = DType::kF16});
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& entry : fs::directory_iterator(kSpecs)) {
    const fs::path& path = entry.path();
    if (path.extension() != ".json" || path.stem() == "schema") continue;
    Diagnostics diagnostics;
    for (SpecDocument& attend :
         branch_documents(read_spec({path, test::read_file(path)}, diagnostics)))
      add_cases(std::make_shared<const SpecDocument>(std::move(attend)), cases);
  }
  std::ranges::sort(cases, {}, [](const Case& c) {
    const auto arch = std::ranges::find(kArchitectures, c.target) - std::begin(kArchitectures);
    return std::tuple(c.spec, c.options.dtype, c.options.head_dim, arch);
  });
  return cases;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string label(const Case& c) {
  return padded(c.spec, 26) + padded(std::string(name_of(c.options.dtype)), 5) + "d" +
         padded(std::to_string(c.options.head_dim), 4) + padded(c.target, 9);
}

std::string shape_text(const AttendPlan& plan) {
  return std::to_string(plan.tile_q.value) + "x" + std::to_string(plan.tile_k.value) + "x" +
         std::to_string(plan.stages.value);
}

/// "attend 224", and the kernels before it: " estimate 115 prepare_q 128".
std::string registers_text(const CudaSource& source, const Compilation& made) {
  std::string text;
  for (auto kernel = source.kernels.rbegin(); kernel != source.kernels.rend(); ++kernel) {
    const auto found = std::ranges::find(made.kernels, kernel->entry, &KernelResources::name);
    if (found == made.kernels.end()) continue;
    text += (text.empty() ? "" : ", ") + kernel->name + " " + std::to_string(found->registers);
  }
  return text;
}

/// What a case compiles: the spec with its estimate's family, the kind of its attend in the family
/// that it has (specs with nothing but lists have the same one), each other kernel by name on
/// targets with wgmma and on others, and the target with head dim and dtype. Nothing of a case that
/// the planner refuses.
std::vector<std::string> compiled_by(const Case& c) {
  Diagnostics diagnostics;
  const Target target = find_target(c.target).value();
  const Plan plan = make_plan(*c.document, c.options, target, diagnostics);
  if (diagnostics.has_errors()) return {};
  const VariantSpec& spec = c.document->spec;
  const bool has_lists_alone = spec.predictor && !spec.gate && spec.attention.score.empty() &&
                               spec.quantise.qk_bits == 16 && spec.quantise.v_bits == 16;
  const auto text = [](AttendFamily family) { return " " + std::string(name_of(family)); };
  std::vector<std::string> parts = {
      spec.name + text(plan.attend.estimate_family.value),
      "attend of " + (has_lists_alone ? "lists" : spec.name) + text(plan.attend.family.value),
      c.target + std::to_string(c.options.head_dim) + std::string(name_of(c.options.dtype))};
  for (const CudaKernel& kernel : emit_cuda(plan, *c.document).kernels)
    if (kernel.name != "attend")
      parts.push_back(kernel.name + (target.has_wgmma ? " beside wgmma" : ""));
  return parts;
}

/// The cases that NVRTC compiles.
std::vector<bool> compiled_cases(const std::vector<Case>& cases) {
  if (!test::is_short_tier()) return std::vector<bool>(cases.size(), true);
  std::vector<std::vector<std::string>> parts;
  for (const Case& c : cases) parts.push_back(compiled_by(c));
  std::vector<bool> chosen(cases.size(), false);
  for (const std::size_t n : test::covering(parts)) chosen[n] = true;
  return chosen;
}

/// Without NVRTC: what the planner decides.
Outcome outcome_at(const Case& c, const Nvrtc* nvrtc, cache::Store* store) {
  Outcome outcome{label(c), "", 0};
  Diagnostics diagnostics;
  const SpecDocument& document = *c.document;
  const Plan plan = make_plan(document, c.options, find_target(c.target).value(), diagnostics);
  if (diagnostics.has_errors()) {
    const auto error =
        std::ranges::find(diagnostics.items, Severity::kError, &Diagnostic::severity);
    outcome.row += "refused " + code_name(error->code);
    return outcome;
  }
  outcome.row += padded(shape_text(plan.attend), 10) + "smem " +
                 padded(std::to_string(plan.attend.smem_bytes.value), 6);
  if (nvrtc == nullptr) return outcome;
  const CudaSource source = emit_cuda(plan, document);
  const Compilation made = compile_stored(store, *nvrtc, source, c.target, diagnostics);
  if (made.cubins.empty() || made.kernels.size() != source.kernels.size()) {
    outcome.errors = render(diagnostics, document.source) + made.log;
    return outcome;
  }
  if (!check_assembly(plan, made, diagnostics))
    outcome.errors = render(diagnostics, document.source);
  for (const KernelResources& kernel : made.kernels) outcome.spill_bytes += kernel.spill_bytes;
  outcome.row += kRegisters + registers_text(source, made);
  return outcome;
}

/// The same further down the ladder of reliefs where the first choice spills, as a build goes; the
/// row is that of the first choice, with the registers of the one that is taken.
Outcome outcome_of(Case c, const Nvrtc* nvrtc, cache::Store* store) {
  Outcome outcome = outcome_at(c, nvrtc, store);
  const std::string first = outcome.row.substr(0, outcome.row.find(kRegisters));
  while (outcome.spill_bytes > 0 && ++c.options.relief < static_cast<int>(reliefs().size())) {
    outcome = outcome_at(c, nvrtc, store);
    outcome.row = first + outcome.row.substr(outcome.row.find(kRegisters)) + ", relief " +
                  std::to_string(c.options.relief);
  }
  return outcome;
}

/// body(n) for n below `count`, on two threads: NVRTC allows it, and most of the time is its own.
void run_all(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t n = next++; n < count; n = next++) body(n);
  };
  std::jthread other(work);
  work();
}

std::vector<std::string> table_rows() {
  std::ifstream file(kTable);
  std::vector<std::string> rows;
  for (std::string row; std::getline(file, row);) {
    if (!row.starts_with('#')) rows.push_back(row);
  }
  return rows;
}

void write_table(const std::vector<Outcome>& outcomes) {
  std::ofstream file(kTable);
  file
      << "# What the shipped specs take of a block, by dtype, head dim and architecture: tile q x\n"
         "# tile k x stages, bytes of dynamic shared memory, registers of a thread (NVRTC "
      << kTableMajor << "." << kTableMinor
      << ").\n# Nothing spills. LACUNA_UPDATE_GOLDENS=1 test_compile rewrites this file.\n";
  for (const Outcome& outcome : outcomes) file << outcome.row << "\n";
}

TEST(Resources, NothingSpillsAndAllIsAsInTheTable) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  const bool knows_registers =
      info(*nvrtc).major == kTableMajor && info(*nvrtc).minor == kTableMinor;
  const std::vector<Case> cases = all_cases();
  const std::vector<bool> compiled = compiled_cases(cases);
  std::vector<Outcome> outcomes(cases.size());
  const auto store = stored_kernels(*nvrtc);
  run_all(cases.size(), [&](std::size_t n) {
    outcomes[n] = outcome_of(cases[n], compiled[n] ? nvrtc.get() : nullptr, store.get());
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.errors, "") << outcome.row;
    EXPECT_EQ(outcome.spill_bytes, 0) << outcome.row;
  }
  if (test::is_updating_goldens()) {
    ASSERT_TRUE(knows_registers) << "the table is for another NVRTC: " << info(*nvrtc).path;
    ASSERT_FALSE(test::is_short_tier()) << "the table has registers of every case";
    return write_table(outcomes);
  }
  const std::vector<std::string> rows = table_rows();
  ASSERT_EQ(rows.size(), outcomes.size()) << "LACUNA_UPDATE_GOLDENS=1 rewrites " << kTable;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const auto known = [&](const std::string& row) {
      return knows_registers && compiled[n] ? row : row.substr(0, row.find(kRegisters));
    };
    EXPECT_EQ(known(outcomes[n].row), known(rows[n]));
  }
}

/// Warps that walk and make rows of codes have few registers.
TEST(Resources, ProducersThatConvertDoNotSpill) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  std::vector<Case> cases;
  const auto add = [&](const char* spec, int head_dim, BatchLayout batch) {
    const fs::path path = kSpecs / (std::string(spec) + ".json");
    Diagnostics diagnostics;
    const SpecDocument document = read_spec({path, test::read_file(path)}, diagnostics);
    cases.push_back({spec,
                     "sm_90a",
                     {.head_dim = head_dim, .batch = batch, .kv = KvFormat::kE4M3},
                     std::make_shared<const SpecDocument>(document)});
  };
  add("dense", 256, BatchLayout::kUniform);
  add("flash-decoding", 128, BatchLayout::kPages);
  if (!test::is_short_tier()) {
    for (const char* spec : {"dense", "softcap", "bsfa", "external-mask"})
      add(spec, 128, BatchLayout::kUniform);
    for (const char* spec : {"dense", "alibi", "window"}) add(spec, 128, BatchLayout::kPages);
    add("dense", 64, BatchLayout::kSequences);
  }
  std::vector<Outcome> outcomes(cases.size());
  const auto store = stored_kernels(*nvrtc);
  run_all(cases.size(),
          [&](std::size_t n) { outcomes[n] = outcome_at(cases[n], nvrtc.get(), store.get()); });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.errors, "") << outcome.row;
    EXPECT_EQ(outcome.spill_bytes, 0) << outcome.row;
  }
}

TEST(Source, IsAlsoOneProgram) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  Diagnostics diagnostics;
  const fs::path path = kSpecs / "sparge.json";
  const SpecDocument document = read_spec({path, test::read_file(path)}, diagnostics);
  const Plan plan =
      make_plan(document, {.head_dim = 128}, find_target("sm_90a").value(), diagnostics);
  const CudaSource source = emit_cuda(plan, document);
  const CudaSource whole{"", {{"all", "all", source_text(source)}}, source.options};
  const Compilation apart = compile_cuda(*nvrtc, source, "sm_90a", {}, diagnostics);
  const Compilation together = compile_cuda(*nvrtc, whole, "sm_90a", {}, diagnostics);
  ASSERT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  EXPECT_EQ(apart.cubins.size(), source.kernels.size());
  EXPECT_EQ(together.cubins.size(), 1u);
  ASSERT_EQ(apart.kernels.size(), source.kernels.size());
  for (const KernelResources& kernel : apart.kernels) {
    const auto found = std::ranges::find(together.kernels, kernel.name, &KernelResources::name);
    ASSERT_NE(found, together.kernels.end()) << kernel.name;
    EXPECT_EQ(found->spill_bytes, 0) << kernel.name;
  }
}

/// A spec changed in memory, and the largest tile.k that the planner lets through on sm_90a.
struct Extreme {
  const char* spec;
  bool gates_warps;
  int head_dim, tile_k;
};

SpecDocument document_of(const Extreme& extreme, int tile_k) {
  Diagnostics diagnostics;
  const fs::path path = kSpecs / (std::string(extreme.spec) + ".json");
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

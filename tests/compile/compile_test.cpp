// Every shipped spec, compiled by NVRTC for every architecture: it compiles, nothing spills (a
// relief that this takes stands in the table), and the resources are those of resources.txt
// (LACUNA_UPDATE_GOLDENS=1 rewrites it). What a target refuses stands there too, with the code of
// the diagnostic. What the planner decides is checked for every case; which kernels NVRTC compiles
// in the short tier, shown_by() says.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>

#include "compiler/ir/names.hpp"
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
  std::string row;      ///< as in the table
  std::string errors;   ///< of the compilation; empty: compiled, or refused by the planner
  int local_bytes = 0;  ///< of stacks and spills
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
  // Attend has code of its own for batches of sequences.
  if (predicts) return add("sm_90a", {.head_dim = 128, .batch = BatchLayout::kPages});
  add("sm_90a", {.head_dim = 128, .batch = BatchLayout::kSequences});
  if (attend->spec.branch.count == 0)
    add("sm_90a", {.head_dim = 192, .batch = BatchLayout::kSequences, .head_dim_v = 128});
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
    return std::tuple(c.spec, c.options.batch, c.options.dtype, c.options.head_dim, arch);
  });
  return cases;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string label(const Case& c) {
  const bool is_uniform = c.options.batch == BatchLayout::kUniform;
  return padded(c.spec, 26) + padded(std::string(name_of(c.options.dtype)), 5) + "d" +
         padded(std::to_string(c.options.head_dim), 4) + padded(c.target, 9) +
         (is_uniform ? "" : std::string(name_of(c.options.batch)) + " ") +
         (c.options.head_dim_v > 0 ? "v" + std::to_string(c.options.head_dim_v) + " " : "");
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

/// A kernel of a case, and what it shows when it is compiled.
struct Unit {
  std::size_t at = 0;  ///< the case's place
  std::string kernel;
  std::vector<std::string> shows;
};

/// Which parts a kernel of attend consists of.
std::string parts_text(const AttendPlan& plan, const VariantSpec& spec) {
  std::string text(name_of(plan.family.value));
  for (const std::string_view part :
       {name_of(plan.walk.value), name_of(plan.producer.value), name_of(plan.keys.value),
        name_of(plan.values.value), name_of(plan.consumer.value), name_of(plan.gate_policy.value)})
    text += " " + std::string(part);
  return text + (spec.attention.score.empty() ? "" : " with scores");
}

/// The formulas of attention, of a spec that has parameters for them to read.
std::string parameters_text(const VariantSpec& spec) {
  std::string text;
  const auto add = [&](const char* name, const Expr& formula) {
    if (!formula.empty() && !spec.params.empty()) text += name;
  };
  add(" mask", spec.attention.mask);
  add(" score", spec.attention.score);
  add(" sink", spec.attention.sink);
  return text;
}

/// That the spec's formulas compile, which stand in front of every kernel. Of attend, the spec
/// (those with nothing but lists have the same one), the parts that it consists of, and the target
/// with head dim and dtype; of an estimate, the spec, and the family with the template; other
/// kernels differ little from spec to spec, so any of that name shows it, on targets with wgmma and
/// on others.
std::vector<std::string> shown_by(const Case& c, const Plan& plan, const CudaKernel& kernel) {
  const VariantSpec& spec = c.document->spec;
  std::vector<std::string> shown = {spec.name};
  if (kernel.name.starts_with("attend")) {
    const bool has_lists_alone = spec.predictor && !spec.gate && spec.attention.score.empty() &&
                                 spec.quantise.qk_bits == 16 && spec.quantise.v_bits == 16;
    const bool is_packed = kernel.name != "attend";
    shown.push_back(kernel.name + " of " + (has_lists_alone ? "lists" : spec.name));
    shown.push_back(kernel.name + " by " +
                    parts_text(is_packed ? *plan.packed : plan.attend, spec));
    shown.push_back(c.target + std::to_string(c.options.head_dim) +
                    std::string(name_of(c.options.dtype)));
    if (plan.program.batch != BatchLayout::kUniform)
      shown.push_back("parameters in a batch: " + parameters_text(spec));
  } else if (kernel.name.starts_with("estimate")) {
    const std::string include = kernel.text.substr(0, kernel.text.find('\n', 1));
    shown.push_back(kernel.name + " of " + spec.name);
    shown.push_back(std::string(name_of(plan.attend.estimate_family.value)) + include);
  } else {
    shown.push_back(kernel.name + (plan.target.has_wgmma ? " beside wgmma" : ""));
  }
  return shown;
}

/// Those of a case; none where the planner refuses it.
std::vector<Unit> units_of(const Case& c, std::size_t at) {
  Diagnostics diagnostics;
  const Plan plan = make_plan(*c.document, c.options, find_target(c.target).value(), diagnostics);
  if (diagnostics.has_errors()) return {};
  std::vector<Unit> units;
  for (const CudaKernel& kernel : emit_cuda(plan, *c.document).kernels)
    units.push_back({at, kernel.name, shown_by(c, plan, kernel)});
  return units;
}

/// The kernels that NVRTC compiles, by name, for each case.
using Names = std::set<std::string>;
std::vector<Names> compiled_kernels(const std::vector<Case>& cases) {
  std::vector<Unit> units;
  for (std::size_t n = 0; n < cases.size(); ++n)
    std::ranges::move(units_of(cases[n], n), std::back_inserter(units));
  std::vector<std::vector<std::string>> shown;
  for (const Unit& unit : units) shown.push_back(unit.shows);
  std::vector<Names> compiled(cases.size());
  if (!test::is_short_tier()) {
    for (const Unit& unit : units) compiled[unit.at].insert(unit.kernel);
  } else {
    for (const std::size_t n : test::covering(shown)) compiled[units[n].at].insert(units[n].kernel);
  }
  return compiled;
}

/// Without kernels to compile: what the planner decides.
Outcome outcome_at(const Case& c, const Names& kernels, const Nvrtc& nvrtc, cache::Store* store) {
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
  if (kernels.empty()) return outcome;
  CudaSource source = emit_cuda(plan, document);
  std::erase_if(source.kernels,
                [&](const CudaKernel& kernel) { return !kernels.contains(kernel.name); });
  const Compilation made = compile_stored(store, nvrtc, source, c.target, diagnostics);
  if (made.cubins.empty() || made.kernels.size() != source.kernels.size()) {
    outcome.errors = render(diagnostics, document.source) + made.log;
    return outcome;
  }
  if (!check_assembly(plan, made, diagnostics))
    outcome.errors = render(diagnostics, document.source);
  for (const KernelResources& kernel : made.kernels)
    outcome.local_bytes += kernel.spill_bytes + kernel.stack_bytes;
  outcome.row += kRegisters + registers_text(source, made);
  return outcome;
}

/// The same further down the ladder of reliefs where the first choice spills, as a build goes; the
/// row is that of the first choice, with the registers of the one that is taken.
Outcome outcome_of(Case c, const Names& kernels, const Nvrtc& nvrtc, cache::Store* store) {
  Outcome outcome = outcome_at(c, kernels, nvrtc, store);
  const std::string first = outcome.row.substr(0, outcome.row.find(kRegisters));
  while (outcome.local_bytes > 0 && ++c.options.relief < static_cast<int>(reliefs().size())) {
    outcome = outcome_at(c, kernels, nvrtc, store);
    outcome.row = first + outcome.row.substr(outcome.row.find(kRegisters)) + ", relief " +
                  std::to_string(c.options.relief);
  }
  return outcome;
}

std::vector<std::string> table_rows() {
  std::ifstream file(kTable);
  std::vector<std::string> rows;
  for (std::string row; std::getline(file, row);) {
    if (!row.starts_with('#')) rows.push_back(row);
  }
  return rows;
}

/// A row of the table with the registers of these kernels alone; the others are not compiled. The
/// row also names the plan that was taken to need fewer registers, if any. That stays in the row
/// where attend is one of the kernels, because attend is nearly always why such a plan is taken.
std::string shortened(const std::string& row, const Names& kernels) {
  const std::size_t end = std::min(row.find(kRegisters), row.size());
  std::string text = row.substr(0, end);
  if (end == row.size()) return text;
  std::istringstream words(row.substr(end + std::string_view(kRegisters).size()));
  for (std::string word; std::getline(words >> std::ws, word, ',');) {
    const std::string name = word.substr(0, word.find(' '));
    if (kernels.contains(name == "relief" ? "attend" : name)) text += " " + word;
  }
  return text;
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
  const std::vector<Names> compiled = compiled_kernels(cases);
  std::vector<Outcome> outcomes(cases.size());
  const auto store = stored_kernels(*nvrtc);
  run_all(cases.size(), [&](std::size_t n) {
    outcomes[n] = outcome_of(cases[n], compiled[n], *nvrtc, store.get());
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.errors, "") << outcome.row;
    EXPECT_EQ(outcome.local_bytes, 0) << outcome.row;
  }
  if (test::is_updating_goldens()) {
    ASSERT_TRUE(knows_registers) << "the table is for another NVRTC: " << info(*nvrtc).path;
    ASSERT_FALSE(test::is_short_tier()) << "the table has registers of every case";
    return write_table(outcomes);
  }
  const std::vector<std::string> rows = table_rows();
  ASSERT_EQ(rows.size(), outcomes.size()) << "LACUNA_UPDATE_GOLDENS=1 rewrites " << kTable;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const Names known = knows_registers ? compiled[n] : Names();
    EXPECT_EQ(shortened(outcomes[n].row, known), shortened(rows[n], known));
  }
}

/// Warps that walk and make rows of codes have few registers.
TEST(Resources, ProducersThatConvertDoNotSpill) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  std::vector<Case> cases;
  const auto add = [&](const char* spec, int head_dim, BatchLayout batch, int head_dim_v = 0) {
    const fs::path path = kSpecs / (std::string(spec) + ".json");
    Diagnostics diagnostics;
    const SpecDocument document = read_spec({path, test::read_file(path)}, diagnostics);
    const BuildOptions options{
        .head_dim = head_dim, .batch = batch, .kv = KvFormat::kE4M3, .head_dim_v = head_dim_v};
    cases.push_back({spec, "sm_90a", options, std::make_shared<const SpecDocument>(document)});
  };
  add("dense", 256, BatchLayout::kUniform);
  for (const int head_dim : {128, 192}) add("flash-decoding", head_dim, BatchLayout::kPages, 128);
  if (!test::is_short_tier()) {
    for (const char* spec : {"dense", "softcap", "bsfa", "external-mask"})
      add(spec, 128, BatchLayout::kUniform);
    for (const char* spec : {"dense", "alibi", "window"}) add(spec, 128, BatchLayout::kPages);
    add("dense", 64, BatchLayout::kSequences);
  }
  std::vector<Outcome> outcomes(cases.size());
  const auto store = stored_kernels(*nvrtc);
  run_all(cases.size(), [&](std::size_t n) {
    outcomes[n] = outcome_at(cases[n], {"attend"}, *nvrtc, store.get());
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.errors, "") << outcome.row;
    EXPECT_EQ(outcome.local_bytes, 0) << outcome.row;
  }
}

/// Kernels that are short of registers, of specs that are not shipped.
struct ShortOfRegisters {
  const char *name, *arch, *kernel, *spec;
};
constexpr ShortOfRegisters kShortOfRegisters[] = {
    // 64 scores in each thread, of which each is asked a mask and a reference.
    {"reference", "sm_90a", "reference", R"({"version": 1, "name": "reference",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"sink": {"type": "i32"}, "window": {"type": "i32"}},
  "predictor": {"tile": {"q": 64, "k": 1},
    "estimate": {"q": "tokens", "k": "tokens", "reference": "k < sink or q - k < window"},
    "keep": "p > 0.01"}})"},
    // Cells of 16, of which two blocks share a multiprocessor.
    {"narrow-cells", "sm_80", "estimate", R"spec({"version": 1, "name": "narrow-cells",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"blocks": {"type": "i32"}},
  "predictor": {"tile": {"q": 64, "k": 64},
    "estimate": {"q": "mean(16)", "k": "mean(16)", "reduce": "max", "normalise": "softmax"},
    "keep": "rank < blocks"}})spec"},
};

TEST(Resources, KernelsThatAreShortOfRegistersDoNotSpill) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  const auto store = stored_kernels(*nvrtc);
  for (const auto& [name, arch, kernel, spec] : kShortOfRegisters) {
    Diagnostics diagnostics;
    const auto document =
        std::make_shared<const SpecDocument>(read_spec({name, spec}, diagnostics));
    const Case c{name, arch, {.head_dim = 64}, document};
    const Outcome outcome = outcome_at(c, {kernel}, *nvrtc, store.get());
    EXPECT_EQ(outcome.errors, "") << outcome.row;
    EXPECT_EQ(outcome.local_bytes, 0) << outcome.row;
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
      make_plan(document, {.head_dim = 128}, find_target("sm_80").value(), diagnostics);
  const CudaSource source = emit_cuda(plan, document);
  const CudaSource whole{"", {{"all", "all", source_text(source)}}, source.options};
  const Compilation made = compile_cuda(*nvrtc, whole, "sm_80", {}, diagnostics);
  ASSERT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  EXPECT_EQ(made.cubins.size(), 1u);
  ASSERT_EQ(made.kernels.size(), source.kernels.size());
  for (const CudaKernel& kernel : source.kernels) {
    const auto found = std::ranges::find(made.kernels, kernel.entry, &KernelResources::name);
    ASSERT_NE(found, made.kernels.end()) << kernel.entry;
    EXPECT_EQ(found->spill_bytes, 0) << kernel.entry;
  }
}

}  // namespace
}  // namespace lacuna

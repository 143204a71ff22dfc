// Golden texts: every form that `emit` prints for each shipped spec, for five architectures, at
// head_dim 128 in bf16. Architectures whose texts differ only in their name share one file, that of
// the first. LACUNA_UPDATE_GOLDENS=1 rewrites the files; a difference shows as a diff.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "compiler/emit/emit.hpp"
#include "compiler/target/plan.hpp"
#include "compiler/target/plan_values.hpp"
#include "tests/spec/golden_file.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

const fs::path kSpecs = LACUNA_SOURCE_DIR "/specs";
const fs::path kGoldens = LACUNA_SOURCE_DIR "/tests/golden";
constexpr const char* kArchitectures[] = {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

std::vector<std::string> spec_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kSpecs)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".json" && path.stem() != "schema") names.push_back(path.stem());
  }
  std::ranges::sort(names);
  return names;
}

/// Of one attend; of a branch under the name that it has.
void add_texts(const SpecDocument& document, Diagnostics& diagnostics,
               std::map<std::string, std::string>& texts) {
  const BuildOptions options;
  const std::string& spec = document.spec.name;
  texts[spec + ".program.txt"] = print_program(build_program(document, options, diagnostics));
  for (const char* arch : kArchitectures) {
    const Plan plan = make_plan(document, options, find_target(arch).value(), diagnostics);
    const std::string suffix = std::string(".") + arch + ".txt";
    texts[spec + ".plan" + suffix] = print_plan(plan);
    texts[spec + ".cuda" + suffix] = source_text(emit_cuda(plan, document));
    texts[spec + ".launch" + suffix] = print_launch_program(emit_launch_program(plan));
  }
}

SpecDocument read_shipped(const std::string& spec, Diagnostics& diagnostics) {
  // The path as a user in the root of the repository would give it.
  return read_spec({"specs/" + spec + ".json", test::read_file(kSpecs / (spec + ".json"))},
                   diagnostics);
}

/// The texts by golden file name.
std::map<std::string, std::string> texts_of(const std::string& spec) {
  Diagnostics diagnostics;
  const SpecDocument document = read_shipped(spec, diagnostics);
  std::map<std::string, std::string> texts;
  for (const SpecDocument& attend : branch_documents(document))
    add_texts(attend, diagnostics, texts);
  // That a tile is small for some architecture may be said of a method that asks for it, and that
  // another decides a gate by more rows.
  std::erase_if(diagnostics.items, [](const Diagnostic& d) {
    return d.severity == Severity::kPerf || d.severity == Severity::kNote;
  });
  EXPECT_EQ(render(diagnostics, document.source), "");
  return texts;
}

std::string with_any_name(std::string text, const std::string& arch) {
  for (std::size_t at = text.find(arch); at != std::string::npos; at = text.find(arch, at))
    text.replace(at, arch.size(), "ARCH");
  return text;
}

/// The texts that have a file.
std::map<std::string, std::string> kept_texts(const std::map<std::string, std::string>& texts) {
  std::map<std::string, std::string> kept = texts;
  std::set<std::string> seen;
  for (const std::string arch : kArchitectures) {
    const std::string suffix = "." + arch + ".txt";
    for (const auto& [name, text] : texts) {
      if (!name.ends_with(suffix)) continue;
      const std::string kind = name.substr(0, name.size() - suffix.size());
      if (!seen.insert(kind + "\n" + with_any_name(text, arch)).second) kept.erase(name);
    }
  }
  return kept;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, FormsAreAsTheyWere) {
  for (const auto& [name, text] : kept_texts(texts_of(GetParam())))
    test::expect_golden(kGoldens / name, text);
}

TEST_P(Golden, LoweringIsDeterministic) { EXPECT_EQ(texts_of(GetParam()), texts_of(GetParam())); }

/// Attend alone is a page or two, conditions of a mask or parts of a score included; other kernels
/// add hooks and arguments, each of them a Config and an entry.
TEST_P(Golden, KernelsAreShort) {
  constexpr int kAttendLines = 150, kHookLines = 40, kKernelLines = 46;
  for (const auto& [name, text] : texts_of(GetParam())) {
    if (name.find(".cuda.") == std::string::npos) continue;
    int entries = 0;
    for (std::size_t at = text.find("__global__"); at != std::string::npos;
         at = text.find("__global__", at + 1)) {
      ++entries;
    }
    ASSERT_GE(entries, 1) << name;
    const int most = kAttendLines + (entries > 1 ? kHookLines + kKernelLines * (entries - 1) : 0);
    EXPECT_LE(std::ranges::count(text, '\n'), most) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Specs, Golden, testing::ValuesIn(spec_names()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

/// Neither of a spec that is gone nor of an architecture that has come to agree with another.
TEST(Goldens, NoFileIsLeftOver) {
  std::set<std::string> names;
  for (const std::string& spec : spec_names())
    for (const auto& [name, text] : kept_texts(texts_of(spec))) names.insert(name);
  for (const auto& entry : fs::directory_iterator(kGoldens)) {
    const fs::path file = entry.path().filename();
    if (file.extension() != ".txt" || names.contains(file)) continue;
    if (test::is_updating_goldens()) {
      fs::remove(entry.path());
    } else {
      ADD_FAILURE() << file << ": LACUNA_UPDATE_GOLDENS=1 removes it";
    }
  }
}

}  // namespace
}  // namespace lacuna

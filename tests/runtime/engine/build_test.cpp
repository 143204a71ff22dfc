// From a plan to a cubin: the key, the store, and what LACUNA_DUMP leaves behind.
#include "runtime/engine/build/build.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/engine/build/assembly.hpp"
#include "runtime/engine/build/metadata.hpp"
#include "tests/runtime/child_process.hpp"
#include "tests/runtime/scoped_variable.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

const char* const kSpec = R"({"version": 1, "name": "causal",
  "attention": {"mask": "k <= q + n_k - n_q"}})";

/// The same in small tiles: NVRTC needs a sixth of the time.
const char* const kQuick = R"({"version": 1, "name": "causal", "tile": {"q": 128, "k": 16},
  "attention": {"mask": "k <= q + n_k - n_q"}})";

class Build : public testing::Test {
 protected:
  void SetUp() override {
    nvrtc = load_nvrtc(0, errors);
    if (nvrtc == nullptr) GTEST_SKIP() << errors.items.front().message;
  }

  SpecDocument read(const std::string& path) { return read_spec({path, kQuick}, errors); }
  Plan plan(const SpecDocument& document, const char* target = "sm_80") {
    return make_plan(document, {64, DType::kBF16}, *find_target(target), errors);
  }
  BuiltKernel build(const Plan& p, const SpecDocument& document, cache::Store* store) {
    return build_kernel({p, document, at_hand(nvrtc), store, ""}, errors);
  }

  cache::StoreOptions store_options() const {
    cache::StoreOptions options;
    options.directory = directory.text();
    return options;
  }

  Diagnostics errors;
  std::shared_ptr<const Nvrtc> nvrtc;
  TemporaryDirectory directory;
};

/// A plan of the wgmma family or, on sm_80, of the mma family, and what its compiler might say.
struct Assembled {
  Plan plan;
  Compilation compilation;
  std::string check() const {
    Diagnostics found;
    const bool accepted = check_assembly(plan, compilation, found);
    EXPECT_EQ(accepted, found.items.empty());
    for (const Diagnostic& d : found.items) EXPECT_EQ(d.code, Code::kAssembly);
    return render(found, {"causal.json", ""});
  }
};

Assembled assembled(const char* target) {
  Diagnostics errors;
  const SpecDocument document = read_spec({"causal.json", kSpec}, errors);
  Assembled made{make_plan(document, {}, *find_target(target), errors), {}};
  EXPECT_FALSE(errors.has_errors());
  made.compilation.kernels = {{"lacuna_attend_causal", 168, 0, 0, 0}};
  made.compilation.log = "ptxas info    : Used 168 registers\n";
  return made;
}

TEST(Assembly, OfTheWgmmaFamilyIsWhatWasPlanned) {
  EXPECT_EQ(assembled("sm_90a").check(), "");
  Assembled serialised = assembled("sm_90a");
  serialised.compilation.log += "ptxas info    : (C7510) Potential Performance Loss: serialized\n";
  EXPECT_EQ(serialised.check(),
            "causal.json: error: the assembler undid what kernel causal relies on for sm_90a "
            "[E0707]\nnote: ptxas info    : (C7510) Potential Performance Loss: serialized\n");
  Assembled spilling = assembled("sm_90a");
  spilling.compilation.kernels[0].stack_bytes = 40;
  spilling.compilation.kernels[0].spill_bytes = 76;
  EXPECT_EQ(spilling.check(),
            "causal.json: error: the assembler undid what kernel causal relies on for sm_90a "
            "[E0707]\nnote: lacuna_attend_causal: expected no local memory, got 40 bytes of stack "
            "and 76 bytes of spills\n");
}

TEST(Assembly, OfOtherKernelsIsNotJudged) {
  Assembled mma = assembled("sm_80");
  mma.compilation.kernels[0].spill_bytes = 76;
  EXPECT_EQ(mma.check(), "");
  Assembled other = assembled("sm_90a");
  other.compilation.kernels.push_back({"lacuna_prepare_q_causal", 255, 8, 8, 0});
  EXPECT_EQ(other.check(), "");
}

TEST_F(Build, AMissIsCompiledAndAHitKnowsItsResources) {
  const SpecDocument document = read("a.json");
  const Plan p = plan(document);
  ASSERT_FALSE(errors.has_errors()) << render(errors, document.source);
  BuiltKernel first;
  {
    cache::Store store(store_options());
    first = build(p, document, &store);
    ASSERT_FALSE(errors.has_errors()) << render(errors, document.source);
    EXPECT_FALSE(first.hit);
    EXPECT_TRUE(store.publish(first.key, first.entry));
  }
  cache::Store store(store_options());
  const BuiltKernel second = build(p, document, &store);
  EXPECT_TRUE(second.hit);
  EXPECT_EQ(second.entry.cubins, first.entry.cubins);
  EXPECT_EQ(second.compile_ms, first.compile_ms);
  ASSERT_EQ(second.kernels.size(), 1U);
  EXPECT_EQ(second.kernels[0].name, first.source.kernels[0].entry);
  EXPECT_GT(second.kernels[0].registers, 0);
  EXPECT_EQ(second.kernels[0].registers, first.kernels[0].registers);
  EXPECT_GE(second.kernels[0].smem_bytes, p.attend.smem_bytes.value);
}

TEST_F(Build, TheKeyIgnoresWhereTheSpecLiesAndSeesTheTarget) {
  const SpecDocument here = read("here.json"), there = read("/some/where/there.json");
  const CudaSource a = emit_cuda(plan(here), here), b = emit_cuda(plan(there), there);
  ASSERT_NE(source_text(a), source_text(b)) << "the #line directives should differ";
  EXPECT_EQ(kernel_key(a, "sm_80", "", errors).text, kernel_key(b, "sm_80", "", errors).text);
  const CudaSource hopper = emit_cuda(plan(here, "sm_90a"), here);
  EXPECT_NE(kernel_key(a, "sm_80", "", errors).sha256,
            kernel_key(hopper, "sm_90a", "", errors).sha256);
}

TEST_F(Build, AHostileNameOfASpecChangesNoKernel) {
  const SpecDocument plain = read("a.json");
  const SpecDocument hostile =
      read("a\"\n#define mask(...) mask(__VA_ARGS__) { return true; }\xFF");
  const BuiltKernel expected = build(plan(plain), plain, nullptr);
  const BuiltKernel got = build(plan(hostile), hostile, nullptr);
  ASSERT_FALSE(errors.has_errors()) << render(errors, plain.source);
  EXPECT_EQ(got.key.sha256, expected.key.sha256);
  EXPECT_EQ(got.entry.cubins, expected.entry.cubins);
}

TEST_F(Build, TheKeySeesTheHeaders) {
  const SpecDocument document = read("a.json");
  const CudaSource source = emit_cuda(plan(document), document);
  std::ofstream(directory.path() / "one.cuh") << "// other\n";
  EXPECT_NE(kernel_key(source, "sm_80", "", errors).sha256,
            kernel_key(source, "sm_80", directory.text(), errors).sha256);
  EXPECT_FALSE(errors.has_errors());
}

class StoredEntry : public Build {
 protected:
  /// An entry that `change` has spoilt is in the store: it is not taken, but built anew.
  template <class Change>
  void expect_rebuilt_after(Change change) {
    const SpecDocument document = read("a.json");
    const Plan p = plan(document);
    const BuiltKernel built = build(p, document, nullptr);
    ASSERT_FALSE(errors.has_errors()) << render(errors, document.source);
    cache::Store store(store_options());
    cache::Entry entry = built.entry;
    change(entry);
    ASSERT_TRUE(store.publish(built.key, entry));
    const BuiltKernel again = build(p, document, &store);
    EXPECT_FALSE(again.hit);
    EXPECT_EQ(again.entry.cubins, built.entry.cubins);
  }
};

TEST_F(StoredEntry, WithUnreadableMetadataIsRebuilt) {
  expect_rebuilt_after([](cache::Entry& entry) { entry.metadata = "{}"; });
}

TEST_F(StoredEntry, OfAnotherNumberOfKernelsIsRebuilt) {
  expect_rebuilt_after([](cache::Entry& entry) { entry.cubins.push_back(entry.cubins[0]); });
}

TEST_F(Build, DumpLeavesSourceLogPtxAndCubin) {
  const ScopedVariable dump("LACUNA_DUMP", directory.text().c_str());
  const SpecDocument document = read("a.json");
  const BuiltKernel built = build(plan(document), document, nullptr);
  const std::string base = directory.text() + "/causal-sm_80-" + built.key.sha256.substr(0, 12);
  for (const char* end : {".cu", ".key.txt", ".log", ".attend.ptx", ".attend.cubin"}) {
    EXPECT_GT(std::filesystem::file_size(base + end), 0U) << end;
  }
  std::ifstream file(base + ".attend.cubin", std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), built.entry.cubins.at(0));
}

TEST_F(Build, ADumpBeyondTheLimitOfFilesCostsTheDumpAlone) {
  const ScopedVariable dump("LACUNA_DUMP", directory.text().c_str());
  const SpecDocument document = read("a.json");
  EXPECT_EQ(outcome_of_child([&] {
              const struct rlimit limit { 100, 100 };
              ::setrlimit(RLIMIT_FSIZE, &limit);
              return build(plan(document), document, nullptr).entry.cubins.empty() ? 1 : 0;
            }),
            "exit 0");
}

TEST(Metadata, IsReadAsWritten) {
  KernelMetadata metadata;
  metadata.spec = "bsfa";
  metadata.compile_ms = 271.5;
  metadata.kernels = {{"k", 168, 4, 8, 98304}};
  metadata.relief = 3;
  metadata.relieved_source_sha256 = "5a";
  metadata.complaints = {"spills"};
  const auto read = read_metadata(write_metadata(metadata));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->spec, "bsfa");
  EXPECT_EQ(read->compile_ms, 271.5);
  ASSERT_EQ(read->kernels.size(), 1U);
  EXPECT_EQ(read->kernels[0].registers, 168);
  EXPECT_EQ(read->kernels[0].spill_bytes, 4);
  EXPECT_EQ(read->kernels[0].smem_bytes, 98304);
  EXPECT_EQ(read->relief, 3);
  EXPECT_EQ(read->relieved_source_sha256, "5a");
  EXPECT_EQ(read->complaints, metadata.complaints);
}

TEST(Metadata, AnythingElseIsRefused) {
  for (const char* text : {"", "{}", "[1]", "{\"spec\": 3}", "\xff"}) {
    EXPECT_FALSE(read_metadata(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace lacuna

// Kernels that a host brings along: with them a GPU serves where there is no NVRTC, and where
// compiling is forbidden; without them such a call fails, and nobody is moved to the CPU.

#include "cache/bundle.hpp"
#include "cache/tuning/tuning.hpp"
#include "runtime/engine/build/build.hpp"
#include "runtime/engine/build/metadata.hpp"
#include "runtime/tune/bucket.hpp"
#include "tests/runtime/fake_gpu/protocol.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

constexpr const char* kShipped = R"({"version": 1, "name": "shipped"})";

class ShippedKernels : public Protocol {
 protected:
  /// What `lacuna build --bundle` writes.
  static std::string make_bundle(const Target& target, DType dtype = DType::kBF16) {
    Diagnostics errors;
    const SpecDocument document = read_spec({"shipped.json", kShipped}, errors);
    const BuildOptions options{.head_dim = 128, .dtype = dtype};
    const Plan plan = make_plan(document, options, target, errors);
    const BuiltKernel built = build_kernel({.plan = plan,
                                            .document = document,
                                            .nvrtc = at_hand(load_nvrtc(0, errors)),
                                            .template_path = "",
                                            .options = &options},
                                           errors);
    EXPECT_FALSE(errors.has_errors()) << render(errors, document.source);
    return cache::encode_bundle({built.entry});
  }
  static const std::string& bundle() {
    static const std::string bytes = make_bundle(*find_target("sm_90a"));
    return bytes;
  }

  Engine strict_engine() {
    EngineOptions options;
    options.cache_directory = cache.text();
    options.forbid_compiling = true;
    options.on_event = [this](const char* event, const char*) { events.push_back(event); };
    return Engine::create(options);
  }
  static Kernel shipped(const Engine& e) { return compiled(e, kShipped, "shipped.json"); }

  static std::string refusal(Kernel kernel, lacuna_status expected = LACUNA_ERROR_ENVIRONMENT) {
    Status status;
    kernel.prepare(status);
    EXPECT_EQ(status.code, expected);
    return status.text;
  }
};

TEST_F(ShippedKernels, ServeWhereCompilingIsForbidden) {
  const Engine e = strict_engine();
  e.add_kernels(bundle().data(), bundle().size());
  Kernel kernel = shipped(e);
  kernel.prepare();
  EXPECT_EQ(events, (std::vector<std::string>{"device", "cache_hit"}));
  EXPECT_EQ(count("cuLibraryLoadData"), 1);
  kernel.launch(arguments(kernel));
  EXPECT_EQ(count("cuLaunchKernelEx"), 1);
  EXPECT_TRUE(stored().empty()) << "they are not copied into the cache";
}

TEST_F(ShippedKernels, ServeAGpuWithoutNvrtc) {
  (void)bundle();  // made while there is one
  const ScopedVariable nvrtc("LACUNA_NVRTC_PATH", "/nonexistent");
  const Engine e = engine_with_store(cache);
  EXPECT_EQ(e.device(), "cuda:0");
  EXPECT_EQ(e.note(), "");
  const std::string missing = refusal(shipped(e));
  EXPECT_NE(missing.find("no NVRTC: "), std::string::npos) << missing;
  EXPECT_NE(missing.find("note: no kernels were added (lacuna_engine_add_kernels)"),
            std::string::npos)
      << missing;
  e.add_kernels(bundle().data(), bundle().size());
  Kernel kernel = shipped(e);
  kernel.prepare();
  kernel.launch(arguments(kernel));
}

TEST_F(ShippedKernels, AWarmCacheServesAGpuWithoutNvrtc) {
  {
    Kernel kernel = shipped(engine_with_store(cache));
    kernel.prepare();
  }
  const ScopedVariable nvrtc("LACUNA_NVRTC_PATH", "/nonexistent");
  Kernel kernel = shipped(engine_with_store(cache));
  kernel.prepare();
  kernel.launch(arguments(kernel));
}

TEST_F(ShippedKernels, OfOtherVariantsAreNamed) {
  const Engine e = strict_engine();
  const std::string other = make_bundle(*find_target("sm_90a"), DType::kF16);
  e.add_kernels(other.data(), other.size());
  const std::string text = refusal(shipped(e));
  EXPECT_EQ(text,
            "shipped.json: error: kernel shipped would have to be compiled, which is forbidden "
            "[E0714]\n"
            "note: kernel shipped on sm_90a, head dim 128, bf16, is neither among the kernels that "
            "were added nor in the cache\n"
            "note: kernels were added for shipped on sm_90a, head dim 128, f16 (by lacuna " +
                std::string(lacuna_version()) +
                ")\n"
                "help: make it with this version of lacuna, on a machine with NVRTC: lacuna build "
                "SPEC --arch sm_90a --head-dim 128 --dtype bf16 --bundle FILE\n");
  EXPECT_EQ(e.device(), "cuda:0");
}

TEST_F(ShippedKernels, TheCommandThatIsMissingNamesAllThatWasAskedFor) {
  const Engine e = strict_engine();
  e.add_kernels(bundle().data(), bundle().size());
  CompileOptions options;
  options.head_dim_v = 64;
  options.kv = Kv::kE4M3;
  options.batch = Batch::kPages;
  const std::string text = refusal(e.compile(Spec::parse(kShipped, "shipped.json"), options));
  EXPECT_NE(text.find("head dim 128 (64 of v and o), bf16, batch pages, k and v of e4m3, is "
                      "neither among"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("lacuna build SPEC --arch sm_90a --head-dim 128 --head-dim-v 64 --dtype bf16 "
                      "--batch pages --kv e4m3 --bundle FILE"),
            std::string::npos)
      << text;
}

TEST_F(ShippedKernels, WhatWasAddedIsNamedWithAllThatItWasMadeFor) {
  Diagnostics errors;
  const SpecDocument document = read_spec({"shipped.json", kShipped}, errors);
  const BuildOptions options{.head_dim = 128, .kv = KvFormat::kE4M3, .head_dim_v = 64};
  const KernelMetadata made =
      metadata_for(make_plan(document, options, *find_target("sm_90a"), errors));
  const auto read = read_metadata(write_metadata(made));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->head_dim_v, 64);
  EXPECT_EQ(read->kv, "e4m3");
}

TEST_F(ShippedKernels, TheEnvironmentForbidsCompilingToo) {
  const ScopedVariable off("LACUNA_COMPILE", "off");
  const Engine e = engine_with_store(cache);
  EXPECT_NE(refusal(shipped(e)).find("[E0714]"), std::string::npos);
  const ScopedVariable wrong("LACUNA_COMPILE", "of");
  Status status;
  EXPECT_FALSE(Engine::create({}, status));
  EXPECT_EQ(status.code, LACUNA_ERROR_INPUT);
  EXPECT_EQ(status.text, "lacuna: error: LACUNA_COMPILE: expected on or off, got of [E0503]\n");
}

TEST_F(ShippedKernels, ThatAreDamagedAreRefusedAsAWhole) {
  const Engine e = strict_engine();
  const auto added = [&](const std::string& bytes) {
    Status status;
    e.add_kernels(bytes.data(), bytes.size(), status);
    EXPECT_EQ(status.code, LACUNA_ERROR_INPUT);
    return status.text;
  };
  EXPECT_EQ(added("LACUNA"),
            "lacuna: error: kernels: expected what `lacuna build --bundle` writes: shorter than a "
            "header [E0604]\n");
  std::string changed = bundle();
  changed.back() ^= 1;
  EXPECT_NE(added(changed).find("checksum of a section differs"), std::string::npos);
  EXPECT_NE(refusal(shipped(e)).find("no kernels were added"), std::string::npos);
}

TEST_F(ShippedKernels, ThatTheDriverRefusesAreCompiledIfThatIsAllowed) {
  fake().loads_to_refuse = 1;
  const Engine strict = strict_engine();
  strict.add_kernels(bundle().data(), bundle().size());
  const std::string text = refusal(shipped(strict));
  EXPECT_NE(text.find("one that was there was refused: "), std::string::npos) << text;

  fake().loads_to_refuse = 1;
  events.clear();
  const Engine e = engine_with_store(cache);
  e.add_kernels(bundle().data(), bundle().size());
  Kernel kernel = shipped(e);
  kernel.prepare();
  EXPECT_EQ(events, (std::vector<std::string>{"device", "cache_hit", "cache_warning", "compile"}));
}

TEST_F(ShippedKernels, AreThoseOfThePlanWithoutMeasurements) {
  Diagnostics errors;
  const SpecDocument document = read_spec({"shipped.json", kShipped}, errors);
  cache::TuningRecord record;
  record.hardware = tune::hardware_name("Fake GPU 0", 132);
  record.variant = tune::variant_of(document.spec, {});
  record.problem = tune::print_bucket(tune::bucket_of(LaunchShape{1, 4, 4, 1024, 1024}));
  record.density = "1";
  record.config = "q128 k64 ascending stages2";
  record.median_us = 10;
  record.compiler = "NVRTC 13.0";
  ASSERT_EQ(cache::TuningDatabase(cache.text(), "").append({record}), "");
  EXPECT_EQ(shipped(engine_with_store(cache)).tile().k, 64) << "measured best, and compiled";

  const Engine strict = strict_engine();
  strict.add_kernels(bundle().data(), bundle().size());
  Kernel kernel = shipped(strict);
  EXPECT_EQ(kernel.tile().k, 128) << "what was measured is not among the kernels";
  kernel.prepare();
}

TEST_F(ShippedKernels, AreCheckedOnTheCpuToo) {
  EngineOptions options;
  options.device = "cpu";
  const Engine e = Engine::create(options);
  Status status;
  e.add_kernels(bundle().data(), bundle().size(), status);
  EXPECT_TRUE(status) << status.text;
  e.add_kernels("LACUNA", 6, status);
  EXPECT_EQ(status.code, LACUNA_ERROR_INPUT);
  EXPECT_EQ(lacuna_engine_add_kernels(e.handle(), nullptr, 6), LACUNA_ERROR_INPUT);
  EXPECT_EQ(lacuna_engine_add_kernels(nullptr, "LACUNA", 6), LACUNA_ERROR_INPUT);
}

}  // namespace
}  // namespace lacuna

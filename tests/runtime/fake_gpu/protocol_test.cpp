// What prepare and launch ask of the driver, seen by a driver that only takes notes: prepare does
// all the loading, launch is a single call.
#include "tests/runtime/fake_gpu/protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "compiler/emit/emit.hpp"
#include "compiler/expr/evaluate.hpp"
#include "runtime/cuda/device_memory.hpp"
#include "runtime/engine/build/build.hpp"
#include "runtime/engine/probe.hpp"
#include "tests/runtime/child_process.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

TEST_F(Protocol, TheFirstGpuIsTheDefault) {
  const Engine e = engine();
  EXPECT_EQ(e.device(), "cuda:0");
  EXPECT_EQ(e.device_name(), "Fake GPU 0");
  EXPECT_EQ(e.target(), "sm_90a");
  EXPECT_EQ(e.note(), "");
}

TEST_F(Protocol, CompilingASpecAsksNothingOfTheDriver) {
  const Engine e = engine();
  forget();
  bsfa(e);
  EXPECT_EQ(calls(), std::vector<std::string>{});
}

TEST_F(Protocol, PrepareLoadsForcesAndSetsAttributesOnce) {
  Kernel kernel = bsfa(engine("cuda:1"));
  forget();
  kernel.prepare();
  EXPECT_EQ(calls(),
            (std::vector<std::string>{"cuCtxGetCurrent", "cuCtxPushCurrent", "cuLibraryLoadData",
                                      "cuLibraryGetKernel", "cuKernelGetFunction", "cuFuncLoad",
                                      "cuKernelSetAttribute", "cuCtxPopCurrent"}));
  EXPECT_EQ(fake().attribute_device, 1);
  EXPECT_GT(fake().shared_bytes_allowed, 0);
  forget();
  kernel.prepare();
  EXPECT_EQ(calls(), std::vector<std::string>{});
}

TEST_F(Protocol, LaunchMakesItsMapsAndIsOneCallInTheContextOfItsDevice) {
  Kernel kernel = bsfa(engine("cuda:1"));
  kernel.prepare();
  forget();
  kernel.launch(arguments(1));
  EXPECT_EQ(calls(),
            (std::vector<std::string>{"cuCtxGetCurrent", "cuCtxPushCurrent",
                                      "cuTensorMapEncodeTiled", "cuTensorMapEncodeTiled",
                                      "cuTensorMapEncodeTiled", "cuTensorMapEncodeTiled",
                                      "cuMemsetD8Async", "cuLaunchKernelEx", "cuCtxPopCurrent"}));
  EXPECT_EQ(fake().cleared, 0x60000U) << "the counter of rows";
  EXPECT_EQ(fake().cleared_bytes, 256U);
  for (int map = 0; map < 4; ++map) EXPECT_EQ(fake().arguments[map * 128], map + 1);
  EXPECT_EQ(fake().launch_context, fake_primary(1));
  EXPECT_EQ(fake().launched, reinterpret_cast<CUfunction>(std::size_t{0x3000}));
}

/// Launches of one shape with other margins do not take each other's grids.
TEST_F(Protocol, AMarginLeavesMultiprocessorsToOthers) {
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  LaunchArgs args = arguments();
  const auto grid_with = [&](std::int64_t margin) {
    forget();
    args.sm_margin = margin;
    kernel.launch(args);
    return fake().grids[0];
  };
  const unsigned whole = grid_with(0);
  EXPECT_GT(whole, 1U);
  EXPECT_EQ(grid_with(131), 1U);
  EXPECT_EQ(grid_with(0), whole);
  for (const std::int64_t margin : {-1, 132}) {
    try {
      grid_with(margin);
      ADD_FAILURE() << margin;
    } catch (const Error& e) {
      EXPECT_NE(
          std::string(e.what()).find("sm_margin: expected 0 to 131, got " + std::to_string(margin)),
          std::string::npos)
          << e.what();
    }
  }
}

TEST_F(Protocol, WhatTmaCannotLoadIsNotLaunched) {
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  forget();
  fake().map_result = 1;
  try {
    kernel.launch(arguments());
    FAIL() << "launched";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERROR_INPUT);
    EXPECT_NE(std::string(e.what()).find(
                  "kernel bsfa, argument q: expected a tensor that TMA can load, got strides of "
                  "614400 (batch), 76800 (heads) and 256 (tokens) bytes: CUDA_ERROR_FAKE (as the "
                  "test asked) [E0501]"),
              std::string::npos)
        << e.what();
  }
  EXPECT_EQ(count("cuLaunchKernelEx"), 0);
}

TEST_F(Protocol, LaunchWritesTheArgumentBlockThatTheProgramDescribes) {
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  forget();
  kernel.launch(arguments());

  Diagnostics errors;
  const SpecDocument document = read_spec({kBsfa, Spec::load(kBsfa).text()}, errors);
  const LaunchProgram program =
      emit_launch_program(make_plan(document, {}, *find_target("sm_90a"), errors));
  ASSERT_FALSE(errors.has_errors()) << render(errors, document.source);
  const KernelLaunch& launch = program.launches.at(0);
  EXPECT_EQ(fake().config.grid_x, 2U * 8U * 3U);
  EXPECT_EQ(fake().config.block_x, static_cast<unsigned>(launch.threads));
  EXPECT_EQ(fake().config.shared_bytes, static_cast<unsigned>(launch.smem_bytes));
  EXPECT_EQ(fake().config.stream, reinterpret_cast<CUstream>(std::size_t{0x5000}));
  int checked = 0;
  for (const ArgField& field : program.fields) {
    const unsigned char* at = fake().arguments + field.offset;
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    ParamView param;
    if (field.name == "q.data" || field.name == "counts" || field.name == "lse.data") {
      std::memcpy(&wide, at, sizeof(wide));
      EXPECT_EQ(wide, field.name == "q.data" ? 0x10000 : field.name == "counts" ? 0x50000 : 0);
      ++checked;
    } else if (field.name == "k.stride_h") {
      std::memcpy(&wide, at, sizeof(wide));
      EXPECT_EQ(wide, 200 * 128);
      ++checked;
    } else if (field.name == "n_k" || field.name == "heads_per_kv") {
      std::memcpy(&narrow, at, sizeof(narrow));
      EXPECT_EQ(narrow, field.name == "n_k" ? 200 : 4);
      ++checked;
    } else if (field.name == "param_threshold") {
      std::memcpy(&param, at, sizeof(param));
      EXPECT_EQ(param.data, nullptr);
      EXPECT_EQ(param.value.f32, -3.5F);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 7);
}

TEST_F(Protocol, LaunchBeforePrepareIsAnErrorAndNoDriverCall) {
  Kernel kernel = bsfa(engine());
  forget();
  try {
    kernel.launch(arguments());
    FAIL() << "launched";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERROR_NOT_PREPARED);
    EXPECT_EQ(std::string(e.what()),
              kBsfa +
                  ": error: kernel bsfa is not prepared: a launch never compiles or loads; call "
                  "lacuna_prepare first [E0505]\n");
  }
  EXPECT_EQ(calls(), std::vector<std::string>{});
}

TEST_F(Protocol, AKernelIsPublishedAfterItsFirstLaunchAndFoundByTheNextEngine) {
  {
    Kernel kernel = quick(engine_with_store(cache));
    kernel.prepare();
    EXPECT_EQ(events, (std::vector<std::string>{"device", "compile"}));
    EXPECT_EQ(stored().size(), 0U);
    kernel.launch(arguments());
  }
  ASSERT_EQ(stored().size(), 1U);
  EXPECT_TRUE(stored()[0].intact);
  events.clear();
  Kernel kernel = quick(engine_with_store(cache));
  kernel.prepare();
  EXPECT_EQ(events, (std::vector<std::string>{"device", "cache_hit"}));
  EXPECT_NE(kernel.info_json().find("\"hit\":true"), std::string::npos) << kernel.info_json();
  EXPECT_NE(kernel.info_json().find("\"registers\":"), std::string::npos) << kernel.info_json();
}

TEST_F(Protocol, AStoredKernelThatTheDriverRefusesIsRebuiltOnce) {
  {
    Kernel kernel = quick(engine_with_store(cache));
    kernel.prepare();
  }  // published without a launch: it was loaded, and will not be launched any more
  events.clear();
  fake().loads_to_refuse = 1;
  Kernel kernel = quick(engine_with_store(cache));
  kernel.prepare();
  EXPECT_EQ(events, (std::vector<std::string>{"device", "cache_hit", "cache_warning", "compile"}));
  kernel.launch(arguments());
}

TEST_F(Protocol, ANewKernelThatTheDriverRefusesIsAnError) {
  Kernel kernel = quick(engine_with_store(cache));
  fake().loads_to_refuse = 2;
  try {
    kernel.prepare();
    FAIL() << "prepared";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERROR_ENVIRONMENT);
    EXPECT_EQ(
        std::string(e.what()),
        "quick.json: error: loading compiled code: CUDA_ERROR_FAKE (as the test asked) [E0704]\n");
  }
}

TEST_F(Protocol, AFailedLaunchNamesTheKernelAndTheDriversReason) {
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  fake().launch_result = 700;
  try {
    kernel.launch(arguments());
    FAIL() << "launched";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERROR_ENVIRONMENT);
    EXPECT_EQ(std::string(e.what()),
              kBsfa +
                  ": error: kernel bsfa cannot be launched: CUDA_ERROR_FAKE (as the test asked) "
                  "[E0704]\n");
  }
}

TEST_F(Protocol, WhereACounterCannotBeClearedNothingIsLaunched) {
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  fake().fill_result = 700;
  forget();
  EXPECT_THROW(kernel.launch(arguments()), Error);
  const std::vector<std::string> seen = calls();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "cuMemsetD8Async"), 1);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "cuLaunchKernelEx"), 0);
}

TEST_F(Protocol, ManyThreadsLaunchOneKernel) {
  Kernel kernel = bsfa(engine());
  std::vector<std::thread> threads;
  forget();
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      Kernel mine = kernel;
      mine.prepare();
      for (int i = 0; i < 50; ++i) mine.launch(arguments());
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(count("cuLibraryLoadData"), 1);
  EXPECT_EQ(count("cuLaunchKernelEx"), 400);
}

TEST_F(Protocol, AChildIsRefusedTheGpuOfItsParentAndEndsWithoutItsThreads) {
  std::optional<Engine> parent = engine_with_store(cache);
  std::optional<Kernel> kernel = quick(*parent);
  kernel->prepare();  // from now on a thread of the parent waits to publish
  forget();
  const auto is_refused = [](const auto& call) {
    try {
      call();
      return false;
    } catch (const Error& e) {
      return e.status() == LACUNA_ERROR_ENVIRONMENT &&
             std::string(e.what()) ==
                 "quick.json: error: device cuda:0 cannot be used after fork(): the driver serves "
                 "only the process that opened it [E0702]\nhelp: fork before the first "
                 "engine is created, or start the child with exec\n";
    }
  };
  EXPECT_EQ(outcome_of_child([&] {
              if (!is_refused([&] { kernel->launch(arguments()); })) return 1;
              if (!is_refused([&] { kernel->prepare(); })) return 2;
              if (!is_refused([&] { quick(*parent).prepare(); })) return 3;
              kernel.reset();
              parent.reset();
              return calls().empty() ? 0 : 4;
            }),
            "exit 0");
  EXPECT_EQ(stored().size(), 0U) << "what has not run must not be published";
  kernel->launch(arguments());
  kernel.reset();
  EXPECT_EQ(stored().size(), 1U);
}

TEST_F(Protocol, AnEmptyLaunchDoesNothing) {
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  LaunchArgs args = arguments();
  args.q = Tensor(nullptr, bf16, {2, 8, 0, 128}, cuda(0));
  args.o = args.q;
  args.counts = Tensor();
  forget();
  kernel.launch(args);
  EXPECT_EQ(calls(), std::vector<std::string>{});
}

TEST_F(Protocol, TheEnvironmentMayAskForAFamily) {
  EXPECT_GT(bsfa(engine()).workspace_bytes(kShape), 0u) << "the counter of rows";
  {
    const ScopedVariable family("LACUNA_ATTEND_FAMILY", "mma");
    EXPECT_EQ(bsfa(engine()).workspace_bytes(kShape), 0u);
  }
  const ScopedVariable family("LACUNA_ATTEND_FAMILY", "mna");
  try {
    bsfa(engine());
    FAIL() << "compiled";
  } catch (const Error& e) {
    EXPECT_NE(
        std::string(e.what()).find("LACUNA_ATTEND_FAMILY: expected mma or wgmma, got mna [E0503]"),
        std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace lacuna

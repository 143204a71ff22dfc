// Kernels on the CPU through the public interface: right numbers, clear refusals, any number of
// threads. Runs with the interpreter, and with the compiled backend where the plugin is there.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/cpu_backends.hpp"
#include "tests/runtime/dense_problem.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

using namespace dense_problem;  // NOLINT(google-build-using-namespace)

std::string failure_of(const std::function<void()>& call, lacuna_status expected) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), expected);
    return e.what();
  }
  return "no error";
}

class HostKernel : public CpuBackends {};

INSTANTIATE_TEST_SUITE_P(Backends, HostKernel, cpu_backends(), backend_name);

TEST_P(HostKernel, DenseAttentionHasTheRightNumbers) {
  Problem problem;
  Kernel kernel = cpu_engine().compile(Spec::load(spec_path("dense")), {kDim, f32});
  kernel.prepare();
  kernel.launch(problem.arguments());
  EXPECT_LT(problem.error_against_dense(), 1e-5);
}

TEST_P(HostKernel, TheTensorLayoutIsTheCallersChoice) {
  Problem problem;
  // [batch, token, head, d] seen as [batch, head, token, d].
  std::vector<float> q(problem.q.size());
  for (std::size_t h = 0; h < kHeads; ++h) {
    for (std::size_t i = 0; i < kQueries; ++i) {
      for (std::size_t d = 0; d < kDim; ++d) {
        q[(i * kHeads + h) * kDim + d] = problem.q[(h * kQueries + i) * kDim + d];
      }
    }
  }
  LaunchArgs args = problem.arguments();
  args.q = Tensor(q.data(), f32, {1, kHeads, kQueries, kDim}, cpu(),
                  {kHeads * kQueries * kDim, kDim, kHeads * kDim, 1});
  cpu_engine().compile(Spec::load(spec_path("dense")), {kDim, f32}).launch(args);
  EXPECT_LT(problem.error_against_dense(), 1e-5);
}

TEST_P(HostKernel, ManyThreadsLaunchOneKernel) {
  const Kernel kernel = cpu_engine().compile(Spec::load(spec_path("dense")), {kDim, f32});
  std::vector<Problem> problems(6);
  std::vector<std::thread> threads;
  for (Problem& problem : problems) {
    threads.emplace_back([&kernel, &problem] {
      for (int i = 0; i < 3; ++i) kernel.launch(problem.arguments());
    });
  }
  for (std::thread& t : threads) t.join();
  for (const Problem& problem : problems) EXPECT_LT(problem.error_against_dense(), 1e-5);
}

TEST_P(HostKernel, EveryMismatchIsReportedWithTheSpecsName) {
  Problem problem;
  const Kernel kernel = cpu_engine().compile(Spec::load(spec_path("bsfa")), {kDim, f32});
  LaunchArgs args = problem.arguments();
  args.k = Tensor(problem.k.data(), f16, {1, kHeadsKv, kKeys, kDim});
  args.params.emplace_back("treshold", 0.0);
  const std::string path = spec_path("bsfa");
  EXPECT_EQ(failure_of([&] { kernel.launch(args); }, LACUNA_ERROR_INPUT),
            path + ": error: kernel bsfa, argument k: dtype expected f32, got f16 [E0501]\n" +
                path +
                ": error: kernel bsfa, parameter treshold: is not a parameter of this kernel; it "
                "has threshold [E0502]\nhelp: did you mean \"threshold\"?\n");
  EXPECT_EQ(problem.o[0], -1) << "a refused launch must leave the output alone";
}

TEST_P(HostKernel, EventsAreOfAGpu) {
  Problem problem;
  const Kernel kernel = cpu_engine().compile(Spec::load(spec_path("dense")), {kDim, f32});
  LaunchArgs args = problem.arguments();
  args.stage_events.assign(2, problem.o.data());
  EXPECT_EQ(failure_of([&] { kernel.launch(args); }, LACUNA_ERROR_INPUT),
            spec_path("dense") +
                ": error: kernel dense, stage_events: expected none on the CPU, got 2 [E0503]\n");
  EXPECT_EQ(problem.o[0], -1);
  EXPECT_EQ(kernel.info_json().find("\"stages\""), std::string::npos) << kernel.info_json();
}

TEST_P(HostKernel, InfoNamesTheBackend) {
  const Engine engine = cpu_engine();
  const std::string info = engine.compile(Spec::load(spec_path("dense")), {kDim, f32}).info_json();
  EXPECT_NE(info.find("\"target\":\"cpu\""), std::string::npos) << info;
  const bool interpreted = std::string(GetParam()) == "interpreted";
  EXPECT_NE(info.find(interpreted ? "\"backend\":\"interpreter\"" : "\"backend\":\"LLVM"),
            std::string::npos)
      << info;
  EXPECT_EQ(engine.note(), interpreted ? "no CPU compiler: LACUNA_HOST_PLUGIN is off, the CPU "
                                         "interprets, slowly"
                                       : "");
}

TEST(HostEngine, NamesItself) {
  const Engine engine = cpu_engine();
  EXPECT_EQ(engine.device(), "cpu");
  EXPECT_EQ(engine.target(), "cpu");
  EXPECT_EQ(engine.device_name().rfind("x86-64", 0), 0U);
}

TEST(HostEngine, RefusesDevicesItDoesNotKnow) {
  for (const char* device : {"gpu", "cuda:", "cuda:x", "cuda:-1", "CPU"}) {
    EngineOptions options;
    options.device = device;
    EXPECT_EQ(failure_of([&] { Engine::create(options); }, LACUNA_ERROR_INPUT),
              "lacuna: error: device: expected \"cpu\" or \"cuda:N\", got \"" +
                  std::string(device) + "\" [E0503]\n");
  }
}

TEST(HostEngine, AGpuWithoutDriverIsRefusedAndTheDefaultIsTheCpu) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW)) {
    dlclose(driver);
    GTEST_SKIP() << "this machine has an NVIDIA driver";
  }
  EngineOptions options;
  options.device = "cuda:0";
  EXPECT_EQ(failure_of([&] { Engine::create(options); }, LACUNA_ERROR_ENVIRONMENT),
            "lacuna: error: no NVIDIA driver: libcuda.so.1 was not found by the dynamic loader "
            "[E0701]\n");
  const Engine engine = Engine::create();
  EXPECT_EQ(engine.device(), "cpu");
  EXPECT_EQ(engine.note().rfind("no NVIDIA driver: libcuda.so.1 was not found by the dynamic "
                                "loader, the CPU serves",
                                0),
            0U)
      << engine.note();
}

TEST(HostEngine, APluginThatIsNoneIsReportedAndTheInterpreterServes) {
  const ScopedVariable variable("LACUNA_HOST_PLUGIN", "/nonexistent/liblacuna_host.so");
  EXPECT_EQ(cpu_engine().note(),
            "no CPU compiler: /nonexistent/liblacuna_host.so: cannot open shared object file: No "
            "such file or directory, the CPU interprets, slowly");
}

TEST(HostEngine, ASpecWithErrorsIsRefusedWithItsPlace) {
  const Engine engine = cpu_engine();
  const Spec spec = Spec::parse("{\"version\": 1, \"name\": \"x\", \"tilee\": {}}", "x.json");
  const std::string text = failure_of(
      [&] {
        engine.compile(spec, {kDim, f32});
      },
      LACUNA_ERROR_INPUT);
  EXPECT_EQ(text.rfind("x.json:1:29: error: ", 0), 0U) << text;
}

}  // namespace
}  // namespace lacuna

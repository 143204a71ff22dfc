// After fork(): the child computes on the CPU with what it inherited and with what it makes anew,
// and ends without waiting for threads that only the parent has.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compiler/emit/emit.hpp"
#include "runtime/cpu/host_plugin.hpp"
#include "tests/runtime/child_process.hpp"
#include "tests/runtime/cpu_backends.hpp"
#include "tests/runtime/dense_problem.hpp"

#if defined(LACUNA_SANITIZES_THREAD)
/// The sanitizer ends a child that begins threads where its parent had some, as these do.
extern "C" [[gnu::visibility("default")]] const char*
__tsan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "die_after_fork=0";
}
#endif

namespace lacuna {
namespace {

using namespace dense_problem;  // NOLINT(google-build-using-namespace)

// What a child found wrong.
constexpr int kRight = 0, kWrongNumbers = 1, kThrew = 2;

Kernel dense(const Engine& engine) {
  return engine.compile(Spec::load(spec_path("dense")), {kDim, f32});
}

int check(Kernel kernel) {
  try {
    Problem problem;
    kernel.prepare();
    kernel.launch(problem.arguments());
    return problem.error_against_dense() < 1e-5 ? kRight : kWrongNumbers;
  } catch (const Error& e) {
    std::fputs(e.what(), stderr);
    return kThrew;
  }
}

class Fork : public CpuBackends {};

INSTANTIATE_TEST_SUITE_P(Backends, Fork, cpu_backends(), backend_name);

TEST_P(Fork, TheChildRunsAKernelOfItsParent) {
  Kernel kernel = dense(cpu_engine());
  EXPECT_EQ(check(kernel), kRight);
  EXPECT_EQ(outcome_of_child([&] { return check(kernel); }), "exit 0");
  EXPECT_EQ(check(kernel), kRight) << "in the parent, after the child ended";
}

TEST_P(Fork, TheChildPreparesAKernelThatItsParentDidNot) {
  Kernel kernel = dense(cpu_engine());
  EXPECT_EQ(outcome_of_child([&] { return check(kernel); }), "exit 0");
}

TEST_P(Fork, TheChildCompilesWithAnEngineOfItsParentAndWithItsOwn) {
  const Engine engine = cpu_engine();
  EXPECT_EQ(check(dense(engine)), kRight);
  EXPECT_EQ(outcome_of_child([&] {
              const int with_inherited = check(dense(engine));
              return with_inherited != kRight ? with_inherited : check(dense(cpu_engine()));
            }),
            "exit 0");
}

TEST_P(Fork, TheChildLetsGoOfWhatItInherited) {
  std::optional<Engine> engine = cpu_engine();
  std::optional<Kernel> kernel = dense(*engine);
  EXPECT_EQ(outcome_of_child([&] {
              kernel.reset();
              engine.reset();
              return check(dense(cpu_engine()));
            }),
            "exit 0");
  EXPECT_EQ(check(*kernel), kRight);
}

TEST_P(Fork, ThreadsThatCompileAndLaunchDoNotReachTheChild) {
#if defined(LACUNA_SANITIZES_THREAD) || defined(LACUNA_SANITIZES_ADDRESS)
  GTEST_SKIP()
      << "the sanitizers' own locks and threads do not survive the fork of several threads";
#endif
  const Engine engine = cpu_engine();
  Kernel kernel = dense(engine);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) wrong += check(dense(engine)) != kRight;
    });
  }
  for (int n = 0; n < 5; ++n) {
    EXPECT_EQ(outcome_of_child([&] {
                const int inherited = check(kernel);
                return inherited != kRight ? inherited : check(dense(engine));
              }),
              "exit 0");
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

std::string program_text() {
  Diagnostics errors;
  const SpecDocument document =
      read_spec({"dense.json", R"({"version": 1, "name": "dense"})"}, errors);
  return print_program(
      make_plan(document, {kDim, DType::kF32}, *find_target("cpu"), errors).program);
}

// Two threads compile all the time, so that each fork finds LLVM's own locks taken.
TEST(ForkAndTheCompiler, AChildNeverInheritsACompilationHalfDone) {
  const HostBackend* backend = load_host_plugin().backend;
  if (backend == nullptr) GTEST_SKIP() << load_host_plugin().missing;
  const std::string text = program_text();
  const auto compile = [&] {
    void* code = nullptr;
    char error[256] = {};
    if (backend->compile(text.data(), text.size(), &code, error, sizeof(error)) != 0) return kThrew;
    backend->release(code);
    return kRight;
  };
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) compile();
    });
  }
  for (int n = 0; n < 8; ++n) EXPECT_EQ(outcome_of_child(compile), "exit 0");
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace lacuna

// The host's handlers outlive NVRTC. What NVRTC does to them it does once in a process, so each
// test has a process of its own.
#include "runtime/cuda/kept_signals.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "runtime/cuda/nvrtc.hpp"

namespace lacuna {
namespace {

// Atomic: a signal may interrupt any thread that does not block it, several at a time.
std::atomic<int> arrived = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a handler may not wait");

void count_signal(int, siginfo_t*, void*) { ++arrived; }

struct sigaction own_action() {
  struct sigaction own {};
  own.sa_sigaction = count_signal;
  own.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
  sigemptyset(&own.sa_mask);
  sigaddset(&own.sa_mask, SIGUSR1);
  return own;
}

bool is_own(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_sigaction == count_signal && (now.sa_flags & SA_SIGINFO) != 0 &&
         (now.sa_flags & SA_NODEFER) != 0 && sigismember(&now.sa_mask, SIGUSR1) == 1;
}

bool compiles() {
  Diagnostics diagnostics;
  const auto nvrtc = load_nvrtc(0, diagnostics);
  const CudaSource source{
      "", {{"k", "k", "extern \"C\" __global__ void k(int* p) { *p = 1; }"}}, {"-arch=sm_80"}};
  return nvrtc != nullptr && !compile_cuda(*nvrtc, source, "sm_80", {}, diagnostics).cubins.empty();
}

[[noreturn]] void exit_if_handlers_are_as_they_were() {
  const struct sigaction own = own_action();
  for (const int signal : {SIGINT, SIGTERM, SIGXFSZ}) ::sigaction(signal, &own, nullptr);
  bool good = compiles();
  for (const int signal : {SIGINT, SIGTERM, SIGXFSZ}) good &= is_own(signal);
  std::exit(good ? 0 : 1);
}

/// One process sends a signal every half millisecond, the other one compiles.
[[noreturn]] void exit_after_compiling_under_signals() {
  const struct sigaction own = own_action();
  ::sigaction(SIGTERM, &own, nullptr);
  const pid_t host = ::getpid();
  const pid_t sender = ::fork();
  while (sender == 0 && ::getppid() == host) {
    ::kill(host, SIGTERM);
    ::usleep(500);
  }
  if (sender == 0) ::_exit(0);
  const bool good = compiles();
  ::kill(sender, SIGKILL);
  ::waitpid(sender, nullptr, 0);
  std::exit(good && arrived > 1 ? 0 : 1);
}

class KeptSignalsTest : public testing::Test {
 protected:
  void SetUp() override {
    Diagnostics diagnostics;
    if (load_nvrtc(0, diagnostics) == nullptr) GTEST_SKIP() << diagnostics.items.front().message;
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
  void TearDown() override { testing::GTEST_FLAG(death_test_style) = "fast"; }
};

TEST_F(KeptSignalsTest, HandlersAreAsTheyWereAfterACompilation) {
  EXPECT_EXIT(exit_if_handlers_are_as_they_were(), testing::ExitedWithCode(0), "");
}

TEST_F(KeptSignalsTest, TheHostIsAskedNotNvrtc) {
  EXPECT_EXIT(exit_after_compiling_under_signals(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lacuna

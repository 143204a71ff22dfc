// Ctrl-C and SIGTERM at any moment: one sentence, the documented status, and no half of anything.
#include "tools/io/interrupts.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/tools/command.hpp"
#include "tools/io/file_io.hpp"

namespace lacuna::tests {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

/// Exit status of a child, or 128 and the signal that ended it.
int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Runs `body` in a child, after which nothing but a signal ends it.
template <class Body>
int status_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    body();
    for (;;) ::pause();
  }
  return status_of(child);
}

TEST(Interrupts, ASignalEndsTheProcessWithItsStatus) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EQ(status_of_child([signal] {
                tools::start_waiting_for_interrupts();
                ::kill(::getpid(), signal);
              }),
              128 + signal);
  }
}

TEST(Interrupts, HandlersOfOthersDoNotMatter) {
  EXPECT_EQ(status_of_child([] {
              tools::start_waiting_for_interrupts();
              std::signal(SIGTERM, [](int) { ::_exit(4); });
              ::kill(::getpid(), SIGTERM);
            }),
            128 + SIGTERM);
}

TEST(Interrupts, TheFirstSignalOnlyAsksWhereSomebodyListens) {
  for (const auto& [first, second] : {std::pair{SIGINT, SIGTERM}, std::pair{SIGTERM, SIGINT}}) {
    EXPECT_EQ(status_of_child([first = first, second = second] {
                tools::start_waiting_for_interrupts();
                const tools::Interrupts interrupts;
                if (interrupts.arrived()) ::_exit(1);
                ::kill(::getpid(), first);
                pollfd file{interrupts.descriptor(), POLLIN, 0};
                if (::poll(&file, 1, -1) != 1 || interrupts.signal() != first) ::_exit(2);
                ::kill(::getpid(), second);
                for (;;) ::pause();
              }),
              128 + second);
  }
}

TEST(Interrupts, WhatIsIgnoredOrBlockedByOthersStaysSo) {
  EXPECT_EQ(status_of_child([] {
              std::signal(SIGINT, SIG_IGN);
              tools::start_waiting_for_interrupts();
              ::kill(::getpid(), SIGINT);
              ::usleep(50'000);
              ::_exit(7);
            }),
            7);
  EXPECT_EQ(status_of_child([] {
              sigset_t term;
              sigemptyset(&term);
              sigaddset(&term, SIGTERM);
              ::sigprocmask(SIG_BLOCK, &term, nullptr);
              tools::start_waiting_for_interrupts();
              ::kill(::getpid(), SIGTERM);
              ::usleep(50'000);
              ::_exit(7);
            }),
            7);
}

TEST(Interrupts, FilesBeingWrittenAreWaitedForUnlessThereIsASecondSignal) {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("whole");
  EXPECT_EQ(status_of_child([&path] {
              tools::start_waiting_for_interrupts();
              {
                const tools::UnbrokenWriting unbroken;
                ::kill(::getpid(), SIGTERM);
                while (!unbroken.is_stopping()) ::usleep(1000);
                ::usleep(50'000);
                Diagnostics ignored;
                tools::write_file(path, "one of several", ignored);
              }
              ::_exit(1);
            }),
            128 + SIGTERM);
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"whole"});
  EXPECT_EQ(status_of_child([] {
              tools::start_waiting_for_interrupts();
              const tools::UnbrokenWriting unbroken;
              ::kill(::getpid(), SIGTERM);
              while (!unbroken.is_stopping()) ::usleep(1000);
              ::kill(::getpid(), SIGINT);
              for (;;) ::pause();
            }),
            128 + SIGTERM);
}

std::ptrdiff_t count_files(const fs::path& folder) {
  std::error_code ignored;
  return std::distance(fs::directory_iterator(folder, ignored), {});
}

/// NVRTC, files and all: signals at moments spread over a build.
TEST(Interrupts, ABuildThatIsStoppedSaysSoAndLeavesNothing) {
  const ScratchDirectory scratch;
  const std::vector<std::string> build = {"build",  source_file("specs/dense.json"),
                                          "--arch", "sm_80",
                                          "-o",     scratch.file("made/kernels")};
  const auto begin = std::chrono::steady_clock::now();
  const CommandResult whole = run_lacuna(build);
  const auto took = std::chrono::steady_clock::now() - begin;
  if (whole.status == 3) GTEST_SKIP() << whole.err;
  ASSERT_EQ(whole.status, 0) << whole.err;
  const auto files = count_files(scratch.file("made/kernels"));
  constexpr int kMoments = 8;
  for (int moment = 0; moment < kMoments; ++moment) {
    fs::remove_all(scratch.file("made"));
    const int signal = moment % 2 == 0 ? SIGTERM : SIGINT;
    const CommandResult result =
        run_lacuna_and_signal_after(took * moment / kMoments, build, signal);
    // All of them are also there where the signal came between the last rename and the end of the
    // process, which writes its report only then: a build that was as slow as the one that was
    // timed may be found there.
    const bool is_done = scratch.names() == std::vector<std::string>{"made"};
    if (is_done)
      EXPECT_EQ(count_files(scratch.file("made/kernels")), files) << moment;
    else
      EXPECT_EQ(scratch.names(), std::vector<std::string>{}) << moment;
    if (is_done && (result.status == 0 || !result.out.empty()))
      continue;  // sooner done than expected
    EXPECT_EQ(result.status, 128 + signal) << moment << ": " << result.err;
    EXPECT_EQ(result.err,
              signal == SIGTERM ? "lacuna: stopped by SIGTERM\n" : "lacuna: stopped by Ctrl-C\n");
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
}  // namespace lacuna::tests

// A limit on the size of files: a write fails, and the host does not hear of it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "cache/files/signal_guard.hpp"
#include "cache/tuning/tuning.hpp"
#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

void limit_file_size(rlim_t bytes) {
  const struct rlimit limit { bytes, bytes };
  require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "a limit");
}

bool is_pending(int signal) {
  sigset_t pending;
  ::sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

bool is_blocked(int signal) {
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

TEST(FileSize, AKernelBeyondTheLimitStaysInMemory) {
  const Scratch scratch;
  const pid_t child = start_child([&scratch] {
    limit_file_size(1000);
    std::vector<std::string> warnings;
    Store store(options_in(scratch, &warnings));
    const Key key = key_number(1);
    require(!store.publish(key, kernel_for(key, 5000)), "no room to publish");
    require(store.load(key).has_value(), "the kernel stays in memory");
    require(warnings == std::vector<std::string>{"cache directory " + scratch.path("cache") +
                                                 ": cannot be written: File too large; kernels are "
                                                 "compiled again next time"},
            "one warning");
    require(files_below(scratch.path("cache"), ".tmp.").empty(), "nothing half-written is left");
    require(!is_blocked(SIGXFSZ) && !is_blocked(SIGPIPE), "the mask as it was");
    return 0;
  });
  EXPECT_EQ(wait_for_child(child), 0);
}

TEST(FileSize, MeasurementsBeyondTheLimitAreAnError) {
  const Scratch scratch;
  const pid_t child = start_child([&scratch] {
    limit_file_size(100);
    TuningRecord record;
    record.hardware = "machine-1";
    record.variant = "abc";
    record.median_us = 1;
    record.detail = std::string(200, 'x');
    require(TuningDatabase(scratch.path("cache"), "").append({record}) ==
                scratch.path("cache/tuning/machine-1/abc") + ": cannot be written: File too large",
            "an error");
    require(files_below(scratch.path("cache"), ".tmp.").empty(), "nothing half-written is left");
    return 0;
  });
  EXPECT_EQ(wait_for_child(child), 0);
}

TEST(FileSize, SignalsOfTheHostStayItsOwn) {
  const pid_t child = start_child([] {
    int ends[2];
    require(::pipe(ends) == 0, "a pipe");
    ::close(ends[0]);
    {
      const WriteSignalGuard guard;
      require(::write(ends[1], "x", 1) < 0 && errno == EPIPE, "a failed write");
    }
    require(!is_pending(SIGPIPE), "nothing is left of it");
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    ::raise(SIGPIPE);
    {
      const WriteSignalGuard guard;
      require(::write(ends[1], "x", 1) < 0 && errno == EPIPE, "a failed write");
    }
    require(is_pending(SIGPIPE), "what the host has not yet seen");
    require(is_blocked(SIGPIPE), "what the host has blocked");
    return 0;
  });
  EXPECT_EQ(wait_for_child(child), 0);
}

}  // namespace
}  // namespace lacuna::cache

// A child of fork() that runs a part of a test.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace lacuna {

/// Runs `body` in a child, which leaves through exit() and its handlers with the result: "exit 0",
/// or "signal 14" if it had to be stopped because it hung. Children must not use GoogleTest.
inline std::string outcome_of_child(const std::function<int()>& body) {
  constexpr unsigned kPatience = 60;  // seconds
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kPatience);
    std::exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

}  // namespace lacuna

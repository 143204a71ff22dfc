// A search that is asked to stop before its first launch: nothing is known, and nothing is read
// that is not there.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/io/interrupts.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/calibrate/search.hpp"

namespace lacuna::tests {
namespace {

/// 0: the search says that it was stopped.
int stopped_search(const std::string& input) {
  tools::start_waiting_for_interrupts();
  tools::Session session;
  const auto document = tools::load_spec(source_file("specs/skip-softmax.json"), session);
  tools::SampleOptions files;
  files.files = {input};
  const auto samples = tools::load_samples(files, session);
  if (!document || !samples) return 1;
  tools::LaunchOptions launch;
  launch.device = "cpu";
  launch.threads = 1;
  tools::Trial trial(*document, *samples, launch, session);
  tools::CalibrateProgress progress(1);
  ::kill(::getpid(), SIGINT);
  while (!progress.stopped()) ::usleep(1000);
  return tools::search_params(trial, 1, *document, {}, progress) ? 2 : 0;
}

TEST(CalibrateStop, BeforeTheFirstLaunchNothingIsKnown) {
  const ScratchDirectory scratch;
  const std::string input =
      scratch.write("x.safetensors",
                    tools::print_safetensors(small_problem(1, 128, 64, tools::ArrayType::kBF16)));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(stopped_search(input));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lacuna::tests

#include "tools/tune/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "runtime/base/dynamic_library.hpp"

namespace lacuna::tools {
namespace {

using Clock = std::chrono::steady_clock;

sigset_t interrupting_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become_child(int socket, pid_t parent, const char* program) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a parent that is killed takes it along
  if (::getppid() != parent) ::_exit(127);
  const int null = ::open("/dev/null", O_WRONLY);
  ::dup2(socket, STDIN_FILENO);
  ::dup2(socket, STDOUT_FILENO);
  if (null >= 0) ::dup2(null, STDERR_FILENO);
  const char* const arguments[] = {program, "tune", "--child", nullptr};
  // This very file, even if another has been put in its place.
  ::execv("/proc/self/exe", const_cast<char* const*>(arguments));
  ::_exit(127);
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  return "ended with status " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t signals = interrupting_signals();
  ::sigprocmask(SIG_BLOCK, &signals, &before_);
  file_ = cache::FileDescriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
}

Interrupts::~Interrupts() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

bool Interrupts::arrived() {
  signalfd_siginfo signal{};
  while (::read(file_.get(), &signal, sizeof signal) == sizeof signal)
    if (signal_ == 0) signal_ = static_cast<int>(signal.ssi_signo);
  return signal_ != 0;
}

std::string TuneProcess::start() {
  stop();
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return "no child process: " + std::generic_category().message(errno);
  socket_ = cache::FileDescriptor(ends[0]);
  const cache::FileDescriptor theirs(ends[1]);
  const pid_t parent = ::getpid();
  const std::string program = library_path_of(reinterpret_cast<const void*>(&become_child));
  child_ = ::fork();
  if (child_ == 0) become_child(theirs.get(), parent, program.c_str());
  if (child_ > 0) return "";
  return "no child process: " + std::generic_category().message(errno);
}

void TuneProcess::stop() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  child_ = -1;
  socket_ = cache::FileDescriptor();
  received_.clear();
}

TuneProcess::Reply TuneProcess::end_of_child(End end) {
  Reply reply;
  reply.end = end;
  if (end == End::kDied && child_ > 0) {
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    reply.detail = describe_status(status);
  }
  stop();
  return reply;
}

bool TuneProcess::send_line(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t put = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

TuneProcess::Reply TuneProcess::ask(const nlohmann::ordered_json& request,
                                    std::chrono::duration<double> patience,
                                    Interrupts& interrupts) {
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  if (!is_running() || !send_line(request.dump(-1, ' ', false, kReplace) + "\n"))
    return end_of_child(End::kDied);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
  for (;;) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      Reply reply{End::kReply,
                  nlohmann::ordered_json::parse(received_.substr(0, end), nullptr, false), ""};
      received_.erase(0, end + 1);
      if (reply.message.is_object()) return reply;
      stop();
      return {End::kDied, {}, "said what is no reply"};
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return end_of_child(End::kHung);
    std::array<pollfd, 2> files{pollfd{socket_.get(), POLLIN, 0},
                                pollfd{interrupts.descriptor(), POLLIN, 0}};
    if (::poll(files.data(), files.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
      return end_of_child(End::kDied);
    if (interrupts.arrived()) return end_of_child(End::kInterrupted);
    if (files[0].revents == 0) continue;
    char bytes[4096];
    const ssize_t got = ::read(socket_.get(), bytes, sizeof bytes);
    if (got <= 0) return end_of_child(End::kDied);
    received_.append(bytes, static_cast<std::size_t>(got));
  }
}

}  // namespace lacuna::tools

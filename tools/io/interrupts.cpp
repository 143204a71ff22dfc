#include "tools/io/interrupts.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <mutex>

namespace lacuna::tools {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
constexpr int kNobody = -2;  ///< as `listener`
constexpr std::size_t kStackBytes = 256 << 10;

/// Signals are the process's, and so is what is known of them.
struct State {
  std::mutex mutex;           ///< over the listener, whose descriptor must not be closed meanwhile
  int listener = kNobody;     ///< descriptor of the Interrupts that live, or -1
  std::atomic<int> asked{0};  ///< the signal that asked to stop
  std::atomic<int> writers{0};
  std::atomic<bool> stopping{false};
};

State& state() {
  static State one;
  return one;
}

[[noreturn]] void wait_for_the_end() {
  for (;;) ::pause();
}

void say(int signal) {
  // A line of progress may stand there. Without stdio, whose locks others may hold.
  char text[64];
  const int length = std::snprintf(text, sizeof text, "%slacuna: stopped by %s\n",
                                   ::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "",
                                   signal == SIGTERM ? "SIGTERM" : "Ctrl-C");
  if (::write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) return;
}

/// Waits for files that are being written; not if there is a second signal.
[[noreturn]] void end_process(int signal, const sigset_t& awaited) {
  constexpr struct timespec kPatience { .tv_sec = 0, .tv_nsec = 5'000'000 };
  state().stopping = true;
  while (state().writers > 0 && ::sigtimedwait(&awaited, nullptr, &kPatience) < 0) {
  }
  say(signal);
  ::_exit(128 + signal);
}

/// Whether somebody was there to be asked, for the first time.
bool ask_to_stop(int signal) {
  const std::lock_guard lock(state().mutex);
  if (state().listener == kNobody || state().asked != 0) return false;
  state().asked = signal;
  if (state().listener >= 0) ::eventfd_write(state().listener, 1);
  return true;
}

void* wait_for_signals(void* argument) {
  const sigset_t awaited = *static_cast<const sigset_t*>(argument);
  for (;;) {
    const int signal = ::sigwaitinfo(&awaited, nullptr);
    if (signal > 0 && !ask_to_stop(signal)) end_process(signal, awaited);
  }
}

/// Those that would end the process, were they to come now.
sigset_t signals_to_await() {
  sigset_t blocked, awaited;
  sigemptyset(&blocked);
  sigemptyset(&awaited);
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (const int signal : kSignals) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (sigismember(&blocked, signal) == 0 && action.sa_handler == SIG_DFL)
      sigaddset(&awaited, signal);
  }
  return awaited;
}

}  // namespace

void start_waiting_for_interrupts() {
  static sigset_t awaited;
  awaited = signals_to_await();
  sigset_t both, before;
  sigemptyset(&both);
  for (const int signal : kSignals) sigaddset(&both, signal);
  ::pthread_sigmask(SIG_BLOCK, &both, &before);
  pthread_attr_t attributes;
  pthread_t thread;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // Where there is no thread to be had, the signals do what they always did.
  if (::pthread_create(&thread, &attributes, wait_for_signals, &awaited) != 0)
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
}

Interrupts::Interrupts() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const std::lock_guard lock(state().mutex);
  state().asked = 0;
  state().listener = event_.get();
}

Interrupts::~Interrupts() {
  const std::lock_guard lock(state().mutex);
  state().listener = kNobody;
}

int Interrupts::signal() const { return state().asked; }

UnbrokenWriting::UnbrokenWriting() {
  // Where files are being written already, for instance as part of these, the end waits for them.
  if (state().writers++ > 0 || !state().stopping) return;
  --state().writers;
  wait_for_the_end();
}

UnbrokenWriting::~UnbrokenWriting() {
  if (--state().writers == 0 && state().stopping) wait_for_the_end();
}

bool UnbrokenWriting::is_stopping() const { return state().stopping; }

}  // namespace lacuna::tools

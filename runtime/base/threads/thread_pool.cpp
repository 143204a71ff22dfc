#include "runtime/base/threads/thread_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <list>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/process.hpp"

#if defined(LACUNA_SANITIZES_ADDRESS)
#include <sanitizer/lsan_interface.h>
#endif

namespace lacuna {
namespace {

/// The work of one call that borrows threads; in the list of the pool for as long as a worker may
/// still join it.
struct LentWork {
  ThreadLender::Work work;
  void* context;
  std::size_t workers;
  std::size_t next = 1;     ///< worker; 0 is the caller
  std::size_t running = 0;  ///< but for the caller
  std::condition_variable ended{};
};

/// While it lives, threads that are made inherit a mask of all signals: a handler of the host's is
/// for the host's threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

struct ThreadPool::State {
  const unsigned generation = process_generation();
  std::mutex mutex;
  std::condition_variable wake;
  std::list<LentWork*> jobs;
  std::vector<std::thread> threads;
  bool ends = false;

  ~State() {
    {
      const std::scoped_lock lock(mutex);
      ends = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  /// The life of a thread of the pool.
  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return ends || !jobs.empty(); });
      if (ends) return;
      LentWork& job = *jobs.front();
      const std::size_t worker = job.next++;
      if (job.next == job.workers) jobs.pop_front();
      ++job.running;
      lock.unlock();
      job.work(job.context, worker);
      lock.lock();
      if (--job.running == 0) job.ended.notify_one();  // the caller frees it once the lock is free
    }
  }

  /// Under the lock. Where no more are to be had, those that are there do the work.
  void grow(std::size_t wanted) {
    if (threads.size() >= wanted) return;
    const AllSignalsBlocked blocked;
    threads.reserve(wanted);
#if defined(LACUNA_SANITIZES_ADDRESS)
    // What a thread was begun with only its stack holds, which a child of fork() does not have.
    const __lsan::ScopedDisabler disabled;
#endif
    try {
      while (threads.size() < wanted) threads.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
    }
  }

  void lend(LentWork& job) {
    {
      const std::scoped_lock lock(mutex);
      grow(job.workers - 1);
      jobs.push_back(&job);
    }
    wake.notify_all();
    job.work(job.context, 0);
    std::unique_lock lock(mutex);
    if (job.next < job.workers) jobs.remove(&job);  // nothing is left to do for whoever comes now
    job.ended.wait(lock, [&job] { return job.running == 0; });
  }
};

namespace {

/// That of the parent process stays as it is in a child: its threads are not here, its lock may be
/// held.
void leave_to_parent([[maybe_unused]] const void* state) {
#if defined(LACUNA_SANITIZES_ADDRESS)
  __lsan_ignore_object(state);
#endif
}

}  // namespace

ThreadPool::ThreadPool() : state_(new State), lender_{&ThreadPool::lend, this} {}

ThreadPool::~ThreadPool() {
  State* state = state_.load(std::memory_order_acquire);
  if (state->generation == process_generation()) {
    delete state;
  } else {
    leave_to_parent(state);
  }
}

ThreadPool::State& ThreadPool::state() {
  State* known = state_.load(std::memory_order_acquire);
  if (known->generation == process_generation()) return *known;
  auto fresh = std::make_unique<State>();
  if (state_.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
    leave_to_parent(known);
    return *fresh.release();
  }
  return *known;  // another thread of this process was first
}

void ThreadPool::lend(void* pool, std::size_t workers, ThreadLender::Work work, void* context) {
  if (workers <= 1) return work(context, 0);
  LentWork job{work, context, workers};
  static_cast<ThreadPool*>(pool)->state().lend(job);
}

}  // namespace lacuna

// Single flight within a process: of all threads that want one key, one leads and the others wait
// for what it finds or builds.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "cache/entry.hpp"

namespace lacuna::cache {

using SharedEntry = std::shared_ptr<const Entry>;

class Flights {
 public:
  /// A thread's part in a flight. The leader must land; if it does not (its build threw), the
  /// others get nothing.
  class Ticket {
   public:
    Ticket(Flights& flights, std::string name, std::shared_future<SharedEntry> result,
           std::shared_ptr<std::promise<SharedEntry>> promise);
    ~Ticket() { land(nullptr); }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    bool leads() const { return leads_; }
    const std::shared_future<SharedEntry>& result() const { return result_; }
    /// Ends the flight. What was found must be where the next thread looks before this is called.
    void land(SharedEntry entry);

   private:
    Flights& flights_;
    std::string name_;
    std::shared_future<SharedEntry> result_;
    std::shared_ptr<std::promise<SharedEntry>> promise_;  ///< the leader's, until it landed
    bool leads_;
  };

  Ticket join(const std::string& name);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_future<SharedEntry>> flying_;
};

}  // namespace lacuna::cache

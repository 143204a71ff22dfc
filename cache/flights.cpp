#include "cache/flights.hpp"

namespace lacuna::cache {

Flights::Ticket::Ticket(Flights& flights, std::string name, std::shared_future<SharedEntry> result,
                        std::shared_ptr<std::promise<SharedEntry>> promise)
    : flights_(flights),
      name_(std::move(name)),
      result_(std::move(result)),
      promise_(std::move(promise)),
      leads_(promise_ != nullptr) {}

void Flights::Ticket::land(SharedEntry entry) {
  if (!promise_) return;
  {
    const std::lock_guard lock(flights_.mutex_);
    flights_.flying_.erase(name_);
  }
  promise_->set_value(std::move(entry));
  promise_.reset();
}

Flights::Ticket Flights::join(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = flying_.find(name); found != flying_.end()) {
    return {*this, name, found->second, nullptr};
  }
  auto promise = std::make_shared<std::promise<SharedEntry>>();
  auto result = promise->get_future().share();
  flying_.emplace(name, result);
  return {*this, name, std::move(result), std::move(promise)};
}

}  // namespace lacuna::cache

#include "runtime/group/lanes.hpp"

#include <algorithm>

namespace lacuna::group {

Lanes::~Lanes() {
  if (device == nullptr) return;
  const ContextScope scope(*device);
  const auto destroy = [this](CUstream stream) {
    if (stream != nullptr) device->driver->cuStreamDestroy(stream);
  };
  destroy(exchange);
  destroy(incoming);
  for (CUstream stream : turns) destroy(stream);
  destroy(last);
}

std::shared_ptr<Lanes> make_lanes(const std::shared_ptr<const Device>& device,
                                  Diagnostics& diagnostics) {
  auto lanes = std::make_shared<Lanes>();
  const Driver& driver = *device->driver;
  lanes->device = device;
  const ContextScope scope(*device);
  int least = 0, greatest = 0;  // a higher priority is a smaller number
  const auto make = [&](CUstream& stream, int priority) {
    return check_driver(driver,
                        driver.cuStreamCreateWithPriority(&stream, kStreamNonBlocking, priority),
                        "creating a stream", diagnostics);
  };
  bool made = check_driver(driver, driver.cuCtxGetStreamPriorityRange(&least, &greatest),
                           "cuCtxGetStreamPriorityRange", diagnostics) &&
              make(lanes->exchange, greatest) && make(lanes->incoming, greatest) &&
              make(lanes->last, least);
  int priority = std::min(greatest + 1, least);
  for (CUstream& stream : lanes->turns) {
    made = made && make(stream, priority);
    priority = std::min(priority + 1, std::max(least - 1, greatest));
  }
  return made ? lanes : nullptr;
}

Signals::Signals(std::shared_ptr<const Device> device, std::size_t count, Diagnostics& diagnostics)
    : device_(std::move(device)) {
  const ContextScope scope(*device_);
  const Driver& driver = *device_->driver;
  CUevent event = nullptr;
  while (events_.size() < count &&
         check_driver(driver, driver.cuEventCreate(&event, kEventDisableTiming),
                      "creating an event", diagnostics)) {
    events_.push_back(event);
  }
}

Signals::~Signals() {
  if (device_ == nullptr) return;
  const ContextScope scope(*device_);
  for (CUevent event : events_) device_->driver->cuEventDestroy(event);
}

}  // namespace lacuna::group

#include "runtime/cuda/device_memory.hpp"

#include <string>
#include <utility>

namespace lacuna {

DeviceBuffer::DeviceBuffer(std::shared_ptr<const Device> device, std::size_t bytes,
                           Diagnostics& diagnostics)
    : device_(std::move(device)), bytes_(bytes) {
  const ContextScope scope(*device_);
  const std::string doing = "allocating " + std::to_string(bytes) + " bytes of device memory";
  const CUresult result = device_->driver->cuMemAlloc(&address_, bytes > 0 ? bytes : 1);
  if (!check_driver(*device_->driver, result, doing.c_str(), diagnostics)) address_ = 0;
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ == 0) return;
  const ContextScope scope(*device_);
  device_->driver->cuMemFree(address_);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(std::move(other.device_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool DeviceBuffer::copy_in(const void* host, std::size_t bytes, Diagnostics& diagnostics) {
  const ContextScope scope(*device_);
  return check_driver(*device_->driver, device_->driver->cuMemcpyHtoD(address_, host, bytes),
                      "copying to the device", diagnostics);
}

bool DeviceBuffer::copy_out(void* host, std::size_t bytes, Diagnostics& diagnostics) const {
  const ContextScope scope(*device_);
  return check_driver(*device_->driver, device_->driver->cuMemcpyDtoH(host, address_, bytes),
                      "copying from the device", diagnostics);
}

bool DeviceBuffer::fill_zero(Diagnostics& diagnostics) {
  const ContextScope scope(*device_);
  return check_driver(*device_->driver, device_->driver->cuMemsetD8(address_, 0, bytes_),
                      "clearing device memory", diagnostics);
}

DeviceStream::DeviceStream(std::shared_ptr<const Device> device, Diagnostics& diagnostics)
    : device_(std::move(device)) {
  const ContextScope scope(*device_);
  check_driver(*device_->driver, device_->driver->cuStreamCreate(&stream_, 0), "creating a stream",
               diagnostics);
}

DeviceStream::~DeviceStream() {
  if (stream_ == nullptr) return;
  const ContextScope scope(*device_);
  device_->driver->cuStreamDestroy(stream_);
}

bool DeviceStream::synchronize(Diagnostics& diagnostics) const {
  const ContextScope scope(*device_);
  return check_driver(*device_->driver, device_->driver->cuStreamSynchronize(stream_),
                      "waiting for the GPU", diagnostics);
}

DeviceEvents::DeviceEvents(std::shared_ptr<const Device> device, std::size_t count,
                           Diagnostics& diagnostics)
    : device_(std::move(device)) {
  const ContextScope scope(*device_);
  const Driver& driver = *device_->driver;
  CUevent event = nullptr;
  while (events_.size() < count &&
         check_driver(driver, driver.cuEventCreate(&event, 0), "creating an event", diagnostics)) {
    events_.push_back(event);
  }
}

DeviceEvents::~DeviceEvents() {
  const ContextScope scope(*device_);
  for (void* event : events_) device_->driver->cuEventDestroy(static_cast<CUevent>(event));
}

bool DeviceEvents::record(std::size_t index, CUstream stream, Diagnostics& diagnostics) {
  if (index >= events_.size()) return false;  // could not be created, which has been said
  const ContextScope scope(*device_);
  return check_driver(*device_->driver,
                      device_->driver->cuEventRecord(static_cast<CUevent>(events_[index]), stream),
                      "recording an event", diagnostics);
}

std::vector<double> DeviceEvents::times_us(bool since_first, Diagnostics& diagnostics) const {
  if (events_.empty()) return {};
  const ContextScope scope(*device_);
  const Driver& driver = *device_->driver;
  const auto event = [this](std::size_t index) { return static_cast<CUevent>(events_[index]); };
  if (!check_driver(driver, driver.cuEventSynchronize(event(events_.size() - 1)),
                    "waiting for the GPU", diagnostics))
    return {};
  std::vector<double> times;
  for (std::size_t i = 0; i + 1 < events_.size(); ++i) {
    float ms = 0;
    if (!check_driver(driver,
                      driver.cuEventElapsedTime(&ms, event(since_first ? 0 : i), event(i + 1)),
                      "reading a timer", diagnostics))
      return {};
    times.push_back(1e3 * static_cast<double>(ms));
  }
  return times;
}

std::vector<double> DeviceEvents::elapsed_us(Diagnostics& diagnostics) const {
  return times_us(/*since_first=*/false, diagnostics);
}

std::vector<double> DeviceEvents::since_first_us(Diagnostics& diagnostics) const {
  std::vector<double> times = times_us(/*since_first=*/true, diagnostics);
  if (!times.empty()) times.insert(times.begin(), 0);
  return times;
}

}  // namespace lacuna

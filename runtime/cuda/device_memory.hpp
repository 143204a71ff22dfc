// Device memory, streams and timers for the tools and tests; hosts that link the library bring
// their own memory and streams. Every function that can fail adds a diagnostic and returns false.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "runtime/cuda/driver.hpp"

namespace lacuna {

/// Owns device memory; empty if the allocation failed.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::shared_ptr<const Device> device, std::size_t bytes, Diagnostics& diagnostics);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  void* data() const { return reinterpret_cast<void*>(address_); }
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return address_ != 0; }

  /// Blocking copies of the first `bytes` bytes.
  bool copy_in(const void* host, std::size_t bytes, Diagnostics& diagnostics);
  bool copy_out(void* host, std::size_t bytes, Diagnostics& diagnostics) const;
  bool fill_zero(Diagnostics& diagnostics);

 private:
  std::shared_ptr<const Device> device_;
  CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
};

/// A stream of its own. It waits for the default stream, on which the copies of DeviceBuffer run.
class DeviceStream {
 public:
  DeviceStream(std::shared_ptr<const Device> device, Diagnostics& diagnostics);
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  CUstream handle() const { return stream_; }
  bool synchronize(Diagnostics& diagnostics) const;

 private:
  std::shared_ptr<const Device> device_;
  CUstream stream_ = nullptr;
};

/// Points of a stream that follow each other, and the time between them.
class DeviceEvents {
 public:
  DeviceEvents(std::shared_ptr<const Device> device, std::size_t count, Diagnostics& diagnostics);
  ~DeviceEvents();
  DeviceEvents(const DeviceEvents&) = delete;
  DeviceEvents& operator=(const DeviceEvents&) = delete;

  /// CUevents, as lacuna_launch_args takes them.
  const std::vector<void*>& handles() const { return events_; }
  bool record(std::size_t index, CUstream stream, Diagnostics& diagnostics);
  /// From each event to the next, once the last one is over; empty on failure.
  std::vector<double> elapsed_us(Diagnostics& diagnostics) const;
  /// Of each event since the first, once the last one is over; they may be of several streams.
  /// Empty on failure.
  std::vector<double> since_first_us(Diagnostics& diagnostics) const;

 private:
  /// To each event but the first: from the one before it, or from the first.
  std::vector<double> times_us(bool since_first, Diagnostics& diagnostics) const;

  std::shared_ptr<const Device> device_;
  std::vector<void*> events_;
};

/// Time between two points of a stream.
class DeviceTimer {
 public:
  DeviceTimer(std::shared_ptr<const Device> device, Diagnostics& diagnostics)
      : events_(std::move(device), 2, diagnostics) {}

  bool start(CUstream stream, Diagnostics& diagnostics) {
    return events_.record(0, stream, diagnostics);
  }
  bool stop(CUstream stream, Diagnostics& diagnostics) {
    return events_.record(1, stream, diagnostics);
  }
  /// Waits for stop(); negative on failure.
  double elapsed_us(Diagnostics& diagnostics) const {
    const std::vector<double> times = events_.elapsed_us(diagnostics);
    return times.empty() ? -1 : times.front();
  }

 private:
  DeviceEvents events_;
};

}  // namespace lacuna

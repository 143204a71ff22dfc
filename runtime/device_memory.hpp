// Device memory, streams and timers for the tools and tests; hosts that link the library bring
// their own memory and streams. Every function that can fail adds a diagnostic and returns false.
#pragma once

#include <cstddef>
#include <memory>

#include "compiler/diag/diagnostic.hpp"
#include "runtime/driver.hpp"

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

/// Time between two points of a stream, by events.
class DeviceTimer {
 public:
  DeviceTimer(std::shared_ptr<const Device> device, Diagnostics& diagnostics);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  bool start(CUstream stream, Diagnostics& diagnostics);
  bool stop(CUstream stream, Diagnostics& diagnostics);
  /// Waits for stop(); negative on failure.
  double elapsed_us(Diagnostics& diagnostics) const;

 private:
  std::shared_ptr<const Device> device_;
  CUevent begin_ = nullptr, end_ = nullptr;
};

}  // namespace lacuna

// The memory and clock of a run: of the host, or of one GPU through the driver.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "compiler/diag/diagnostic.hpp"
#include "lacuna/dlpack.h"
#include "runtime/cuda/device_memory.hpp"
#include "tools/io/array.hpp"

namespace lacuna::tools {

/// Where tensors lie and launches run.
struct Place {
  std::shared_ptr<const Device> gpu;     ///< null: the host
  std::unique_ptr<DeviceStream> stream;  ///< of launches, not the default stream; null: the host
};

/// The place of an engine's device ("cpu", "cuda:0"); nullopt with diagnostics.
std::optional<Place> open_place(const std::string& device, Diagnostics& diagnostics);

/// A tensor in its place.
struct Buffer {
  Array host;           ///< on a GPU: type and shape only, until fetch()
  DeviceBuffer device;  ///< empty on the host

  void* data() { return device ? device.data() : static_cast<void*>(host.bytes.data()); }
};

/// Puts a tensor in its place. On failure `diagnostics` has the reason.
Buffer place_array(Array array, const Place& place, Diagnostics& diagnostics);

/// A tensor of zero bytes.
Buffer place_zeros(ArrayType type, std::vector<std::int64_t> shape, const Place& place,
                   Diagnostics& diagnostics);

/// The tensor as it is now, after all launches have ended.
Array fetch(Buffer& buffer, const Place& place, Diagnostics& diagnostics);

DLDataType dl_type(ArrayType type);
DLDevice dl_device(const Place& place);

/// Time of one launch in microseconds: by events of the GPU's stream, on the host by a steady
/// clock.
double time_once_us(const Place& place, const std::function<void()>& launch,
                    Diagnostics& diagnostics);

/// Median time of `launch` in microseconds. A GPU is timed by events around each of several runs
/// after a warm-up; the host by a steady clock, as often as two seconds allow, but at least once.
double median_time_us(const Place& place, const std::function<void()>& launch,
                      Diagnostics& diagnostics);

}  // namespace lacuna::tools

#include "tools/common/device.hpp"

#include <charconv>
#include <chrono>
#include <vector>

#include "tools/common/spread.hpp"

namespace lacuna::tools {
namespace {

double host_time_once_us(const std::function<void()>& launch) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  launch();
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double gpu_time_us(const Place& place, const std::function<void()>& launch,
                   Diagnostics& diagnostics) {
  constexpr int kRuns = 25;
  // A GPU that had nothing to do takes tens of milliseconds to reach its clock.
  constexpr std::chrono::milliseconds kWarmUp(100);
  const auto begin = std::chrono::steady_clock::now();
  do {
    time_once_us(place, launch, diagnostics);
  } while (!diagnostics.has_errors() && std::chrono::steady_clock::now() - begin < kWarmUp);
  std::vector<double> times;
  for (int i = 0; i < kRuns && !diagnostics.has_errors(); ++i)
    times.push_back(time_once_us(place, launch, diagnostics));
  return times.empty() ? 0 : spread_of(std::move(times)).median_us;
}

double host_time_us(const std::function<void()>& launch) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kSlow(1000);
  constexpr std::chrono::milliseconds kBudget(2000);
  constexpr std::size_t kRuns = 9;
  std::vector<double> times;
  const auto time_one = [&] { times.push_back(host_time_once_us(launch)); };
  const auto begin = Clock::now();
  time_one();
  // A long run needs no warm-up: it is its own.
  if (Clock::now() - begin > kSlow) return times.front();
  times.clear();
  while (times.empty() || (times.size() < kRuns && Clock::now() - begin < kBudget)) time_one();
  return spread_of(std::move(times)).median_us;
}

}  // namespace

std::optional<Place> open_place(const std::string& device, Diagnostics& diagnostics) {
  constexpr std::string_view kCuda = "cuda:";
  Place place;
  if (!device.starts_with(kCuda)) return place;
  int index = 0;
  std::from_chars(device.data() + kCuda.size(), device.data() + device.size(), index);
  auto driver = load_driver(diagnostics);
  if (driver) place.gpu = open_device(std::move(driver), index, diagnostics);
  if (!place.gpu) return std::nullopt;
  place.stream = std::make_unique<DeviceStream>(place.gpu, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  return place;
}

Buffer place_array(Array array, const Place& place, Diagnostics& diagnostics) {
  Buffer buffer;
  buffer.host = std::move(array);
  if (!place.gpu) return buffer;
  const std::size_t bytes = buffer.host.bytes.size();
  buffer.device = DeviceBuffer(place.gpu, bytes, diagnostics);
  if (buffer.device) buffer.device.copy_in(buffer.host.bytes.data(), bytes, diagnostics);
  buffer.host.bytes.clear();
  return buffer;
}

Buffer place_zeros(ArrayType type, std::vector<std::int64_t> shape, const Place& place,
                   Diagnostics& diagnostics) {
  const std::int64_t count = element_count(shape).value_or(0);
  const auto bytes = static_cast<std::size_t>(count * size_bytes(type));
  return place_array({type, std::move(shape), std::string(bytes, '\0')}, place, diagnostics);
}

Array fetch(Buffer& buffer, const Place& place, Diagnostics& diagnostics) {
  Array array = buffer.host;
  if (!place.gpu) return array;
  if (!place.stream->synchronize(diagnostics)) return array;
  array.bytes.resize(buffer.device.bytes());
  buffer.device.copy_out(array.bytes.data(), array.bytes.size(), diagnostics);
  return array;
}

DLDataType dl_type(ArrayType type) {
  const auto bits = static_cast<std::uint8_t>(8 * size_bytes(type));
  switch (type) {
    case ArrayType::kBF16:
      return {kDLBfloat, bits, 1};
    case ArrayType::kF16:
    case ArrayType::kF32:
    case ArrayType::kF64:
      return {kDLFloat, bits, 1};
    case ArrayType::kI32:
    case ArrayType::kI64:
      return {kDLInt, bits, 1};
    case ArrayType::kU8:
      return {kDLUInt, bits, 1};
  }
  return {kDLFloat, bits, 1};
}

DLDevice dl_device(const Place& place) {
  return place.gpu ? DLDevice{kDLCUDA, place.gpu->index} : DLDevice{kDLCPU, 0};
}

double time_once_us(const Place& place, const std::function<void()>& launch,
                    Diagnostics& diagnostics) {
  if (!place.gpu) return host_time_once_us(launch);
  DeviceTimer timer(place.gpu, diagnostics);
  timer.start(place.stream->handle(), diagnostics);
  launch();
  timer.stop(place.stream->handle(), diagnostics);
  return timer.elapsed_us(diagnostics);
}

double median_time_us(const Place& place, const std::function<void()>& launch,
                      Diagnostics& diagnostics) {
  return place.gpu ? gpu_time_us(place, launch, diagnostics) : host_time_us(launch);
}

}  // namespace lacuna::tools

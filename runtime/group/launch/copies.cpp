#include "runtime/group/launch/copies.hpp"

#include <algorithm>
#include <cstring>

namespace lacuna::group {
namespace {

bool copy_one(const LaunchPlaces& places, const Copy& copy, CUstream stream,
              Diagnostics& diagnostics) {
  const Device* device = places.plan.kernel->group->engine->gpu.get();
  const std::size_t width = places.plan.traffic.problem.row_bytes(copy.tensor);
  const auto step = [&](const Place& place) {
    return place.in_workspace ? copy.buffer_step : places.head_step_of(copy.tensor);
  };
  Lines lines{places.address_of(copy.tensor, copy.to),
              places.address_of(copy.tensor, copy.from),
              places.pitch_of(copy.tensor, copy.to),
              places.pitch_of(copy.tensor, copy.from),
              width,
              static_cast<std::size_t>(copy.rows)};
  if (lines.to_pitch == width && lines.from_pitch == width) {
    return copy_lines(device,
                      {lines.to, lines.from, step(copy.to), step(copy.from), width * lines.count,
                       static_cast<std::size_t>(copy.heads)},
                      stream, diagnostics);
  }
  for (std::int32_t head = 0; head < copy.heads; ++head) {
    if (!copy_lines(device, lines, stream, diagnostics)) return false;
    lines.to += step(copy.to);
    lines.from += step(copy.from);
  }
  return true;
}

}  // namespace

bool copy_lines(const Device* device, const Lines& lines, CUstream stream,
                Diagnostics& diagnostics) {
  if (device == nullptr) {
    for (std::size_t n = 0; n < lines.count; ++n)
      std::memcpy(lines.to + n * lines.to_pitch, lines.from + n * lines.from_pitch, lines.width);
    return true;
  }
  const Driver& driver = *device->driver;
  const auto target = reinterpret_cast<CUdeviceptr>(lines.to);
  const auto source = reinterpret_cast<CUdeviceptr>(lines.from);
  if (lines.count == 1) {
    return check_driver(driver, driver.cuMemcpyDtoDAsync(target, source, lines.width, stream),
                        "cuMemcpyDtoDAsync", diagnostics);
  }
  CUmemcpy2D copy;
  copy.source = source, copy.source_pitch = lines.from_pitch;
  copy.target = target, copy.target_pitch = lines.to_pitch;
  copy.width_bytes = lines.width, copy.height = lines.count;
  return check_driver(driver, driver.cuMemcpy2DAsync(&copy, stream), "cuMemcpy2DAsync",
                      diagnostics);
}

bool copy_all(const LaunchPlaces& places, const std::vector<Copy>& copies, CUstream stream,
              Diagnostics& diagnostics) {
  return std::ranges::all_of(
      copies, [&](const Copy& copy) { return copy_one(places, copy, stream, diagnostics); });
}

}  // namespace lacuna::group

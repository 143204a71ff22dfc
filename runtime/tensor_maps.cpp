#include "runtime/tensor_maps.hpp"

#include <array>
#include <cstring>

namespace lacuna {
namespace {

constexpr std::size_t kElementBytes = 2;
constexpr std::size_t kOuterRank = kTensorMapRank - 1;

/// What cuTensorMapEncodeTiled takes, innermost dimension first; it has no stride for the
/// innermost.
struct MapGeometry {
  void* data = nullptr;
  std::array<std::uint64_t, kTensorMapRank> extents{};
  std::array<std::uint64_t, kOuterRank> stride_bytes{};
  std::array<std::uint32_t, kTensorMapRank> box{};

  bool empty() const {
    for (const std::uint64_t extent : extents) {
      if (extent == 0) return true;
    }
    return false;
  }
};

template <class T>
T read_field(const LaunchProgram& program, int field, const std::byte* block) {
  T value;
  std::memcpy(&value, block + program.fields[static_cast<std::size_t>(field)].offset,
              sizeof(value));
  return value;
}

MapGeometry geometry_of(const LaunchProgram& program, const TensorMapFields& map,
                        const BoundLaunch& bound, const std::byte* block) {
  const auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const std::int64_t(&extent)[kMaxRank] = bound[map.role].extent;
  const auto panel = static_cast<std::uint32_t>(map.panel_elements);
  const std::uint64_t panel_bytes = panel * kElementBytes;
  const std::uint64_t row_bytes = panel_bytes * count(map.panels);
  MapGeometry geometry;
  geometry.data = read_field<void*>(program, map.data, block);
  geometry.extents = {panel, count(extent[2]), count(map.panels), count(extent[1]),
                      count(extent[0])};
  geometry.box = {panel, static_cast<std::uint32_t>(map.box_rows), 1, 1, 1};
  // The stride of a dimension of one means nothing to the caller, yet has to be a legal one.
  const auto stride_bytes = [&](int field, std::int64_t n) {
    const auto elements = read_field<std::int64_t>(program, field, block);
    return n > 1 ? count(elements) * kElementBytes : row_bytes;
  };
  geometry.stride_bytes = {stride_bytes(map.stride_n, extent[2]), panel_bytes,
                           stride_bytes(map.stride_h, extent[1]),
                           stride_bytes(map.stride_b, extent[0])};
  return geometry;
}

CUresult encode(const Driver& driver, const TensorMapFields& map, const MapGeometry& geometry,
                std::byte* target) {
  constexpr std::uint32_t kEveryElement[kTensorMapRank] = {1, 1, 1, 1, 1};
  return driver.cuTensorMapEncodeTiled(
      target, map.dtype == DType::kF16 ? kTensorMapFloat16 : kTensorMapBFloat16, kTensorMapRank,
      geometry.data, geometry.extents.data(), geometry.stride_bytes.data(), geometry.box.data(),
      kEveryElement, kTensorMapNoInterleave, kTensorMapSwizzle128, kTensorMapPromote256,
      kTensorMapFillZeros);
}

Diagnostic refusal(const Driver& driver, CUresult result, const std::string& kernel,
                   const TensorMapFields& map, const MapGeometry& geometry) {
  const auto text_of = [](std::uint64_t bytes) {
    return std::to_string(static_cast<std::int64_t>(bytes));
  };
  Diagnostic d;
  d.code = Code::kTensorArgument;
  d.message = "kernel " + kernel + ", argument " + map.name +
              ": expected a tensor that TMA can load, got strides of " +
              text_of(geometry.stride_bytes[3]) + " (batch), " + text_of(geometry.stride_bytes[2]) +
              " (heads) and " + text_of(geometry.stride_bytes[0]) +
              " (tokens) bytes: " + driver_error_text(driver, result);
  d.notes.emplace_back(
      "a tensor map asks for an address and strides that are multiples of 16 bytes, and for "
      "strides "
      "from 0 to below 2^40 bytes");
  return d;
}

}  // namespace

bool encode_tensor_maps(const Driver& driver, const LaunchProgram& program,
                        const std::string& kernel, const BoundLaunch& bound, std::byte* block,
                        Diagnostics& diagnostics) {
  for (const TensorMapFields& map : program.maps) {
    const MapGeometry geometry = geometry_of(program, map, bound, block);
    if (geometry.empty()) continue;
    const CUresult result = encode(driver, map, geometry, block + map.offset);
    if (result == kCudaSuccess) continue;
    diagnostics.add(refusal(driver, result, kernel, map, geometry));
    return false;
  }
  return true;
}

}  // namespace lacuna

#include "runtime/cuda/tensor_maps.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace lacuna {
namespace {

template <class T>
T read_field(const LaunchProgram& program, int field, const std::byte* block) {
  T value;
  std::memcpy(&value, block + program.fields[static_cast<std::size_t>(field)].offset,
              sizeof(value));
  return value;
}

std::uint64_t count(std::int64_t n) { return static_cast<std::uint64_t>(n); }

/// Of a tensor of the caller, wherever its rows lie.
void describe_rows(MapGeometry& geometry, const LaunchProgram& program, const TensorMapFields& map,
                   const std::int64_t (&extent)[kMaxRank], const std::byte* block) {
  const std::uint64_t element_bytes = map.format == MapFormat::kCodeRows ? 1 : 2;
  const std::uint64_t panel_bytes = count(map.panel_elements) * element_bytes;
  const std::uint64_t row_bytes = map.row_elements > 0 ? count(map.row_elements) * element_bytes
                                                       : panel_bytes * count(map.panels);
  // The stride of a dimension of one means nothing to the caller, yet has to be a legal one.
  const auto stride_bytes = [&](int field, std::int64_t n) {
    const auto elements = read_field<std::int64_t>(program, field, block);
    return n > 1 ? count(elements) * element_bytes : row_bytes;
  };
  geometry.element = element_bytes == 1         ? kTensorMapUint8
                     : map.dtype == DType::kF16 ? kTensorMapFloat16
                                                : kTensorMapBFloat16;
  if (map.row_elements > 0) geometry.extents[0] = count(map.row_elements);
  geometry.extents[1] = count(extent[2]);
  geometry.extents[2] = count(map.panels);
  geometry.stride_bytes = {stride_bytes(map.stride_n, extent[2]), panel_bytes,
                           stride_bytes(map.stride_h, extent[1]),
                           stride_bytes(map.stride_b, extent[0])};
}

/// Of bytes in the workspace, contiguous and padded, of all batch entries or in a piece of each.
void describe_bytes(MapGeometry& geometry, const LaunchProgram& program, const TensorMapFields& map,
                    const std::int64_t (&extent)[kMaxRank], const std::byte* block) {
  const bool columns = map.format == MapFormat::kByteColumns;
  const std::uint64_t tokens = count(read_field<std::int32_t>(program, map.tokens, block));
  const std::uint64_t panel = count(map.panel_elements);
  const std::uint64_t head_bytes = tokens * (columns ? count(map.box_rows) : panel);
  geometry.element = kTensorMapUint8;
  geometry.extents[1] = columns ? count(map.box_rows) : tokens;
  geometry.extents[2] = columns ? tokens / panel : 1;
  geometry.stride_bytes = {columns ? tokens : panel, panel, head_bytes,
                           head_bytes * count(extent[1])};
  if (map.entries < 0) return;
  geometry.extents[4] = count(read_field<std::int32_t>(program, map.entries, block));
  geometry.stride_bytes[3] = count(read_field<std::int64_t>(program, map.entry_bytes, block));
}

std::uint32_t box_rows(const LaunchProgram& program, const TensorMapFields& map,
                       const BoundLaunch& bound, const std::byte* block) {
  std::int64_t rows = map.box_rows;
  if (map.box_rows_field >= 0) rows = read_field<std::int32_t>(program, map.box_rows_field, block);
  if (map.has_pages) rows = std::min(rows, bound[map.role].extent[2]);
  return static_cast<std::uint32_t>(rows);
}

std::uint32_t box_heads(const LaunchProgram& program, const TensorMapFields& map,
                        const std::byte* block) {
  if (map.box_heads_field < 0) return 1;
  return static_cast<std::uint32_t>(read_field<std::int32_t>(program, map.box_heads_field, block));
}

/// Chunks are permuted within a panel, of 64 or 128 bytes.
int swizzle_of(const TensorMapFields& map) {
  const bool is_short = map.format != MapFormat::kRows && map.panel_elements == 64;
  return is_short ? kTensorMapSwizzle64 : kTensorMapSwizzle128;
}

MapGeometry geometry_of(const LaunchProgram& program, const TensorMapFields& map,
                        const BoundLaunch& bound, const std::byte* block) {
  const std::int64_t(&extent)[kMaxRank] = bound[map.role].extent;
  const auto panel = static_cast<std::uint32_t>(map.panel_elements);
  MapGeometry geometry;
  geometry.data = read_field<void*>(program, map.data, block);
  geometry.swizzle = swizzle_of(map);
  geometry.extents = {panel, 0, 0, count(extent[1]), count(extent[0])};
  geometry.box = {panel, box_rows(program, map, bound, block), 1, box_heads(program, map, block),
                  1};
  if (map.format == MapFormat::kRows || map.format == MapFormat::kCodeRows) {
    describe_rows(geometry, program, map, extent, block);
  } else {
    describe_bytes(geometry, program, map, extent, block);
  }
  return geometry;
}

/// Without promotion in L2. That of 256 bytes lets memory give 4.1 in place of 4.5 TB/s to loads
/// that find nothing in L2 (H200): a query that reads many keys once takes 5 % longer with it.
CUresult encode(const Driver& driver, const MapGeometry& geometry, std::byte* target) {
  constexpr std::uint32_t kEveryElement[kTensorMapRank] = {1, 1, 1, 1, 1};
  return driver.cuTensorMapEncodeTiled(
      target, geometry.element, kTensorMapRank, geometry.data, geometry.extents.data(),
      geometry.stride_bytes.data(), geometry.box.data(), kEveryElement, kTensorMapNoInterleave,
      geometry.swizzle, kTensorMapPromoteNone, kTensorMapFillZeros);
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
                        std::span<const TensorMapFields> maps, const std::string& kernel,
                        const BoundLaunch& bound, MapCache* cache, std::byte* block,
                        Diagnostics& diagnostics) {
  for (const TensorMapFields& map : maps) {
    const MapGeometry geometry = geometry_of(program, map, bound, block);
    if (geometry.empty()) continue;
    std::byte* target = block + map.offset;
    if (const std::byte* known = cache != nullptr ? cache->find(geometry) : nullptr) {
      std::memcpy(target, known, kTensorMapBytes);
      continue;
    }
    const CUresult result = encode(driver, geometry, target);
    if (result != kCudaSuccess) {
      diagnostics.add(refusal(driver, result, kernel, map, geometry));
      return false;
    }
    if (cache != nullptr) cache->keep(geometry, target);
  }
  return true;
}

}  // namespace lacuna

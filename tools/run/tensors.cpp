#include "tools/run/tensors.hpp"

#include <algorithm>
#include <cstring>

#include "tools/run/mask_classes.hpp"

namespace lacuna::tools {
namespace {

constexpr std::size_t kAlignment = 256;
/// Tensors beyond any L2 cache.
constexpr std::int64_t kRotatedBytes = std::int64_t{256} << 20U;
constexpr std::size_t kMostSets = 8;
constexpr std::uint32_t kNeedsMask = 0x80000000U;

Array array_of(const std::vector<std::int32_t>& values, std::vector<std::int64_t> shape) {
  Array array{ArrayType::kI32, std::move(shape), {}};
  array.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  return array;
}

/// Lists of the tiles that a tile mask marks, flagged where `needs_mask(b, h, i, j)` holds.
struct Lists {
  Array indices, counts;
};
template <class NeedsMask>
Lists lists_of(const Array& mask, NeedsMask needs_mask) {
  std::vector<std::int32_t> indices(mask.bytes.size(), 0), counts;
  std::size_t at = 0;
  for (std::int32_t b = 0; b < mask.shape[0]; ++b)
    for (std::int32_t h = 0; h < mask.shape[1]; ++h)
      for (std::int32_t i = 0; i < mask.shape[2]; ++i) {
        std::size_t end = at;
        for (std::int32_t j = 0; j < mask.shape[3]; ++j) {
          if (mask.bytes[at + static_cast<std::size_t>(j)] == 0) continue;
          const std::uint32_t flag = needs_mask(b, h, i, j) ? kNeedsMask : 0;
          indices[end++] = static_cast<std::int32_t>(static_cast<std::uint32_t>(j) | flag);
        }
        counts.push_back(static_cast<std::int32_t>(end - at));
        at += static_cast<std::size_t>(mask.shape[3]);
      }
  return {array_of(indices, mask.shape),
          array_of(counts, {mask.shape[0], mask.shape[1], mask.shape[2]})};
}

}  // namespace

void* AlignedBuffer::data() {
  if (bytes == 0) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  const std::uintptr_t aligned = (address + kAlignment - 1) / kAlignment * kAlignment;
  return static_cast<char*>(buffer.data()) + (aligned - address);
}

AlignedBuffer place_bytes(std::size_t bytes, const Place& place, DeviceErrors& errors) {
  AlignedBuffer memory{.buffer = {}, .bytes = bytes};
  if (bytes == 0) return memory;
  memory.buffer = place_zeros(ArrayType::kU8, {static_cast<std::int64_t>(bytes + kAlignment)},
                              place, errors.diagnostics);
  errors.check();
  return memory;
}

AlignedBuffer place_workspace(const v1::Kernel& kernel, const Inputs& inputs, const Place& place,
                              DeviceErrors& errors) {
  return place_bytes(kernel.workspace_bytes(shape_of(inputs)), place, errors);
}

v1::Tensor tensor_of(Buffer& buffer, const Place& place) {
  return v1::Tensor(buffer.data(), dl_type(buffer.host.type), buffer.host.shape, dl_device(place));
}

v1::Shape shape_of(const Inputs& inputs) {
  const auto extent = [](const Array& array, std::size_t dimension) {
    return static_cast<std::int32_t>(array.shape[dimension]);
  };
  return {extent(inputs.q, 0), extent(inputs.q, 1), extent(inputs.k, 1), extent(inputs.q, 2),
          extent(inputs.k, 2)};
}

Tensors place_tensors(const Inputs& inputs, const Place& place, DeviceErrors& errors) {
  Tensors tensors;
  tensors.q = place_array(inputs.q, place, errors.diagnostics);
  tensors.k = place_array(inputs.k, place, errors.diagnostics);
  tensors.v = place_array(inputs.v, place, errors.diagnostics);
  std::vector<std::int64_t> o_shape = inputs.q.shape;
  o_shape.back() = inputs.v.shape.back();
  tensors.o = place_zeros(inputs.q.type, std::move(o_shape), place, errors.diagnostics);
  for (const ParamInput& param : inputs.params) {
    tensors.params.push_back(param.tensor ? place_array(*param.tensor, place, errors.diagnostics)
                                          : Buffer());
  }
  errors.check();
  return tensors;
}

std::size_t count_sets(const Inputs& inputs, const Place& place) {
  if (!place.gpu) return 1;
  const auto bytes = static_cast<std::int64_t>(inputs.q.bytes.size() + inputs.k.bytes.size() +
                                               inputs.v.bytes.size());
  const std::int64_t sets = kRotatedBytes / std::max<std::int64_t>(bytes, 1) + 1;
  return std::min(static_cast<std::size_t>(sets), kMostSets);
}

Extras place_extras(const SpecDocument& document, const v1::Kernel& kernel, const Inputs& inputs,
                    const Place& place, DeviceErrors& errors) {
  Extras extras;
  if (inputs.order) {
    extras.order = place_array(*inputs.order, place, errors.diagnostics);
  } else if (document.spec.permute.order != TokenOrder::kNone) {
    const std::int64_t tokens = inputs.q.shape[2];
    extras.order =
        place_array(array_of(kernel.token_order(static_cast<std::size_t>(tokens)), {tokens}), place,
                    errors.diagnostics);
  }
  if (inputs.tile_mask) {
    const v1::Tile tile = kernel.tile();
    MaskClasses classes(document, inputs, tile.q, tile.k);
    Lists lists = lists_of(*inputs.tile_mask, [&](auto b, auto h, auto i, auto j) {
      return classes.look(b, h, i, j, 1) == TileLook::kPartial;
    });
    extras.list_indices = place_array(std::move(lists.indices), place, errors.diagnostics);
    extras.list_counts = place_array(std::move(lists.counts), place, errors.diagnostics);
  }
  errors.check();
  return extras;
}

void add_extras(Extras& extras, const Place& place, v1::LaunchArgs& args) {
  const auto add = [&](Buffer& buffer, v1::Tensor& tensor) {
    if (!buffer.host.shape.empty()) tensor = tensor_of(buffer, place);
  };
  add(extras.order, args.order);
  add(extras.list_indices, args.list_indices);
  add(extras.list_counts, args.list_counts);
  add(extras.previous_lse, args.previous_lse);
}

v1::LaunchArgs arguments(const Inputs& inputs, Tensors& tensors, AlignedBuffer& workspace,
                         const Place& place) {
  v1::LaunchArgs args;
  args.q = tensor_of(tensors.q, place);
  args.k = tensor_of(tensors.k, place);
  if (!inputs.v_of_k) args.v = tensor_of(tensors.v, place);
  args.o = tensor_of(tensors.o, place);
  for (std::size_t i = 0; i < inputs.params.size(); ++i) {
    const ParamInput& param = inputs.params[i];
    if (param.tensor) {
      args.params.emplace_back(param.name, tensor_of(tensors.params[i], place));
    } else {
      args.params.emplace_back(param.name, param.value);
    }
  }
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.bytes;
  if (place.stream) args.stream = place.stream->handle();
  return args;
}

}  // namespace lacuna::tools

#include "tests/host/run.hpp"

#include <cstring>

namespace lacuna::host_tests {
namespace {

constexpr int kRowPadding = 8;  ///< elements after each row of a token-major tensor
constexpr std::uint8_t kPoison = 0xff;

/// A tensor [b, h, n, d] in the dtype's storage.
struct Stored {
  std::vector<std::uint8_t> bytes;
  HostTensor tensor;
};

Stored store(DType dtype, int b, int h, int n, int d, bool token_major) {
  const int row = token_major ? d + kRowPadding : d;
  Stored stored;
  stored.bytes.assign(static_cast<std::size_t>(b * h * n * row * size_bytes(dtype)), kPoison);
  stored.tensor.data = stored.bytes.data();
  stored.tensor.stride[0] = std::int64_t{h} * n * row;
  stored.tensor.stride[1] = token_major ? row : std::int64_t{n} * row;
  stored.tensor.stride[2] = token_major ? std::int64_t{h} * row : row;
  stored.tensor.stride[3] = 1;
  return stored;
}

/// Calls visit(address, index in contiguous order) for every element.
template <class Visit>
void for_elements(const Stored& stored, DType dtype, const Sizes& s, int heads, int tokens,
                  const Visit& visit) {
  std::size_t n = 0;
  for (int b = 0; b < s.n_b; ++b)
    for (int h = 0; h < heads; ++h)
      for (int t = 0; t < tokens; ++t)
        for (int c = 0; c < s.d; ++c) {
          const std::int64_t* stride = stored.tensor.stride;
          const std::int64_t offset = b * stride[0] + h * stride[1] + t * stride[2] + c;
          visit(static_cast<std::uint8_t*>(stored.tensor.data) + offset * size_bytes(dtype), n++);
        }
}

Stored upload(DType dtype, const Sizes& s, int heads, int tokens, const std::vector<float>& values,
              bool token_major) {
  Stored stored = store(dtype, s.n_b, heads, tokens, s.d, token_major);
  for_elements(stored, dtype, s, heads, tokens, [&](std::uint8_t* at, std::size_t n) {
    const std::uint16_t half = to_bits16(dtype, values[n]);
    if (dtype == DType::kF32)
      std::memcpy(at, &values[n], 4);
    else
      std::memcpy(at, &half, 2);
  });
  return stored;
}

template <class T>
HostTensor contiguous(std::vector<T>& values, std::int64_t heads, std::int64_t rows,
                      std::int64_t columns) {
  HostTensor tensor;
  tensor.data = values.data();
  tensor.stride[0] = heads * rows * columns;
  tensor.stride[1] = rows * columns;
  tensor.stride[2] = columns;
  tensor.stride[3] = 1;
  return tensor;
}

void download_o(const Program& program, const Sizes& s, Stored& o, RunResult& result) {
  result.o_bytes = o.bytes;
  for_elements(o, program.dtype, s, s.n_h, s.n_q, [&](std::uint8_t* at, std::size_t) {
    float x = 0;
    std::uint16_t half = 0;
    std::memcpy(&x, at, program.dtype == DType::kF32 ? 4 : 2);
    std::memcpy(&half, at, 2);
    if (program.dtype != DType::kF32) x = from_bits16(program.dtype, half);
    result.outputs.o.push_back(static_cast<double>(x));
    std::memset(at, kPoison, static_cast<std::size_t>(size_bytes(program.dtype)));
  });
  for (const std::uint8_t byte : o.bytes) result.padding_touched |= byte != kPoison;
}

}  // namespace

RunResult run(const Program& program, const CompiledKernel& kernel, const Inputs& inputs,
              const RunOptions& options) {
  const Sizes& s = inputs.sizes;
  const DType dtype = program.dtype;
  const Attend& attend = attend_of(program);
  const int n_i = tiles(s.n_q, attend.tile_q), n_j = tiles(s.n_k, attend.tile_k);
  Stored q = upload(dtype, s, s.n_h, s.n_q, inputs.q, options.token_major);
  Stored k = upload(dtype, s, s.n_h_kv, s.n_k, inputs.k, options.token_major);
  Stored v = upload(dtype, s, s.n_h_kv, s.n_k, inputs.v, options.token_major);
  Stored o = store(dtype, s.n_b, s.n_h, s.n_q, s.d, options.token_major);
  const auto rows = static_cast<std::size_t>(s.n_b * s.n_h * n_i);
  std::vector<float> lse(static_cast<std::size_t>(s.n_b * s.n_h * s.n_q), -7.0F);
  std::vector<std::int32_t> counts(rows * 3, -1);
  std::vector<std::uint8_t> mask(rows * static_cast<std::size_t>(n_j), kPoison);
  std::vector<std::int32_t> indices = inputs.list_indices, list_counts = inputs.list_counts;

  HostArgs args{.n_b = s.n_b,
                .n_h = s.n_h,
                .n_h_kv = s.n_h_kv,
                .n_q = s.n_q,
                .n_k = s.n_k,
                .q = q.tensor,
                .k = k.tensor,
                .v = v.tensor,
                .o = o.tensor,
                .lse = {},
                .counts = contiguous(counts, s.n_h, n_i, 3),
                .tile_mask = contiguous(mask, s.n_h, n_i, n_j),
                .list_indices = {},
                .list_counts = {},
                .params = inputs.params.data(),
                .threads = options.threads};
  args.lse = contiguous(lse, s.n_h, s.n_q, 1);
  if (!list_counts.empty()) {
    args.list_indices = contiguous(indices, s.n_h, n_i, n_j);
    args.list_counts = contiguous(list_counts, s.n_h, n_i, 1);
  }
  RunResult result;
  result.error = kernel.run(args);
  download_o(program, s, o, result);
  result.outputs.lse.assign(lse.begin(), lse.end());
  result.outputs.counts = counts;
  result.outputs.tile_mask = mask;
  return result;
}

}  // namespace lacuna::host_tests

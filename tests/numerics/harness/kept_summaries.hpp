// Summaries of key tiles that stay from launch to launch, as a caller holds them.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/numerics/harness/tensors.hpp"

namespace lacuna::numerics {

struct KeptSummaries {
  Tensor data, slots, known;

  /// For sequences of up to `n_k` keys: with a slot and a tile more than they need, and each
  /// sequence in another slot than its number. Full of 0xff bytes, of which nothing is known.
  KeptSummaries(TensorSet& tensors, int sequences, int heads_kv, int n_k, int tile, int elements)
      : data(tensors.poisoned(
            DType::kF32, {sequences + 1, heads_kv, (n_k + tile - 1) / tile + 1, elements}, false)) {
    std::vector<std::int32_t> numbers;
    for (int b = 0; b < sequences; ++b) numbers.push_back(sequences - b);
    slots = tensors.upload_i32(numbers, {sequences});
    know(tensors, std::vector<std::int32_t>(numbers.size(), 0));
  }

  /// So many keys of each sequence are summarised.
  void know(TensorSet& tensors, const std::vector<std::int32_t>& keys) {
    known = tensors.upload_i32(keys, {static_cast<std::int64_t>(keys.size())});
  }

  /// Makes all of them wrong.
  void fill_with_zeros(TensorSet& tensors) {
    std::int64_t count = 1;
    for (const std::int64_t extent : data.shape) count *= extent;
    tensors.rewrite(data, std::vector<double>(static_cast<std::size_t>(count), 0), DType::kF32);
  }

  void pass(lacuna_launch_args& args) const {
    args.k_summaries = data.view();
    args.summary_slots = slots.view();
    args.summarised = known.view();
  }
};

}  // namespace lacuna::numerics

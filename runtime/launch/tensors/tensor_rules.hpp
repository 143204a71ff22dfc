// Which tensors a launch takes and what each of them has to be, by the extents of this launch.
#pragma once

#include "lacuna/lacuna.h"
#include "runtime/launch/tensors/tensor_check.hpp"

namespace lacuna {

/// Extents of a launch; kAnyExtent where a missing or misshapen tensor leaves one open. Of a batch
/// of one length, q says batch, heads and n_q, and k says heads_kv and n_k. Of sequences
/// lacuna_sequences says how many there are and how long they may be; then `*_entries` and
/// `*_rows`, which are the first and third extent of tensors, are those of the tensors that hold
/// them all.
struct Extents {
  std::int64_t batch = kAnyExtent, heads = kAnyExtent, n_q = kAnyExtent;
  std::int64_t heads_kv = kAnyExtent, n_k = kAnyExtent;
  std::int64_t q_tiles = kAnyExtent, k_tiles = kAnyExtent;
  std::int64_t q_entries = kAnyExtent, q_rows = kAnyExtent;
  std::int64_t k_entries = kAnyExtent, k_rows = kAnyExtent;
};

Extents read_extents(const LaunchContract& contract, const lacuna_launch_args& args);

/// What the caller passed; null: nothing.
const DLTensor* tensor_of(const lacuna_launch_args& args, TensorRole role);

TensorRule rule_of(TensorRole role, const LaunchContract& contract, const Extents& extents);

bool is_required(TensorRole role, const LaunchContract& contract);

/// Why a kernel has no use for a tensor; null if it has.
const char* refusal(TensorRole role, const LaunchContract& contract);

}  // namespace lacuna

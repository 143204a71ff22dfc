// Summaries of key tiles, in the workspace or where they stay from launch to launch.
//
// A summary follows from the keys of its tile alone, so those of earlier tokens are the same in
// each launch, and a query of many keys waits for nothing else but the read of all of them. If the
// caller provides memory, a slot for each sequence, the kernel that summarises leaves them there,
// and makes only those of tiles that the caller has not called summarised:
//
//   slot    | 0 1 2 3 4 . . . |   summary_tiles; 3 whole tiles of keys are summarised, 4.5 exist:
//             - - - * *           * is made, and written to its place
#pragma once

#include "base/math.cuh"
#include "base/optional_field.cuh"
#include "pipeline/batch_layout.cuh"

namespace lacuna {

/// Of the kernels that make and read them: has Args a member `summaries`?
LACUNA_OPTIONAL_FIELD(bool, keeps_summaries, kKeepsSummaries, false)

template <class Config, class Args>
__device__ __forceinline__ bool summaries_stay(const Args& args) {
  if constexpr (keeps_summaries<Config>()) {
    return args.summaries.kept_summaries != nullptr;
  } else {
    return false;
  }
}

/// The number of batch entry b, or of the sequence, in the caller's tensors.
template <class Config, class Args>
__device__ __forceinline__ int callers_entry(const Args& args, int b) {
  if constexpr (has_sequences<Config>()) {
    return args.sequences.entry;
  } else {
    return b;
  }
}

/// Of the key tiles of a KV head; `head`: counted through the batch, `length`: elements of one.
template <class Config, class Args>
__device__ __forceinline__ float* summaries_of_head(const Args& args, long long head, int length) {
  if constexpr (keeps_summaries<Config>()) {
    if (summaries_stay<Config>(args)) {
      const int heads = args.attend.n_h / args.attend.heads_per_kv;
      const int b = static_cast<int>(head) / heads;
      const int entry = callers_entry<Config>(args, b);
      const int* const slots = args.summaries.summary_slots;
      const long long slot = slots != nullptr ? slots[entry] : entry;
      return args.summaries.kept_summaries +
             (slot * heads + (head - b * heads)) * args.summaries.summary_tiles * length;
    }
  }
  return args.predict.k_summary + head * args.predict.keep_k_tiles * length;
}

/// How many tiles of kTile keys need no summary, from the first one on; of batch entry b.
template <class Config, int kTile, class Args>
__device__ __forceinline__ int known_summaries(const Args& args, int b) {
  if constexpr (keeps_summaries<Config>()) {
    if (summaries_stay<Config>(args)) {
      const int known = args.summaries.summarised[callers_entry<Config>(args, b)];
      return smaller(larger(known, 0), args.attend.n_k) / kTile;
    }
  }
  return 0;
}

}  // namespace lacuna

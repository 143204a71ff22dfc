// What the argument block has besides where keys and values are e4m3: numbers that their codes are
// multiplied with, [entries, heads_kv], where an entry is one of the batch or a page. A stride of 0
// stands for one number along a dimension.
#pragma once

namespace lacuna {

struct KvScaleArgs {
  const float* keys;  ///< null: all are 1
  long long keys_stride_b, keys_stride_h;
  const float* values;
  long long values_stride_b, values_stride_h;
};
static_assert(sizeof(KvScaleArgs) == 48, "the host writes this layout");

}  // namespace lacuna

// What the argument block has besides where summaries of key tiles may stay in memory of the
// caller's from launch to launch (select/pooled/kept_summaries.cuh).
#pragma once

namespace lacuna {

struct SummaryArgs {
  float* kept_summaries;     ///< [slots, h_kv, summary_tiles, elements of one]; null: none stay
  const int* summary_slots;  ///< [b], the slot of each entry or sequence; null: its number
  const int* summarised;     ///< [b], keys of each whose summaries are there
  int summary_tiles;
};
static_assert(sizeof(SummaryArgs) == 32, "the host writes this layout");

}  // namespace lacuna

// What the argument block has besides where a batch consists of sequences: where each begins and how
// long it is, all on the device, so that a captured graph runs with other lengths. Of AttendArgs
// n_b then counts sequences, and n_q and n_k are the most that a sequence may have.
#pragma once

namespace lacuna {

struct SequenceArgs {
  const int* q_begin;  ///< [n_b + 1] first row of each sequence in q, o and lse
  const int* lengths;  ///< [n_b] keys of each sequence
  const int* k_begin;  ///< [n_b] first row of each sequence in k and v; of pages null
  const int* pages;    ///< [n_b, pages_stride]: k and v are [pages, heads_kv, page_tokens, d]
  long long pages_stride;
  int page_tokens;   ///< of pages a power of two
  int most_queries;  ///< of a sequence
};
static_assert(sizeof(SequenceArgs) == 48, "the host writes this layout");

}  // namespace lacuna

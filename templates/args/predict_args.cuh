// What the kernels before and after `attend` read and write: the caller's tensors where attend
// works on copies, and the slots of the workspace. Filled by the host
// (compiler/emit/predict_block.cpp has the same table); the pointer of a slot that a spec does not
// need is null.
//
// All arrays are contiguous; b, h, h_kv are batch entry, query head, KV head. `padded` lengths are
// multiples of 256 tokens, so that whole tiles can be written and read without a bound.
#pragma once

#include "args/attend_args.cuh"
#include "base/types.cuh"

namespace lacuna {

struct PredictArgs {
  // permute: attend's q, k, v, o and lse are ordered copies in the workspace; these are the
  // caller's
  TensorArg caller_q, caller_k, caller_v, caller_o;
  LseArg caller_lse;
  const int* order;  ///< [n]

  LseArg previous_lse;  ///< [b, h, n_q]

  // statistics over all tokens
  float* partial;          ///< [b, heads, chunks of 512 tokens, d] of the tensor being reduced
  float *q_mean, *k_mean;  ///< [b, h, d], [b, h_kv, d]
  float* v_scale;          ///< [b, h_kv, d]

  // of each tile of the predictor
  float *q_summary, *k_summary;        ///< [b, h, keep_q_tiles, d], [b, h_kv, keep_k_tiles, d];
                                       ///< bounds: 2 d, the smallest of each element, the largest
  float *q_similarity, *k_similarity;  ///< [b, h, keep_q_tiles], [b, h_kv, keep_k_tiles]

  // of each cell, in the element type: [b, heads, padded / tokens of a cell, d]
  unsigned short *q_cells, *k_cells;

  // integers: for attend, and with fewer bits or finer groups for the estimate
  signed char *q_values, *k_values;                    ///< [b, heads, padded, d]
  float *q_scale, *k_scale;                            ///< [b, heads, groups]
  signed char *estimate_q_values, *estimate_k_values;  ///< 8 or 4 bits, both one to a byte
  float *estimate_q_scale, *estimate_k_scale;
  unsigned char*
      v_values;  ///< e4m3 [b, h_kv, d, k_padded]; order of tokens: prepare/value_order.cuh
  float *row_bias, *column_bias;  ///< [b, h, q_padded], [b, h, k_padded]

  // decisions
  float*
      scores;  ///< scratch of the estimate, its result for the last rows, or references: see there
  float* row_scores;   ///< of few rows: select/pooled/row_scores.cuh, select/tokens/key_shares.cuh
  unsigned* row_bins;  ///< of few rows that several blocks decide: select/keep/row_shares.cuh
  float* row_sums;     ///< of the last rows over shares of the keys: select/tokens/last_rows.cuh
  float* row_weights;  ///< scratch of select/token_softmax
  unsigned* next_estimate;  ///< 0 at the launch: select/token_softmax counts rows with it; of
                            ///< sequences who has which scratch, then a counter of each
  unsigned* kept_before;    ///< the same as kept, of the step of the predictor before the last one
  unsigned* kept;           ///< [b, h, keep_q_tiles, keep_words], bit j % 32 of word j / 32
  int* row_order;           ///< work tiles that blocks of attend take, longest list first
  int* gathered;  ///< [blocks of a gathering attend, k_padded] key indices of the block's row
  long long kept_stride;  ///< of sequences: bytes from the bits of one to those of the next, which
                          ///< a selection of the caller's has close together

  int q_padded, k_padded;
  int keep_q_tiles, keep_k_tiles, keep_words;
  int q_groups, k_groups, estimate_q_groups, estimate_k_groups;  ///< of one head
  int softmax_blocks;  ///< for which there are row_weights
};

}  // namespace lacuna

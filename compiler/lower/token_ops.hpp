// The ops on the tokens of q or of k, by what they do: one kernel computes several of them
// together.
#pragma once

#include "compiler/lower/launch_text.hpp"

namespace lacuna {

/// Null where the program has none. Points into the program.
struct TokenOps {
  const Smooth* smooth = nullptr;
  const Summarise* summary = nullptr;
  const Summarise* bounds = nullptr;  ///< which a kernel of their own makes
  const Similarity* similarity = nullptr;
  const Quantise* quantise = nullptr;           ///< what attend reads
  const Quantise* estimate_quantise = nullptr;  ///< what only the estimate reads
  const Project* bias = nullptr;                ///< queries: row_bias; keys: column_bias

  /// Are the summaries those of cells?
  bool has_cells() const { return summary != nullptr && summary->rounded; }
  /// Is there anything for the prepare kernel to do?
  bool prepares() const { return summary || similarity || quantise || estimate_quantise || bias; }
};

/// Of kQ or kK.
TokenOps token_ops(const Program& program, Tensor tensor);

/// The summaries of key tiles that may stay in memory of the caller's from launch to launch,
/// because each follows from the keys of its tile alone, and nothing else is read of these keys
/// before attend; null: there are none.
const Summarise* kept_summaries(const Program& program);
/// Elements of one.
int summary_elements(const Summarise& summary, const Program& program);

/// Does attend multiply integers? Then what prepares them serves no decision alone.
bool quantises_attend(const Program& program);

}  // namespace lacuna

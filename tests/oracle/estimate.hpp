// The first half of the predictor: what is known before tiles are judged (vectors, biases,
// self-similarity) and the estimates of a work tile. The second half is predict.cpp.
#pragma once

#include <vector>

#include "tests/oracle/compared.hpp"

namespace lacuna::oracle {

/// Everything that is known before work tiles are looked at.
struct Prepared {
  const Problem* problem = nullptr;
  const Predictor* predictor = nullptr;
  int q_tiles = 0, k_tiles = 0;
  int q_vectors = 0, k_vectors = 0;  ///< of one head
  Vectors q, k;
  std::vector<double> q_length, k_length;
  std::vector<double> row_bias, column_bias;  ///< [n_b, n_h, tokens]
  std::vector<Band> similar_q, similar_k;
  std::vector<Item> columns;
};

/// Whether a rule holds at the nominal values, and whether it says the same at all corners.
struct Verdict {
  bool holds = false, stable = true;
};

/// A work tile with all its estimates; `shaken`: not even the exclusions are certain.
struct Row {
  RowEstimate estimate;
  bool shaken = false;
};

Prepared prepare(const Problem& problem, const Predictor& predictor);

/// The indices of a tile; estimates are not filled in.
TileFacts facts_of(const Prepared& x, int b, int h, int i, int j);

/// Self-similarity of the row's and of the column's tile; nothing where no rule asks.
Band row_similarity(const Prepared& x, int b, int h, int i);
Band column_similarity(const Prepared& x, int b, int h, int j);

/// `within`: what the step before keeps of the row, if only that counts; else null.
Row estimate_row(const Prepared& x, int b, int h, int i, const KeptRow* within = nullptr);

}  // namespace lacuna::oracle

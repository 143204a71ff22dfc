// Batches of sequences: tensors as lacuna_sequences describes them, of problems that the oracle
// knows one by one. Everything that no sequence owns is NaN: rows between sequences, pages of
// nobody, the rest of a last page.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/numerics/harness/branches.hpp"
#include "tests/numerics/harness/harness.hpp"

namespace lacuna::numerics {

struct SequenceCase {
  std::string variant;  ///< of one of the lists below
  DType dtype = DType::kBF16;
  int d = 64, n_h = 4, n_h_kv = 2;
  int page_tokens = 0;        ///< 0: keys and values lie one sequence behind the other
  bool heads_inside = false;  ///< of tokens: [tokens, heads, d] in memory
  std::vector<std::pair<int, int>> lengths;  ///< queries and keys of each
  int spare = 0;                             ///< the most that a sequence may have, beyond that
  int room = 0;  ///< the most that one may have, and tensors for so many; 0: what is used
  Fill fill = Fill::kNormal;
  bool e4m3 = false;  ///< keys and values, with scales for each entry and head
  KernelTile tile;    ///< of the kernel: variants of tiles have reports of them
  int d_v = 0;        ///< of v and o; 0: d

  /// That a sequence may have.
  int most_queries() const;
  int most_keys() const;
  int value_dim() const { return d_v > 0 ? d_v : d; }
  bool is_tiled() const;
  bool has_branches() const;
  bool has_lse() const;    ///< branches with weights have none, and what is no softmax
  bool has_order() const;  ///< of tokens: each sequence has as many queries as keys
  /// The same with as many keys as queries in each sequence, where an order is for both.
  SequenceCase fitting_order() const;
  /// One sequence, as a problem by itself; `entry`: its number, where formulas may read it.
  Case of_sequence(std::pair<int, int> lengths, int entry = 0) const;
  std::string text() const;
};

/// Specs whose masks and scores are known for any lengths, with parameters that all sequences
/// share.
const std::vector<std::string>& sequence_variants();

/// Those with gates, or with predictors: each sequence has tiles of its own, which are compared,
/// too. What they are asked for are the shipped specs and those of variants.hpp.
const std::vector<std::string>& tiled_sequence_variants();

/// Those with branches: of tokens, of means, of bands. `nsa` has a predictor besides, and asks the
/// device under test about the tiles of each sequence.
const std::vector<std::string>& branch_sequence_variants();

constexpr std::uint32_t kParamsSeed = 77;  ///< the same for all sequences of all batches

/// One sequence of a variant with branches.
JoinedVariant joined_sequence(const SequenceCase& c, std::pair<int, int> lengths,
                              std::uint32_t seed);

struct SequenceBatch {
  SequenceCase shape;
  std::vector<Variant> variants;      ///< one for each sequence
  std::vector<JoinedVariant> joined;  ///< of variants with branches the same, and what they give
  TensorSet tensors;
  Tensor q, k, v, o, lse, q_begin, n_k, k_begin, pages, order, workspace;
  Tensor k_scale, v_scale;           ///< of e4m3
  Tensor counts, tile_mask;          ///< of variants of tiles
  Tensor list_indices, list_counts;  ///< of variants with lists of the caller's
  std::vector<ParamValue> param_values;
  std::vector<Tensor> param_tensors;
  std::vector<lacuna_param> params;
  lacuna_sequences sequences{};
  lacuna_launch_args args{};
  std::vector<int> first_queries;
  bool has_lse = true;

  SequenceBatch(bool is_cuda, const SequenceCase& shape, std::uint32_t seed);
  SequenceBatch(const SequenceBatch&) = delete;
  SequenceBatch& operator=(const SequenceBatch&) = delete;

  /// Data and lengths of another batch with the same room, in this one's memory.
  void take(const SequenceBatch& other);
  void poison();

  /// lacuna_shape of a launch.
  lacuna_shape launch_shape() const;
  /// Waits for the stream; "" if o and lse are right and nothing else was written.
  std::string check(bool is_cuda);

 private:
  /// Lists of all sequences, laid out for the longest; garbage behind each list's end, and of rows
  /// that no sequence has.
  void upload_lists(int q_tiles, int k_tiles);
  void upload_order(int rows);
  /// Of variants with branches: those that all sequences share, and tables with a row for each.
  std::vector<ParamValue> params_of_branches(int most_q) const;
  /// "" or what is wrong with the results of sequence b.
  std::string check_dense(int b, const Reported& got, bool is_cuda) const;
  std::string check_tiles(int b, Reported got, bool is_cuda);
};

}  // namespace lacuna::numerics

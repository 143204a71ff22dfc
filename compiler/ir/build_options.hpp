// What the caller fixes when compiling, besides the spec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/spec/spec.hpp"

namespace lacuna {

/// How the batch entries of a launch lie in memory:
///   kUniform    all of one length: q [n_b, heads, n_q, d], k [n_b, heads_kv, n_k, d]
///   kSequences  one behind the other, each of its own lengths: q [1, heads, tokens, d],
///               k [1, heads_kv, tokens, d]
///   kPages      queries as in kSequences; keys and values in pages that a table names:
///               k [pages, heads_kv, page_tokens, d]
/// Lengths and tables are tensors of the launch (lacuna_sequences of lacuna.h). In formulas b is
/// the number of a sequence, and n_q, n_k, q and k are those of the sequence.
enum class BatchLayout : std::uint8_t { kUniform, kSequences, kPages };

/// Of which type k and v of a launch are:
///   kSame  that of q
///   kE4M3  codes, times scales that come with the launch, each number rounded to q's type; the
///          numbers are what k and v of the program hold
enum class KvFormat : std::uint8_t { kSame, kE4M3 };

/// What a measurement found best of what the spec leaves open; 0 and nullopt: not measured.
/// Values that the spec or the target does not allow are passed over.
struct TunedTiles {
  int tile_q = 0, tile_k = 0, stages = 0;
  std::optional<TileOrder> order;
  std::string record;  ///< where it comes from, as `explain` shows it: one clause
  int split_kv = 0;
  std::optional<QueryPlace> queries{};
};

/// The families of `attend`: mma.sync on every target, wgmma where the target has it.
enum class AttendFamily : std::uint8_t { kMma, kWgmma };
std::string_view name_of(AttendFamily);

struct BuildOptions {
  int head_dim = 128;
  DType dtype = DType::kBF16;
  BatchLayout batch = BatchLayout::kUniform;
  std::optional<TunedTiles> tuned{};
  /// Compile for this family alone, to compare the two; an error where the spec or target excludes
  /// it.
  std::optional<AttendFamily> family{};
  KvFormat kv = KvFormat::kSame;
  /// How far down the ladder of passes/relief.hpp the plan is to be: 0 asks for the fastest kernel,
  /// more for one that takes fewer registers.
  int relief = 0;
  /// For a rank of a group: formulas see where its queries and heads stand in the whole problem
  /// (ir/shift_positions.hpp).
  bool positions = false;
  int head_dim_v = 0;  ///< of v and o; 0: the spec's first, else head_dim
};

/// Elements of a row of v and o, of anything that says both widths; a head_dim_v of 0 is the same
/// as head_dim.
template <class Widths>
constexpr int value_dim(const Widths& widths) {
  return widths.head_dim_v > 0 ? widths.head_dim_v : widths.head_dim;
}

/// Elements of the widest row, of q and k or of v and o.
template <class Widths>
constexpr int widest_row(const Widths& widths) {
  return widths.head_dim > value_dim(widths) ? widths.head_dim : value_dim(widths);
}

}  // namespace lacuna

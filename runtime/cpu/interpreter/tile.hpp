// One tile of the attention map in the interpreter: its logits, the gate, and what it adds to the
// rows of queries. A tile's keys are neighbours, or gathered (runtime/cpu/interpreter/gather.hpp).
#pragma once

#include <span>
#include <vector>

#include "compiler/ir/program.hpp"
#include "runtime/cpu/host_backend.hpp"
#include "runtime/cpu/interpreter/softmax.hpp"
#include "runtime/cpu/interpreter/tensor.hpp"

namespace lacuna::interpreter {

inline constexpr std::uint8_t kVisited = 1, kGated = 2;  ///< codes of the tile mask

/// What all threads share.
struct Job {
  const Attend& attend;
  const HostArgs& args;
  std::span<const ParamView> params;
  DType dtype;
  float scale;  ///< of the softmax
  int head_dim, head_dim_v;
  int q_tiles, k_tiles;  ///< k_tiles: columns, if they are gathered
};

/// A work tile, and the KV head it reads.
struct WorkTile {
  HeadIndex head, head_kv;
  int i = 0;
  int q0 = 0, rows = 0;  ///< its queries that exist
};

struct Visit {
  int j = 0;
  bool masked = false;  ///< some pair may be invisible
};

/// One thread's memory, and the expressions' view of where it is.
struct Worker {
  explicit Worker(const Job& job);

  int columns() const { return static_cast<int>(keys.size()); }
  std::span<float> logits_of(int r) {
    return std::span(logits).subspan(static_cast<std::size_t>(r) * tile_k, keys.size());
  }

  std::size_t tile_k;
  Bindings bindings;
  OnlineSoftmax softmax;
  std::vector<float> q, k_columns, v, logits, output;
  std::vector<int> keys;  ///< of the tile at hand, ascending, at most tile_k
  std::vector<Term> terms;
  std::vector<Visit> visits;
  std::vector<int> gathered;  ///< all kept keys of a row of columns
  std::vector<bool> gated;    ///< by row
};

/// Loads the queries, and forgets the rows before.
WorkTile begin_row(const Job& job, HeadIndex head, int i, Worker& worker);

/// Tells the expressions where they are: keys [first, last] of tile (or column) j.
void bind_keys(int j, int first, int last, Worker& worker);

/// Takes worker.keys into the rows; returns the tile's code in the tile mask.
std::uint8_t visit_tile(const Job& job, const WorkTile& row, bool masked, bool first,
                        Worker& worker);

/// Writes o, and lse where it is wanted.
void write_results(const Job& job, const WorkTile& row, Worker& worker);

}  // namespace lacuna::interpreter

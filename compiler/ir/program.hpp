// Program: *what* is computed, as typed ops over symbolic shapes. Spec -> build -> Program ->
// passes.
//
// Each op is a struct of plain fields with one table of them (ir/fields.hpp), from which printer,
// parser, hash and equality follow. Both backends start here: passes + emit make CUDA of it, the
// CPU backend compiles it through LLVM, the interpreter walks it.
// parse_program(print_program(p)) == p.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/expr/expr.hpp"
#include "compiler/expr/interval.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

enum class Element : std::uint8_t { kBF16, kF16, kF32, kI32 };
enum class Dim : std::uint8_t {
  kBatch,
  kHeads,
  kHeadsKv,
  kNQ,
  kNK,
  kHeadDim,
  kQTiles,
  kKTiles,
  kCapacity
};

struct ValueType {
  Element element = Element::kF32;
  std::vector<Dim> shape;
  bool operator==(const ValueType&) const = default;
};

/// A tensor the caller passes: "q", "k", "v", "list_indices", "list_counts".
struct Input {
  std::string name;
};
bool operator==(const Input& a, const Input& b);

/// Gate of an attend op. Statistics are taken over the rows in scope (kWarp: 16 rows, kTile: all
/// rows of the tile) that exist (q < n_q), in natural units after mask and score:
///   tile_max = max over rows of the row maximum of this tile
///   gap      = max over rows of (row maximum of this tile - running row maximum before this tile)
/// A row without a visible key in the tile does not take part; no row at all: both are -inf. A row
/// whose running maximum is still -inf has gap +inf. Skip iff `skip and not exempt`; the first
/// visited tile of a row of tiles is never skipped. skips_exp: maximum and denominator stay as they
/// were; only skips_pv: both are updated, the product with V is left out.
struct Gate {
  GateScope scope = GateScope::kTile;
  Expr skip, exempt;
  bool skips_v_load = false, skips_exp = false, skips_pv = false;
};
bool operator==(const Gate& a, const Gate& b);

/// Online-softmax attention over the visited tiles of each row of tiles.
/// Visited: tiles of `list_indices` if given, else those the classifier does not find empty.
/// Results: o, and lse if wanted. Empty row: o = 0, lse = -inf.
struct Attend {
  int q = -1, k = -1, v = -1;               ///< value ids
  int list_indices = -1, list_counts = -1;  ///< value ids; -1: no lists
  Expr mask, score;                         ///< empty: all visible; s
  TileClassifier classifier;                ///< of `mask`; derived: neither printed nor compared
  std::optional<Gate> gate;
  float scale = 0;             ///< softmax scale
  int tile_q = 0, tile_k = 0;  ///< 0 until choose_tiles
  TileOrder order = TileOrder::kAscending;
  bool lse = true;
};
bool operator==(const Attend& a, const Attend& b);

using Op = std::variant<Input, Attend>;

struct Value {
  std::string name;  ///< without the %
  ValueType type;
  bool operator==(const Value&) const = default;
};

/// One op and the ids of the values it defines (indices into Program::values).
struct Node {
  std::vector<int> results;
  Op op;
  bool operator==(const Node&) const = default;
};

struct Program {
  std::string name;
  int head_dim = 0;
  DType dtype = DType::kBF16;
  std::vector<ParamSpec> params;
  std::vector<Value> values;
  std::vector<Node> nodes;
};

/// Same meaning. Words for readers (ParamSpec::doc, unit) and the derived classifier do not count.
bool operator==(const Program& a, const Program& b);

/// Equal programs have equal hashes, in every process.
std::uint64_t hash_program(const Program& program);

/// What the caller fixes when compiling.
struct BuildOptions {
  int head_dim = 128;
  DType dtype = DType::kBF16;
};

/// Spec -> Program; adds diagnostics if the spec does not allow the head dim or dtype.
Program build_program(const SpecDocument& document, const BuildOptions& options,
                      Diagnostics& diagnostics);

/// Canonical text: parameters in declaration order, then one op per line.
std::string print_program(const Program& program);

/// Reads that text (and `#` comments). One error for each bad line, with its place. The classifier
/// of an attend is computed from its mask.
Program parse_program(const SourceText& source, Diagnostics& diagnostics);

/// Checks every rule of the verifier's table; the rule's words are the diagnostic.
void verify_program(const Program& program, Diagnostics& diagnostics);

/// The words of all those rules.
std::vector<std::string_view> verifier_rules();

/// The one attend op of a verified program.
const Attend& attend_of(const Program& program);
Attend& attend_of(Program& program);

}  // namespace lacuna

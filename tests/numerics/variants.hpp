// The shipped specs once more, as C++ functions for the oracle: mask, score and gate written by
// hand from the papers, with random parameters. What the compiler makes of specs/<name>.json must
// agree with these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/oracle/oracle.hpp"

namespace lacuna::numerics {

enum class DType { kBF16, kF16, kF32 };
std::string name_of(DType dtype);

/// Values of the inputs; methods.md, section 4.3.
enum class Fill {
  kNormal,     ///< N(0, 1)
  kUneven,     ///< N(0, 1), keys of every second tile damped: gates have something to skip
  kZero,       ///< all q, k, v zero
  kHuge,       ///< logits up to about +-1e4
  kNegative,   ///< all logits negative
  kIdentical,  ///< all rows of q, of k and of v equal
  kOutlier,    ///< one channel of q and k a hundred times the others
  kTiny,       ///< denormals of the dtype and -0.0
};
std::string name_of(Fill fill);

struct Case {
  std::string variant;  ///< spec name; "lists": dense.json's external-mask twin
  DType dtype = DType::kBF16;
  int d = 128;
  int n_b = 1, n_h = 2, n_h_kv = 1, n_q = 128, n_k = 128;
  Fill fill = Fill::kNormal;
  bool token_major = false;  ///< [batch, tokens, heads, d] in memory, padded rows; else contiguous
  std::string text() const;
};

/// A parameter to pass, contiguous in its declared shape; empty shape: one number.
struct ParamValue {
  std::string name;
  bool is_i32 = false;
  std::vector<double> values;
  std::vector<std::int64_t> shape;
};

struct Variant {
  std::string spec_json;  ///< text handed to the library
  oracle::Problem problem;
  oracle::Tiling tiling;  ///< direction; the tile sizes are asked of the library
  std::optional<oracle::GateRule> gate;
  std::vector<ParamValue> params;
};

/// Names of all variants with an oracle twin.
const std::vector<std::string>& variant_names();

/// Fresh random inputs and parameters. `tile_q` x `tile_k` are the tiles the compiled kernel uses.
Variant make_variant(const Case& c, int tile_q, int tile_k, std::uint32_t seed);

/// The JSON text of a case's spec.
std::string spec_text(const Case& c);

/// The checkout: where it was at build time, or LACUNA_TEST_SOURCE_DIR on another machine.
std::string source_dir();

/// Rounds to the nearest value of the dtype.
double round_to(DType dtype, double x);

}  // namespace lacuna::numerics

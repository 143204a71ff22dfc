// The shipped specs once more, as C++ functions for the oracle: mask, score and gate written by
// hand from the papers, with random parameters. What the compiler makes of specs/<name>.json must
// agree with these.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tests/oracle/oracle.hpp"
#include "tests/oracle/predict.hpp"

namespace lacuna::numerics {

enum class DType { kBF16, kF16, kF32 };
std::string name_of(DType dtype);

/// Values of the inputs.
enum class Fill {
  kNormal,     ///< N(0, 1)
  kUneven,     ///< N(0, 1), keys of every second tile damped: gates have something to skip
  kZero,       ///< all q, k, v zero
  kHuge,       ///< logits up to about +-1e4
  kNegative,   ///< all logits negative
  kIdentical,  ///< all rows of q, of k and of v equal
  kOutlier,    ///< one channel of q and k a hundred times the others
  kTiny,       ///< denormals of the dtype and -0.0
  kSharp,      ///< logits up to about +-40: few keys have all the weight of a row
  kRising,     ///< logits of every 64 keys some 25 above those before
  kClustered,  ///< runs of tokens that are alike, queries like some of the keys: estimates have a
               ///< say
};
std::string name_of(Fill fill);

struct Case {
  std::string variant;  ///< spec name; "lists": dense.json's external-mask twin
  DType dtype = DType::kBF16;
  int d = 128;
  int n_b = 1, n_h = 2, n_h_kv = 1, n_q = 128, n_k = 128;
  Fill fill = Fill::kNormal;
  bool token_major = false;  ///< [batch, tokens, heads, d] in memory, padded rows; else contiguous
  int d_v = 0;               ///< of v and o; 0: d
  /// Of a sequence: its number in the batch, and what tables of parameters have elements for.
  struct Batch {
    int entry = 0, count = 0, most_q = 0, most_k = 0;
  };
  std::optional<Batch> batch = {};
  int value_dim() const { return d_v > 0 ? d_v : d; }
  std::string text() const;
};

void PrintTo(const Case& c, std::ostream* out);  // found by GoogleTest

/// A parameter to pass, contiguous in its declared shape; empty shape: one number.
struct ParamValue {
  std::string name;
  bool is_i32 = false;
  std::vector<double> values;
  std::vector<std::int64_t> shape;
};

struct Variant {
  std::string spec_json;  ///< text handed to the library
  DType dtype = DType::kBF16;
  oracle::Problem problem;  ///< what the caller passes
  /// Of the reports, and direction; tile sizes are asked of the library. With columns, tile_k is
  /// their width.
  oracle::Tiling tiling;
  std::optional<oracle::Predictor> predictor;
  std::optional<oracle::GateRule> gate;
  oracle::Quantisation quantisation;
  std::vector<std::int32_t> order;  ///< of tokens; empty: as they come
  int reuse = 1;                    ///< launches that share a decision
  std::vector<ParamValue> params;
  double softmax_scale = 0;  ///< that a launch is given; 0: none
  bool v_of_k = false;       ///< problem.v is a part of problem.k: no v is passed
  /// Interval analysis of the mask calls some tiles visible of which no pair is: they may be
  /// visited.
  bool has_loose_bounds = false;
  /// Quantised arithmetic is near the exact one: no formula makes more of its errors.
  bool knows_exact = true;
};

/// Names of the variants without a predictor, of those with one, and of those whose lists have rows
/// of 64 queries.
const std::vector<std::string>& variant_names();
const std::vector<std::string>& predicted_names();
const std::vector<std::string>& narrow_list_names();
/// Of the first two.
std::vector<std::string> all_names();
/// Every variant with values of all kinds.
std::vector<Case> value_cases(const std::vector<std::string>& variants);
/// Has quantised operands: not for head_dim 256.
bool is_quantised(const std::string& variant);

/// The problem with tokens in the order of the computation, which predictors see; and what attend
/// makes of it, operands quantised.
oracle::Problem ordered_problem(const Variant& variant);
oracle::Problem computed_problem(const Variant& variant);

/// The tiles that a compiled kernel uses, and the rows that its gates of scope warp judge together:
/// those of a warpgroup where it multiplies 64 at once.
struct KernelTile {
  int q = 0, k = 0;
  int gate_rows = oracle::kWarpRows;
  int step_tiles = 1;  ///< key tiles whose weights are worked out together
};

/// Fresh random inputs and parameters.
Variant make_variant(const Case& c, const KernelTile& tile, std::uint32_t seed);
/// The same where several problems have the parameters of one seed.
Variant make_variant(const Case& c, const KernelTile& tile, std::uint32_t seed,
                     std::uint32_t params_seed);

/// The JSON text of a case's spec.
std::string spec_text(const Case& c);

/// The checkout: where it was at build time, or LACUNA_TEST_SOURCE_DIR on another machine.
std::string source_dir();

/// Rounds to the nearest value of the dtype.
double round_to(DType dtype, double x);

}  // namespace lacuna::numerics

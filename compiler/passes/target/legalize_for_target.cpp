// Replaces what the target lacks by what it has, and rejects what it cannot compute, before tiles
// are chosen.
#include <algorithm>
#include <bit>
#include <string>

#include "compiler/ir/fields.hpp"
#include "compiler/ir/names.hpp"
#include "compiler/passes/check_head_dim.hpp"
#include "compiler/passes/eliminate_dead_ops.hpp"
#include "compiler/passes/pass.hpp"
#include "compiler/passes/target/choose_estimate.hpp"
#include "compiler/passes/target/widen_codes.hpp"
#include "compiler/target/estimate_block.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {
namespace {

constexpr int kMostColumnsOfTile = 128;
constexpr int kLargestHeadDimOf8Bits = 128;

void check_dtype(const Program& program, const PassContext& context) {
  if (program.dtype != DType::kF32) return;
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, "/attention/dtype", Code::kUnsupported, Severity::kError,
               "dtype: expected bf16 or f16 on " + context.target.name + ", got f32"));
  d.notes.push_back("the mma family multiplies 16-bit elements");
  d.helps.push_back("f32 runs on the target cpu");
}

/// e4m3 values where there is an mma of them, else V as it is: its rounding goes, nothing else.
Program legalize_values(Program program, const PassContext& context) {
  const auto* values = find_op<QuantiseValues>(program);
  if (values == nullptr || context.target.has_e4m3_mma) return program;
  Attend& attend = attend_of(program);
  attend.v = values->x;
  attend.v_scale = -1;
  context.attend.v_bits = {16, Origin::kDerived, context.target.name + " has no mma of e4m3"};
  return without_unread(std::move(program));
}

/// How the products of an estimate are computed. Integers of 4 bits are stored and multiplied as
/// ones of 8: the same integers, so the same logits.
void note_estimate(const Program& program, const PassContext& context) {
  const auto steps = predict_steps(program);
  if (steps.size() > 1)
    context.attend.estimate_before_family = choose_estimate_family(program, steps.front(), context);
  const Estimate* estimate = last_step(program).estimate;
  if (estimate == nullptr) return;
  Chosen<int>& product = context.attend.estimate_product_bits;
  product = {estimate->bits, Origin::kDerived, ""};
  context.attend.estimate_family = choose_estimate_family(program, last_step(program), context);
  if (context.target.kind == TargetKind::kCpu || estimate->bits != 4) return;
  product = {
      8, Origin::kDerived,
      context.target.name + " has no mma of int4: the same integers in int8, the same logits"};
}

void check_estimate_smem(const Estimate& estimate, int head_dim, const PassContext& context) {
  // Cells take the same room whatever their tiles are.
  if (has_cells(estimate.rows)) return;
  const int rows = estimate_rows(estimate), limit = context.target.smem_bytes_per_block;
  const auto bytes = [&](int n) { return estimate_block_smem_bytes(estimate, n, head_dim); };
  if (bytes(rows) <= limit) return;
  const bool is_last = estimate.rows.kind == SummaryKind::kLast;
  const char* pointer = is_last ? "/predictor/estimate/q" : "/predictor/tile/q";
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, pointer, Code::kSmemLimit, Severity::kError,
               "an estimate of " + std::to_string(rows) + " rows at " +
                   (estimate.is_indexed() ? "index.dim " + std::to_string(estimate.index_dim)
                                          : "head_dim " + std::to_string(head_dim)) +
                   " needs " + std::to_string(bytes(rows)) + " bytes of shared memory, " +
                   context.target.name + " has " + std::to_string(limit) + " for a block"));
  d.notes.push_back(estimate_block_smem_formula(estimate, rows, head_dim) +
                    " bytes: the rows of a tile, 128 keys, and the rows' statistics");
  int fitting = rows;  // halved: tiles stay divisors of what they were
  while (fitting > kWarpRows && bytes(fitting) > limit) fitting /= 2;
  d.helps.push_back("nearest legal value: " +
                    (is_last
                         ? "last(" + std::to_string(fitting) + ")"
                         : "predictor.tile.q = " + std::to_string(fitting * estimate.rows.count)));
}

/// Columns of a tile, tokens or cells, are compared in chunks of whole mma steps.
void check_estimate_columns(const Estimate& estimate, const PassContext& context) {
  const int columns = estimate.tile_k / estimate.columns.count;
  const bool is_power = std::has_single_bit(static_cast<unsigned>(columns));
  if (columns <= kMostColumnsOfTile && (is_power || columns % kWarpRows == 0)) return;
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, "/predictor/tile/k", Code::kTileShape, Severity::kError,
               "predictor.tile.k: expected up to " + std::to_string(kMostColumnsOfTile) +
                   (has_cells(estimate.columns) ? " cells" : " keys") + " of the estimate on " +
                   context.target.name + ", a power of two or a multiple of 16, got " +
                   std::to_string(columns)));
  d.notes.emplace_back("they are multiplied in one go, in steps of 16");
  const unsigned below = std::bit_floor(static_cast<unsigned>(columns));
  const int legal = std::min(static_cast<int>(below), kMostColumnsOfTile);
  d.helps.push_back("nearest legal value: " + std::to_string(legal * estimate.columns.count));
}

/// Kernels that read queries have blocks for tiles of as many as are prepared together.
void check_estimate_tile(const PredictStep& step, const PassContext& context) {
  if (step.estimate->is_given() || step.select->tile_q <= kPreparedTokens) return;
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, "/predictor/tile/q", Code::kTileShape, Severity::kError,
               "predictor.tile.q: expected " + std::to_string(kPreparedTokens) +
                   " or less with an estimate of q and k on " + context.target.name + ", got " +
                   std::to_string(step.select->tile_q)));
  d.notes.emplace_back("the queries of a tile are compared by one block");
  d.helps.push_back("nearest legal value: " + std::to_string(kPreparedTokens) +
                    "; larger tiles take patterns of places, estimate.from, or the target cpu");
}

void check_estimates(const Program& program, const PassContext& context) {
  for (const PredictStep& step : predict_steps(program)) {
    if (step.estimate != nullptr) check_estimate_tile(step, context);
    if (step.estimate == nullptr || step.estimate->rows.kind == SummaryKind::kMean) continue;
    check_estimate_smem(*step.estimate, program.head_dim, context);
    check_estimate_columns(*step.estimate, context);
  }
}

/// One kernel prepares the tokens of q or of k for all steps.
template <class Op>
void check_once(const Program& program, const PassContext& context, const char* what) {
  int of_queries = 0, of_keys = 0;
  for (const Node& node : program.nodes) {
    if (!std::holds_alternative<Op>(node.op)) continue;
    const std::vector<Dim>& shape =
        program.values[static_cast<std::size_t>(node.results[0])].type.shape;
    const bool is_query = shape[1] == Dim::kHeads && std::ranges::count(shape, Dim::kNK) == 0;
    ++(is_query ? of_queries : of_keys);
  }
  if (of_queries < 2 && of_keys < 2) return;
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, "/predictor", Code::kUnsupported, Severity::kError,
               std::string("predictor: the steps have ") + what + " of two kinds, which " +
                   context.target.name + " cannot prepare"));
  d.notes.emplace_back("one kernel reads q (or k) once for all steps");
  d.helps.emplace_back("the same in both steps, or compile for the target cpu");
}

/// Tokens are prepared once, so two steps that want different forms of them are refused.
void check_steps(const Program& program, const PassContext& context) {
  if (predict_steps(program).size() < 2) return;
  check_once<Summarise>(program, context, "summaries");
  check_once<Similarity>(program, context, "similarities");
  check_once<Project>(program, context, "biases of smoothing");
  const Attend& attend = attend_of(program);
  if (attend.q_scale < 0) check_once<Quantise>(program, context, "integers");
}

constexpr int kFirstCapabilityWithE4m3 = 89;

/// Of keys and values of e4m3, attend and the kernels that read single tokens make 16-bit rows
/// themselves. Other kernels load tiles of 16 bits, which widen_codes makes before them.
void check_e4m3_rows(const Program& program, const PassContext& context) {
  if (program.kv != KvFormat::kE4M3) return;
  const auto refuse = [&](const char* pointer, const std::string& what, const char* note) {
    Diagnostic& d =
        context.diagnostics.add(at_field(context.document, pointer, Code::kUnsupported,
                                         Severity::kError, what + " on " + context.target.name));
    d.notes.emplace_back(note);
    d.helps.emplace_back("pass k and v of q's type, or compile for the target cpu");
  };
  if (context.target.compute_capability < kFirstCapabilityWithE4m3)
    refuse("", "k and v of e4m3: there is no conversion from it",
           "sm_89 is the first that has one");
  constexpr int kCodes = 32;  // of two rows that lie one behind the other, whole chunks
  for (const int width : {program.head_dim, value_dim(program)}) {
    if (width % kCodes == 0) continue;
    refuse("",
           "k and v of e4m3: expected a head_dim that is a multiple of 32, got " +
               std::to_string(width),
           "rows of codes are loaded by 16 bytes, two at a time");
    return;
  }
}

/// Does something before attend read q or k itself? An index compares vectors of its own.
bool reads_tokens(const Program& program) {
  return std::ranges::any_of(program.nodes, [](const Node& node) {
    const auto* estimate = std::get_if<Estimate>(&node.op);
    return std::holds_alternative<Summarise>(node.op) ||
           std::holds_alternative<Similarity>(node.op) ||
           (estimate && !estimate->is_given() && !estimate->is_indexed());
  });
}

/// The kernels that run before attend read 32 elements of a token at a time, and an mma of int8
/// multiplies 32 elements at a time: head_dim has to be a multiple of that.
void check_prepared_head_dim(const Program& program, const PassContext& context) {
  constexpr int kElements = 32;
  const auto refuse = [&](const char* pointer, const char* what, const char* name, int width) {
    if (width % kElements == 0) return;
    Diagnostic& d = context.diagnostics.add(
        at_field(context.document, pointer, Code::kUnsupported, Severity::kError,
                 std::string(what) + ": expected a " + name + " that is a multiple of " +
                     std::to_string(kElements) + " on " + context.target.name + ", got " +
                     std::to_string(width)));
    d.notes.push_back("tokens are read " + std::to_string(kElements) + " elements at a time");
    const int below = width / kElements * kElements;
    d.helps.push_back("nearest legal values: " + std::to_string(below) + ", " +
                      std::to_string(below + kElements) + "; or compile for the target cpu");
  };
  const int rows = program.head_dim, values = value_dim(program);
  const bool permutes = find_op<Permute>(program) != nullptr;
  if (permutes) refuse("/permute", "permute", "head_dim", rows);
  if (permutes && values != rows) refuse("/permute", "permute", "head_dim_v", values);
  const Attend& attend = attend_of(program);
  if (attend.q_scale >= 0 || attend.v_scale >= 0) refuse("/quantise", "quantise", "head_dim", rows);
  if (reads_tokens(program)) refuse("/predictor", "predictor", "head_dim", rows);
}

/// Rows that attend itself shares among warps: no other kernel is laid out for them.
void check_wide_rows(const Program& program, const PassContext& context) {
  if (widest_row(program) <= kWarpColumns) return;
  const auto refuse = [&](const char* pointer, const std::string& what) {
    Diagnostic& d = context.diagnostics.add(at_field(
        context.document, pointer, Code::kUnsupported, Severity::kError,
        what + ": expected a head_dim of " + std::to_string(kWarpColumns) + " or less on " +
            context.target.name + ", got " + std::to_string(widest_row(program))));
    d.notes.emplace_back("of wider rows only attend itself is laid out");
    d.helps.emplace_back(
        "patterns of places, estimate.from and estimate.index need no such kernel; or compile for "
        "the target cpu");
  };
  if (find_op<Permute>(program) != nullptr) refuse("/permute", "permute");
  if (key_means(program) != nullptr) refuse("/means", "means");
  if (query_means(program) != nullptr) refuse("/query_means", "query_means");
  if (reads_tokens(program)) refuse("/predictor", "a predictor that compares q with k");
}

/// Rows of V and O of a width of their own: kernels that read both V and other rows have one width.
void check_head_dims(const Program& program, const PassContext& context) {
  check_head_dim(context.document, "head_dim", program.head_dim, context.target,
                 context.diagnostics);
  if (value_dim(program) == program.head_dim) return;
  check_head_dim(context.document, "head_dim_v", value_dim(program), context.target,
                 context.diagnostics);
  const auto refuse = [&](const char* pointer, const std::string& what) {
    Diagnostic& d = context.diagnostics.add(
        at_field(context.document, pointer, Code::kUnsupported, Severity::kError,
                 what + " does not go with a head_dim_v of " + std::to_string(value_dim(program)) +
                     " and a head_dim of " + std::to_string(program.head_dim) + " on " +
                     context.target.name));
    d.notes.emplace_back("only attend, means and token orders have rows of two widths");
    d.helps.emplace_back("compile for the target cpu, or take one width for q, k and v");
  };
  const Attend& attend = attend_of(program);
  if (attend.q_scale >= 0 || attend.v_scale >= 0) refuse("/quantise", "quantise");
}

/// Scales, biases and the statistics of a gate take the registers that a wide output leaves.
void check_8_bit_head_dim(const Program& program, const PassContext& context) {
  const Attend& attend = attend_of(program);
  const bool has_8_bits = attend.q_scale >= 0 || attend.v_scale >= 0;
  if (!has_8_bits || program.head_dim <= kLargestHeadDimOf8Bits) return;
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, "/quantise", Code::kUnsupported, Severity::kError,
               "quantise: expected a head_dim of 128 or less with 8 bits on " +
                   context.target.name + ", got " + std::to_string(program.head_dim)));
  d.notes.emplace_back("with wider heads the registers of 8-bit kernels spill");
  d.helps.emplace_back("write 16 bits for this head_dim, or compile for the target cpu");
}

/// One side of the predictor's tiles: a block of `prepare` makes whole tiles from whole tokens.
void check_prepared_tile(const PassContext& context, const char* pointer, const char* field,
                         int tile) {
  if (kPreparedTokens % tile == 0) return;
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, pointer, Code::kTileShape, Severity::kError,
               std::string(field) + ": expected a divisor of " + std::to_string(kPreparedTokens) +
                   " on " + context.target.name + ", got " + std::to_string(tile)));
  d.notes.emplace_back(
      "summaries, similarities and integers of a tile are made by one block, which takes up to 256 "
      "tokens");
  int below = 1;
  while (2 * below < tile) below *= 2;
  d.helps.push_back("nearest legal values: " + std::to_string(below) +
                    (2 * below <= kPreparedTokens ? ", " + std::to_string(2 * below) : ""));
}

void check_prepared_tiles(const Program& program, const PassContext& context) {
  const Select* select = last_step(program).select;
  if (select == nullptr) return;
  bool of_queries = false, of_keys = false;
  for (const Node& node : program.nodes) {
    if (!std::holds_alternative<Summarise>(node.op) &&
        !std::holds_alternative<Similarity>(node.op)) {
      continue;
    }
    const std::vector<Dim>& shape =
        program.values[static_cast<std::size_t>(node.results[0])].type.shape;
    const bool is_query = std::ranges::count(shape, Dim::kKeepQTiles) > 0;
    (is_query ? of_queries : of_keys) = true;
  }
  bool has_integers = false;
  for (const PredictStep& step : predict_steps(program)) {
    if (step.estimate == nullptr) continue;
    has_integers = has_integers || step.estimate->bits < 16;
    // The pooled kernel shares the keys of a tile among lanes, a power of two.
    const bool is_pooled = step.estimate->rows.kind == SummaryKind::kMean;
    of_keys = of_keys || (is_pooled && !step.estimate->is_given());
  }
  const bool is_compared = select->tile_q <= kPreparedTokens;  // else check_estimate_tile says so
  if ((of_queries || has_integers) && is_compared)
    check_prepared_tile(context, "/predictor/tile/q", "predictor.tile.q", select->tile_q);
  if (of_keys || has_integers)
    check_prepared_tile(context, "/predictor/tile/k", "predictor.tile.k", select->tile_k);
}

}  // namespace

Program legalize_for_target(Program program, const PassContext& context) {
  note_estimate(program, context);
  if (context.target.kind == TargetKind::kCpu) return program;
  check_dtype(program, context);
  check_head_dims(program, context);
  check_wide_rows(program, context);
  check_e4m3_rows(program, context);
  check_8_bit_head_dim(program, context);
  check_prepared_head_dim(program, context);
  check_prepared_tiles(program, context);
  check_estimates(program, context);
  check_steps(program, context);
  program = legalize_values(std::move(program), context);
  return needs_wide_rows(program) ? widen_codes(program) : program;
}

}  // namespace lacuna

// LaunchProgram: what a launch has to compute, as data. The runtime interprets it, which takes
// about 50 ns.
//
// A launch evaluates `values` over the problem's shape (Site::kLaunch), checks the caller's
// tensors, fills the argument block from `fields` and `maps`, and launches the kernels, which all
// take this one block; but for a second attend, some fields of which differ (`packed`).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "compiler/expr/expr.hpp"
#include "compiler/lower/arguments.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

struct LaunchValue {
  std::string name;  ///< "q_tiles"
  Expr expr;         ///< Site::kLaunch, i32; empty: the sum of two earlier values
  int first = -1, second = -1;
};

/// One field of the argument block.
struct ArgField {
  std::string name;
  std::uint32_t offset = 0;
  FieldKind kind = FieldKind::kI32;
  FieldSource source = FieldSource::kValue;
  int index = 0;
  double constant = 0;
};

/// How an operand lies in memory: rows of 16-bit elements or of codes of e4m3, as the caller has
/// them; prepared rows of int8; or prepared columns of e4m3, a row for each channel.
enum class MapFormat : std::uint8_t { kRows, kCodeRows, kByteRows, kByteColumns };

/// A tensor map of the argument block (lacuna::TensorMap of templates/args/attend_maps.cuh): how
/// TMA moves boxes of an operand. Five dimensions, innermost first: the elements of a panel, rows,
/// panels, heads, batch entries; a box has `box_rows` rows of one panel. Rows are tokens and panels
/// parts of a row; of columns, rows are channels and panels parts of the tokens.
inline constexpr int kTensorMapRank = 5;
inline constexpr std::uint32_t kTensorMapBytes = 128;
struct TensorMapFields {
  std::string name;          ///< "q": for messages
  std::uint32_t offset = 0;  ///< in the argument block
  TensorRole role{};         ///< whose extents these are
  DType dtype{};             ///< of 16-bit elements: bf16 or f16
  MapFormat format = MapFormat::kRows;
  int panel_elements = 0;  ///< 64 or 128 bytes, which are swizzled
  int panels = 0;          ///< of a row of tokens: head_dim / panel_elements; 0: of columns
  int row_elements = 0;    ///< of rows that are no whole panels, `panels` being 1; else 0
  int box_rows = 0;
  int box_rows_field = -1;   ///< index into LaunchProgram::fields, in its place; -1: none
  int box_heads_field = -1;  ///< the same: heads of a box; -1: one
  bool has_pages = false;    ///< batch entries are pages: a box has the rows of one at most
  int data = -1;             ///< index into LaunchProgram::fields: where the operand lies
  int stride_b = -1, stride_h = -1, stride_n = -1;  ///< the same: in elements; -1: contiguous
  int tokens = -1;  ///< the same: padded tokens of a head; -1: as many as the tensor has
  /// Of operands in the workspace, where a batch entry is a sequence: how many there are, and the
  /// bytes from one's piece to the next; -1: entries lie one behind the other.
  int entries = -1, entry_bytes = -1;
};

/// A piece of the workspace, which one kernel uses or several share. Sizes and offsets
/// count units of kWorkspaceUnitBytes, so that 32 bits hold them.
struct WorkspaceSlot {
  std::string name;      ///< "k_summary": a member of PredictArgs or AttendArgs
  int offset = 0;        ///< index into values
  int size = 0;          ///< index into values
  bool cleared = false;  ///< filled with zeros by each launch, before its kernels
  SlotRegion region = SlotRegion::kOwn;
};

struct KernelLaunch {
  std::string entry;  ///< extern "C" name
  std::string name;   ///< "prepare_q", "estimate", "attend", ... for people
  /// Makes nothing but the kept bits: left out while the caller's selection is still good.
  bool decides = false;
  bool overlaps = false;       ///< waits by itself for the launch before it, and may start earlier
  bool is_packed = false;      ///< takes the block with LaunchProgram::packed in place of others
  int grid_x = 0;              ///< index into values
  int kept_grid_x = 0;         ///< the same, of a launch whose summaries stay
  bool each_sequence = false;  ///< the grid has a row of blocks for each
  int threads = 0;
  int smem_bytes = 0;
};

/// What one kernel finds in the argument block in place of what the others do, at the same offsets.
struct BlockChange {
  std::vector<ArgField> fields;
  std::vector<TensorMapFields> maps;
};

struct LaunchProgram {
  std::vector<LaunchValue> values;
  /// Index into values: units of a piece of the workspace; -1: it has no slots.
  int workspace_value = -1;
  int batch_value = -1;   ///< the same of the slots of the whole batch, which lie before
  int shared_value = -1;  ///< the same of the shared slots, which lie before these
  std::vector<WorkspaceSlot> slots;
  /// The slot of the kept bits; the data of a selection of the caller takes its place. -1: none.
  int kept_slot = -1;
  int reuse = 1;  ///< launches that one decision serves
  /// Of a batch of sequences: n_b counts as 1 in the values, which are those of one sequence at the
  /// most that it may have, and the workspace has a piece for each, one behind the other.
  bool each_sequence = false;
  std::uint32_t args_bytes = 0;
  std::vector<ArgField> fields;       ///< of the argument block; bytes without a field are 0
  std::vector<TensorMapFields> maps;  ///< of the argument block, too
  BlockChange packed;                 ///< of the second attend (Plan::packed); empty: there is none
  /// Reports of the caller's, contiguous, that each launch fills with zeros before its kernels.
  std::vector<TensorRole> cleared;
  std::vector<KernelLaunch> launches;  ///< in their order
};

/// Text form, for `emit --form launch` and golden tests.
std::string print_launch_program(const LaunchProgram& program);

/// All values for a shape; `shape` holds n_b, n_h, n_h_kv, n_q, n_k in this order. n_b counts as 1
/// where the values are those of each sequence.
struct LaunchShape {
  std::int32_t n_b = 0, n_h = 0, n_h_kv = 0, n_q = 0, n_k = 0;

  bool operator==(const LaunchShape&) const = default;
};
/// Where no device is at hand: one that has a multiprocessor for each block.
inline constexpr std::int32_t kUnlimitedSmCount = std::numeric_limits<std::int32_t>::max();
/// Pieces of the workspace.
inline std::int32_t workspace_pieces(const LaunchProgram& program, const LaunchShape& shape) {
  return program.each_sequence ? shape.n_b : 1;
}
/// What n_b counts as in the values.
inline std::int32_t launch_entries(const LaunchProgram& program, const LaunchShape& shape) {
  return program.each_sequence ? 1 : shape.n_b;
}
/// False if one of them, or a step on the way, does not fit 31 bits; `values` mean nothing then.
bool evaluate_launch_values(const LaunchProgram& program, const LaunchShape& shape,
                            std::int32_t* values, std::int32_t sm_count = kUnlimitedSmCount);

}  // namespace lacuna

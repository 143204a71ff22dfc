// The CPU side of a launch: two executors of attend, which take the same HostArgs and follow the
// same semantics (compiler/ir/program.hpp).
//
// * runtime/cpu/interpreter: plain C++ that walks the Program. Always there, slow.
// * runtime/cpu/llvm: the plugin liblacuna_host.so, which compiles the Program by LLVM ORC. Loaded
// on
//   demand, through the C table below.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/expr/evaluate.hpp"
#include "runtime/base/threads/parallel_for.hpp"

namespace lacuna {

/// A strided tensor on the host; strides in elements; the last dimension of q, k, v, o is
/// contiguous.
struct HostTensor {
  void* data = nullptr;  ///< null: not passed
  std::int64_t stride[4] = {0, 0, 0, 0};
};

/// What the ops before attend made (runtime/cpu/ops/) reaches an executor as more tensors of
/// these arguments; the executors themselves run the attend op alone.
///
/// Shapes: q, o [n_b, n_h, n_q, d] and k, v [n_b, n_h_kv, n_k, d] of the Program's dtype;
/// lse [n_b, n_h, n_q] f32; counts [n_b, n_h, q_tiles, 3] i32 (visible, visited, gated);
/// tile_mask [n_b, n_h, q_tiles, k_tiles] u8 (0 not visited, 1 visited, 2 gated);
/// list_indices [n_b, n_h, q_tiles, capacity] i32 ascending tile indices, bit 31 set where the tile
/// needs the mask; list_counts [n_b, n_h, q_tiles] i32.
/// Attend::columns: bits u32 [n_b, n_h, q_tiles, ceil(columns / 32)], contiguous; k_tiles of the
/// reports are columns of Attend::keep_k keys.
/// Attend::q_scale: q and k hold the quantised integers in the Program's dtype (exact in all of
/// them); q_scale [n_b, n_h, n_q] and k_scale [n_b, n_h_kv, n_k] f32 are spread to one for each
/// token; row_bias [n_b, n_h, n_q], column_bias [n_b, n_h, n_k] f32 or null. Attend::v_scale: v
/// holds the values of the e4m3 codes; v_scale [n_b, n_h_kv, d] f32.
struct HostArgs {
  std::int32_t n_b = 0, n_h = 0, n_h_kv = 0, n_q = 0, n_k = 0;
  std::int32_t first_b = 0;  ///< what formulas see as b of entry 0: a sequence is run by itself
  HostTensor q, k, v, o, lse, counts, tile_mask, list_indices, list_counts;
  HostTensor previous_lse{}, order{};  ///< the caller's; for runtime/cpu/ops/
  HostTensor columns{}, q_scale{}, k_scale{}, v_scale{}, row_bias{}, column_bias{};
  const ParamView* params = nullptr;  ///< in the order of Program::params
  Threads threads;                    ///< of the engine
  float softmax_scale = 0;            ///< 0: the Program's
};

/// `planned`: the Program's.
inline float softmax_scale(const HostArgs& args, float planned) {
  return args.softmax_scale > 0 ? args.softmax_scale : planned;
}

inline constexpr std::uint32_t kHostBackendAbi = 7;

/// The plugin's only exported symbol returns this table:
///   extern "C" const lacuna::HostBackend* lacuna_host_backend(std::uint32_t abi);   // null: other
///   ABI
/// Functions throw nothing. They return kHostDone, or kHostFailed with `error` filled
/// (NUL-terminated, truncated to `error_bytes`), or kHostOutOfMemory.
inline constexpr int kHostDone = 0, kHostFailed = 1, kHostOutOfMemory = 2;

struct HostBackend {
  /// Compiles a Program given as text (print_program). `*kernel` is immutable and thread-safe.
  int (*compile)(const char* program, std::size_t bytes, void** kernel, char* error,
                 std::size_t error_bytes);
  int (*run)(void* kernel, const HostArgs* args, char* error, std::size_t error_bytes);
  void (*release)(void* kernel);
  /// LLVM IR after optimisation, for `emit --form llvm`; valid until release().
  const char* (*llvm_ir)(void* kernel);
  const char* (*version)();  ///< "LLVM 19.1.7, znver4"
};

}  // namespace lacuna

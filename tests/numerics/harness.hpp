// Runs a variant through the public C ABI and compares it with the oracle in two stages:
// the reported tile mask against the oracle's, then the output against fp64 attention under the
// reported mask.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/lacuna.h"
#include "tests/numerics/tensors.hpp"
#include "tests/numerics/variants.hpp"

namespace lacuna::numerics {

/// The device under test: LACUNA_TEST_DEVICE ("cuda:0"), else "cpu".
std::string device_under_test();

/// An engine for the device under test and whether it runs on a GPU. Aborts the test if there is
/// none.
struct TestEngine {
  lacuna_engine* engine = nullptr;
  bool is_cuda = false;
  TestEngine();
  ~TestEngine();
  TestEngine(const TestEngine&) = delete;
  TestEngine& operator=(const TestEngine&) = delete;
};

struct Reported {
  std::vector<double> o, lse;
  std::vector<std::int32_t> counts;     ///< [b, h, q_tiles, 3]
  std::vector<std::uint8_t> tile_mask;  ///< [b, h, q_tiles, k_tiles]
  bool padding_touched = false;         ///< something was written between the rows of a strided o
  std::string error;                    ///< lacuna_last_error(), if a call failed
};

/// A prepared kernel for a case.
struct TestKernel {
  lacuna_kernel* kernel = nullptr;
  std::int32_t tile_q = 0, tile_k = 0;
  std::string error;
  TestKernel(TestEngine& engine, const Case& c);
  ~TestKernel();
  TestKernel(const TestKernel&) = delete;
  TestKernel& operator=(const TestKernel&) = delete;
};

/// A variant's tensors in device or host memory, and the launch arguments that point at them.
struct Binding {
  TensorSet tensors;
  Tensor q, k, v, o, lse, counts, tile_mask, list_indices, list_counts;
  std::vector<Tensor> param_tensors;
  std::vector<lacuna_param> params;
  lacuna_launch_args args{};

  Binding(bool is_cuda, const Case& c, const Variant& variant);
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

  /// Fills all outputs with 0xff bytes again.
  void poison();
  /// Waits for the stream and reads the outputs.
  Reported collect();
};

/// One launch with poisoned outputs, on a stream of its own where there are streams.
Reported run_variant(TestEngine& engine, TestKernel& kernel, const Case& c, const Variant& variant);

/// Allowed error of the output for a dtype: sum|d| / sum|o| and max|d| / max|o| (methods.md 4.4).
struct Tolerance {
  double rel_l1, rel_max, lse;
};
Tolerance tolerance_of(DType dtype, bool is_cuda);

struct OutputError {
  double rel_l1 = 0, rel_max = 0, lse = 0;
  std::string mismatch;  ///< NaN or infinity on one side only, empty row not written, ...
};
OutputError compare_output(const Variant& variant, const oracle::Output& expected,
                           const Reported& got, double warp_band);

/// Both stages; "" if they hold, else what does not.
std::string check_variant(const Case& c, const Variant& variant, const Reported& got, bool is_cuda);

}  // namespace lacuna::numerics

// Runs a variant through the public C ABI and compares it with the oracle in two parts:
// the reported tile mask against the oracle's (tiles whose decision is within rounding of a
// threshold may differ), then the output against fp64 attention under the reported mask.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lacuna/lacuna.h"
#include "runtime/base/threads/parallel_for.hpp"
#include "tests/numerics/harness/tensors.hpp"
#include "tests/numerics/variants/variants.hpp"

namespace lacuna::numerics {

/// The device under test: LACUNA_TEST_DEVICE ("cuda:0"), else "cpu".
std::string device_under_test();
/// Which GPU "cuda:N" is; 0 of "cuda" and of the CPU. Tensors and graphs of tests are made there.
int device_index(const std::string& device);

/// A kernel that was compiled; the cases of one spec, head dim and dtype share it.
struct CompiledKernel {
  lacuna_kernel* kernel = nullptr;
  KernelTile tile;
  std::string error;  ///< lacuna_last_error(), if it could not be compiled
};

/// An engine for the device under test and whether it runs on a GPU. Aborts the test if there is
/// none.
struct TestEngine {
  lacuna_engine* engine = nullptr;
  bool is_cuda = false;
  std::map<std::tuple<std::string, int, int, DType>, CompiledKernel>
      kernels;  ///< by spec, d, d_v and dtype
  /// `is_interpreter`: without the compiler of the CPU.
  explicit TestEngine(bool is_interpreter = false);
  ~TestEngine();
  TestEngine(const TestEngine&) = delete;
  TestEngine& operator=(const TestEngine&) = delete;
};

/// For these head dims and this dtype, of a batch of one length.
lacuna_compile_options options_of(DType dtype, int d, int d_v);
/// A kernel that is ready to be launched; one with an error in it, if there is none.
CompiledKernel compile_spec(TestEngine& engine, const std::string& spec,
                            const lacuna_compile_options& options);

/// The one that tests share.
TestEngine& engine();
/// The other executor of the CPU, if the device under test is the CPU with its compiler.
TestEngine* interpreter();

struct Reported {
  std::vector<double> o, lse;
  std::vector<std::int32_t> counts;     ///< [b, h, q_tiles, 3]
  std::vector<std::uint8_t> tile_mask;  ///< [b, h, q_tiles, k_tiles]
  bool padding_touched = false;         ///< something was written between the rows of a strided o
  std::string error;                    ///< lacuna_last_error(), if a call failed
};

/// A prepared kernel for a case; the engine's.
struct TestKernel : CompiledKernel {
  TestKernel(TestEngine& engine, const Case& c);
};

/// Adds the kernels of cases that `kernels`, a map by key_of(case), lacks: on all cores at once,
/// because a test of all variants on a GPU would wait for one after the other.
template <class Kernels, class AnyCase, class KeyOf, class Compile>
void compile_missing(Kernels& kernels, const std::vector<AnyCase>& cases, KeyOf key_of,
                     Compile compile) {
  std::vector<std::pair<const AnyCase*, CompiledKernel*>> missing;
  for (const AnyCase& c : cases) {
    const auto [found, is_new] = kernels.try_emplace(key_of(c), CompiledKernel{});
    if (is_new) missing.emplace_back(&c, &found->second);
  }
  const auto count = static_cast<std::int64_t>(missing.size());
  parallel_for(worker_count({}, count), count, [&](std::int64_t n, std::size_t) {
    const auto& [c, made] = missing[static_cast<std::size_t>(n)];
    *made = compile(*c);
  });
}

/// Compiles the kernels of these cases, which TestKernel then finds.
void compile_ahead(TestEngine& engine, const std::vector<Case>& cases);

/// A variant's tensors in device or host memory, and the launch arguments that point at them.
struct Binding {
  TensorSet tensors;
  Tensor q, k, v, o, lse, counts, tile_mask, list_indices, list_counts, previous_lse, order;
  Tensor workspace, kept;
  Tensor k_scale, v_scale;  ///< of keys and values of e4m3 (harness/codes/uniform_codes.hpp)
  lacuna_selection selection{};
  int reuse = 1;
  bool has_lse = true;  ///< of weights without a denominator there is none: reported as zeros
  std::vector<Tensor> param_tensors;
  std::vector<lacuna_param> params;
  lacuna_launch_args args{};

  Binding(bool is_cuda, const Case& c, const Variant& variant);
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

  /// Adds what a kernel asks of its caller: a workspace full of 0xff bytes and, for specs that
  /// reuse decisions, a selection. "" or an error.
  std::string provide(const TestKernel& kernel, const Case& c);

  /// New values of q, k and v in the same memory.
  void rewrite(const Case& c, const oracle::Problem& problem);

  /// Fills all outputs with 0xff bytes again.
  void poison();
  /// Waits for the stream and reads the outputs.
  Reported collect();
};

/// All cases, or in the short tier those in which each variant meets each dtype and each head dim:
/// kernels take longer to compile than to run.
std::vector<Case> in_tier_of_kernels(const std::vector<Case>& cases);

/// One launch with poisoned outputs, on a stream of its own where there are streams.
Reported run_variant(TestEngine& engine, TestKernel& kernel, const Case& c, const Variant& variant);

/// Allowed error of the output: sum|d| / sum|o| and max|d| / max|o|. Against the
/// emulation of the same quantisation, and, looser, against the exact arithmetic it stands for.
struct Tolerance {
  double rel_l1, rel_max, lse;
};
Tolerance tolerance_of(DType dtype, const oracle::Problem& computed, bool is_cuda);
Tolerance exact_tolerance_of(const oracle::Quantisation& quantisation);

struct OutputError {
  double rel_l1 = 0, rel_max = 0, lse = 0;
  std::string mismatch;  ///< NaN or infinity on one side only, empty row not written, ...
};
OutputError compare_output(const Variant& variant, const oracle::Output& expected,
                           const Reported& got, double warp_band);

/// Tiles of the reports that `kept` leaves to visit, and which of them any implementation must
/// agree on; [n_b, n_h, q_tiles, k_tiles].
struct ExpectedTiles {
  std::vector<std::uint8_t> visited, stable;
};
ExpectedTiles expected_tiles(const Variant& variant, const oracle::KeptTiles& kept);

/// What the oracle says of a variant if the tiles are those of a report.
struct Expectation {
  std::vector<std::uint8_t> tile_mask;  ///< of the report
  std::optional<ExpectedTiles> kept;    ///< of a predictor
  oracle::Problem problem;
  oracle::TileDecisions tiles;
  oracle::Output output;
  std::optional<oracle::Output> exact;  ///< without quantisation, of inputs on which it is good
};

/// `decided_by`: the variant whose tensors made the decision, where that is not this one (reuse).
Expectation expectation_of(const Case& c, const Variant& variant,
                           const std::vector<std::uint8_t>& tile_mask,
                           const Variant* decided_by = nullptr);

/// Both parts; "" if they hold, else what does not.
std::string check_against(const Expectation& expected, const Case& c, const Variant& variant,
                          const Reported& got, bool is_cuda);

/// The same with an expectation of its own.
std::string check_variant(const Case& c, const Variant& variant, const Reported& got, bool is_cuda,
                          const Variant* decided_by = nullptr);

/// Compiles and runs a case, and checks it: on the CPU by both executors, which share the inputs
/// and, where they report the same tiles, what the oracle says.
std::string check_case(const Case& c, std::uint32_t seed);

}  // namespace lacuna::numerics

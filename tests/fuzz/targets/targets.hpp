// What is fuzzed: functions that take any bytes and check what has to hold for all of them. The
// fuzzers (fuzzer/fuzzer.cpp) and the replay of the corpora (corpus_test.cpp) run the same ones.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/expr/random_expr.hpp"

namespace lacuna::fuzz {

/// Something that has to hold did not.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const std::string& what) {
  if (!holds) throw Broken(what);
}

struct FuzzTarget {
  std::string_view name;  ///< of its corpus, its dictionary and its program: fuzz_<name>
  /// Returns whether the bytes were accepted as what they should be; throws if anything is broken.
  bool (*run)(std::string_view bytes);
};

std::span<const FuzzTarget> targets();

/// Spec text to CUDA source and launch program, for several targets.
bool run_spec(std::string_view text);
/// Formulas: as text, and as a list of operators that is folded.
bool run_formula(std::string_view bytes);
/// The text of a Program, as the CPU plugin takes it.
bool run_program(std::string_view text);
/// .npy and safetensors.
bool run_tensors(std::string_view bytes);
/// What `calibrate` writes.
bool run_calibration(std::string_view bytes);
/// Lines of the tuning database.
bool run_tuning(std::string_view text);
/// Entries of the kernel cache.
bool run_entry(std::string_view bytes);

/// Bundles of kernels, as a host adds them.
bool run_bundle(std::string_view bytes);

/// The part of run_spec that reads.
bool read_and_print_spec(std::string_view text);
/// The part of run_formula that is about text at one site, and the parameters that it may read.
bool check_formula(std::string_view text, Site site);
const test::ParameterSet& formula_parameters();

}  // namespace lacuna::fuzz

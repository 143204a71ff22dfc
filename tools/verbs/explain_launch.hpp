// The kernels of a launch and the memory between them, at one shape.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/emit/launch_program.hpp"
#include "compiler/ir/over_means.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna::tools {

/// The caller's problem, and what an attend of it works on: a branch may have means of so many
/// tokens in the place of keys, or of queries.
struct ProblemShape {
  LaunchShape caller;
  MeansOf means;

  ProblemShape(const LaunchShape& shape, MeansOf of = {})  // NOLINT(google-explicit-constructor)
      : caller(shape), means(of) {}
  LaunchShape attended() const;
  /// "b=1, h=32, h_kv=8, n_q=4096, n_k=4096 (64 means of 64 queries, 128 means of 32 keys)"
  std::string text() const;
};

/// Three tables: the kernels in their order (grid, threads, shared memory), why each value of them
/// is what it is, and the slots of the workspace. One sentence if the workspace of this shape
/// cannot be counted.
std::string print_launch(const LoweredPlan& lowered, const LaunchProgram& program,
                         const ProblemShape& shape, bool color);

/// The same, and the fields of each kernel's Config: their origin is the spec where the document
/// has the field that they come from.
nlohmann::ordered_json launch_json(const LoweredPlan& lowered, const LaunchProgram& program,
                                   const SpecDocument& document, const ProblemShape& shape);

}  // namespace lacuna::tools

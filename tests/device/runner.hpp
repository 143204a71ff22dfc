// Runs the generated kernels of a spec on emulated blocks, launched as the runtime would:
// LaunchProgram, checked arguments, argument block, workspace. In place of the driver stands a loop
// over the kernels and the blocks of their grids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "runtime/launch/bind_launch.hpp"
#include "tests/device/kernels.hpp"
#include "tests/numerics/harness/harness.hpp"

namespace lacuna::device {

/// The kernels of a spec and what the compiler says about launching it.
struct Subject {
  std::string name;  ///< "skip_softmax_d128_bf16"
  std::string spec;  ///< "skip-softmax"
  numerics::DType dtype;
  int head_dim = 0;
  numerics::KernelTile tile;  ///< what the oracle has to know of them
  LaunchContract contract;
  Program program;
  LaunchProgram launch;
  std::vector<emulation::Kernel> kernels;  ///< in the order of launch.launches
};

/// Of batches of one length, with keys and values of the queries' type, or of e4m3.
const std::vector<Subject>& subjects();
const std::vector<Subject>& coded_subjects();
/// Of batches of sequences.
const std::vector<Subject>& sequence_subjects();

/// The branches of a spec, in their order; each a subject, which no other list has.
struct BranchesSubject {
  std::string name;  ///< "merged_branches_d64_bf16_sm_90a"
  VariantSpec spec;
  std::vector<Subject> branches;
};
const std::vector<BranchesSubject>& branches_subjects();
const std::vector<BranchesSubject>& branches_of_sequences_subjects();

/// One launch of all branches in one workspace; "" or what went wrong.
std::string launch(const BranchesSubject& subject, const lacuna_launch_args& args,
                   const emulation::Schedule& schedule);

/// A problem for a subject, with the oracle twin of its spec.
struct Problem {
  numerics::Case shape;
  numerics::Variant variant;
};
/// The oracle's variant for a spec: of one that is only tested here that of another name.
std::string twin_of(const Subject& subject);
/// What such a spec does in another way than its twin: the order of tiles, what its gate skips.
void follow_spec(const Subject& subject, numerics::Variant& variant);
Problem make_problem(const Subject& subject, numerics::Case shape, std::uint32_t seed);

/// One launch with poisoned outputs and workspace; `error` also says what the emulation found.
numerics::Reported run(const Subject& subject, const Problem& problem,
                       const emulation::Schedule& schedule);

/// The same with changed launch arguments.
numerics::Reported run(const Subject& subject, numerics::Binding& binding,
                       const emulation::Schedule& schedule);

/// Where the blocks of a kernel run: persistent ones are as many as there are multiprocessors, and
/// take the work tiles in turns. One block after the other, or all at the same time.
struct Residency {
  std::int32_t multiprocessors = 2;
  bool together = false;
};

/// One launch of any arguments, with a poisoned workspace; "" or what went wrong.
std::string launch(const Subject& subject, const lacuna_launch_args& args,
                   const emulation::Schedule& schedule, const Residency& residency = {});

}  // namespace lacuna::device

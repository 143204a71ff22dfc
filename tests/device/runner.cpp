#include "tests/device/runner.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>

#include "compiler/emit/emit.hpp"
#include "compiler/ir/names.hpp"
#include "runtime/cuda/tensor_maps.hpp"
#include "runtime/launch/argument_block.hpp"
#include "runtime/launch/branches.hpp"
#include "tests/device/emulation/box_map.hpp"

namespace lacuna::device {
namespace {

/// How a spec of this folder differs from a variant that the oracle knows.
struct Twin {
  const char* variant;
  bool descending;
  bool skips_exp;
};
const std::map<std::string, Twin> kTwins = {
    {"warp-gate", {"warp-gate", true, false}},
    {"tile-gate-pv", {"bsfa", false, false}},
    {"late-tile-gate", {"bsfa", false, false}},
    {"tile-gate-exp", {"bsfa", true, true}},
    {"lists", {"lists", false, false}},
    {"lists-descending", {"lists", true, false}},
    {"int8-lists", {"int8-lists-64x64-e4m3-unmasked", false, false}},
    {"int8-lists-narrow", {"int8-lists-64x64-e4m3-unmasked", false, false}},
    {"int8-lists-causal", {"int8-lists-64x64-e4m3", true, false}},
    {"int8-tile-gate", {"int8-tile-gate", true, false}},
    {"int8-gap-or-max", {"int8-gap-or-max", true, false}},
    {"int8-closing-gate", {"int8-closing-gate", true, false}},
    {"mla", {"dense", false, false}},
    {"mla-tile-gate", {"bsfa", false, false}},
    {"split-mla", {"dense", false, false}},
    {"one-warp", {"flash-decoding", false, false}},
    {"wide-heads", {"flash-decoding", false, false}},
    {"split-wide-heads", {"dense", false, false}},
    {"wide-v-of-k", {"v-of-k", false, false}},
    {"wide-tile-gate", {"bsfa", true, true}},
    {"split-dense", {"dense", false, false}},
    {"split-window", {"window", true, false}},
    {"split-row-sink", {"row-sink", false, false}},
    {"divided-window", {"window", true, false}},
    {"split-lists", {"lists", true, false}},
    {"split-lists-narrow", {"lists", false, false}},
    {"split-streaming", {"streaming", false, false}},
    {"split-topk-blocks", {"topk-blocks", false, false}},
    {"split-int8-lists", {"int8-lists-64x64", false, false}},
};

/// Test plumbing: a failure here is no result, so it ends the run.
void require(const Diagnostics& diagnostics, const std::string& path) {
  if (!diagnostics.has_errors()) return;
  std::fprintf(stderr, "%s\n", render(diagnostics, {path, ""}).c_str());
  std::abort();
}

/// The launched kernels; ends the run if one is missing.
std::vector<emulation::Kernel> find_kernels(const GeneratedSpec& spec,
                                            const LaunchProgram& program) {
  std::vector<emulation::Kernel> kernels;
  for (const KernelLaunch& launch : program.launches) {
    const auto found =
        std::ranges::find(*spec.kernels, launch.entry, &emulation::NamedKernel::entry);
    if (found == spec.kernels->end()) {
      std::fprintf(stderr, "%s has no kernel %s\n", spec.spec.c_str(), launch.entry.c_str());
      std::abort();
    }
    kernels.push_back(found->kernel);
  }
  return kernels;
}

numerics::KernelTile tile_of(const AttendPlan& attend) {
  numerics::KernelTile tile;
  tile.q = attend.tile_q.value;
  tile.k = attend.tile_k.value;
  if (attend.gate_scope.value == GateScope::kWarpgroup) tile.gate_rows = 64;
  if (attend.family.value == AttendFamily::kWgmma)
    tile.step_tiles = attend.step_keys.value / tile.k;
  return tile;
}

SpecDocument read_generated(const GeneratedSpec& kernel) {
  std::ifstream file(LACUNA_SOURCE_DIR / std::filesystem::path(kernel.spec));
  Diagnostics diagnostics;
  SpecDocument document =
      read_spec({kernel.spec, {std::istreambuf_iterator<char>(file), {}}}, diagnostics);
  require(diagnostics, kernel.spec);
  return document;
}

/// The branch that the kernels are of, or all there is.
SpecDocument attend_document(const GeneratedSpec& kernel) {
  for (SpecDocument& branch : branch_documents(read_generated(kernel)))
    if (branch.spec.branch.name == kernel.branch) return std::move(branch);
  std::fprintf(stderr, "%s has no branch %s\n", kernel.spec.c_str(), kernel.branch.c_str());
  std::abort();
}

Subject make_subject(const GeneratedSpec& kernel) {
  const std::filesystem::path path = kernel.spec;
  Diagnostics diagnostics;
  const SpecDocument document = attend_document(kernel);
  const bool is_f16 = kernel.dtype == "f16";
  BuildOptions options;
  options.head_dim = kernel.head_dim;
  options.dtype = is_f16 ? DType::kF16 : DType::kBF16;
  options.batch = find_by_name<BatchLayout>(kernel.batch).value();
  options.kv = find_by_name<KvFormat>(kernel.kv).value();
  const Plan plan = make_plan(document, options, find_target(kernel.arch).value(), diagnostics);
  require(diagnostics, kernel.spec);

  Subject subject;
  subject.spec = path.stem();
  subject.name = subject.spec + "_d" + std::to_string(kernel.head_dim) + "_" + kernel.dtype + "_" +
                 kernel.arch + (kernel.batch == "uniform" ? "" : "_" + kernel.batch) +
                 (kernel.kv == "same" ? "" : "_" + kernel.kv);
  std::ranges::replace(subject.name, '-', '_');
  subject.dtype = is_f16 ? numerics::DType::kF16 : numerics::DType::kBF16;
  subject.head_dim = kernel.head_dim;
  subject.tile = tile_of(plan.attend);
  subject.contract = make_contract(plan, {kDLCPU, 0});
  subject.program = plan.program;
  subject.launch = emit_launch_program(plan);
  subject.kernels = find_kernels(kernel, subject.launch);
  return subject;
}

std::vector<Subject> make_subjects(bool (*is_one)(const GeneratedSpec&)) {
  std::vector<Subject> made;
  for (const GeneratedSpec& spec : generated_specs()) {
    if (spec.branch.empty() && is_one(spec)) made.push_back(make_subject(spec));
  }
  return made;
}

/// Branches stand one behind the other in the table.
std::vector<BranchesSubject> make_branches_subjects(bool of_sequences) {
  std::vector<BranchesSubject> made;
  for (const GeneratedSpec& generated : generated_specs()) {
    if (generated.branch.empty() || (generated.batch != "uniform") != of_sequences) continue;
    Subject branch = make_subject(generated);
    if (made.empty() || made.back().name != branch.name)
      made.push_back({branch.name, read_generated(generated).spec, {}});
    made.back().branches.push_back(std::move(branch));
  }
  return made;
}

/// Poisoned: what no kernel wrote is NaN, and a count far too large.
struct alignas(kWorkspaceUnitBytes) WorkspaceUnit {
  std::array<std::uint8_t, kWorkspaceUnitBytes> bytes;
  WorkspaceUnit() { bytes.fill(0xff); }
};

/// Aligned as tensor maps want it.
struct alignas(64) BlockUnit {
  std::array<std::byte, 64> bytes;
};

/// What a launch begins with zeros in.
void clear_memory(const LaunchProgram& program, const BoundLaunch& bound,
                  const LaunchMemory& memory, const std::int32_t* values) {
  for (std::size_t n = 0; n < program.slots.size(); ++n) {
    const WorkspaceSlot& slot = program.slots[n];
    if (!slot.cleared) continue;
    const auto units = static_cast<std::size_t>(values[slot.size]);
    std::memset(slot_address(program, n, memory, values), 0, units * kWorkspaceUnitBytes);
  }
  for (const TensorRole role : program.cleared) {
    const ClearedReport report = cleared_report(bound, role);
    if (report.data != nullptr) std::memset(report.data, 0, report.bytes);
  }
}

/// As the driver would, for the copy engine of the emulation.
void encode_maps(const Subject& subject, const std::vector<TensorMapFields>& maps,
                 const BoundLaunch& bound, std::byte* block) {
  Driver driver;
  driver.cuTensorMapEncodeTiled = emulation::encode_box_map;
  Diagnostics diagnostics;
  encode_tensor_maps(driver, subject.launch, maps, subject.name, bound, nullptr, block,
                     diagnostics);
  require(diagnostics, subject.name);
}

/// All blocks of a kernel, one after the other or together.
std::string run_blocks(std::span<const emulation::BlockLaunch> blocks, bool together,
                       const emulation::Schedule& schedule) {
  if (together) return emulation::run_together(blocks, schedule);
  for (const emulation::BlockLaunch& block : blocks) {
    if (std::string error = emulation::run_block(block, schedule); !error.empty()) return error;
  }
  return "";
}

std::vector<std::int32_t> values_of(const Subject& subject, const LaunchShape& shape,
                                    const Residency& residency = {}) {
  std::vector<std::int32_t> values(subject.launch.values.size());
  evaluate_launch_values(subject.launch, shape, values.data(), residency.multiprocessors);
  return values;
}

/// `selection`: where kept bits lie; where `calls` is not 0, they are decided already.
/// `workspace`: grows to what the launch needs, and keeps what an earlier one left; behind
/// `shared_bytes` of what branches share.
std::string run_grid(const Subject& subject, const BoundLaunch& bound,
                     const emulation::Schedule& schedule, std::vector<WorkspaceUnit>& workspace,
                     const Residency& residency = {}, std::size_t shared_bytes = 0,
                     const lacuna_selection* selection = nullptr) {
  const std::vector<std::int32_t> values = values_of(subject, bound.shape, residency);
  const WorkspaceBytes bytes = workspace_parts(subject.launch, bound.shape, values.data());
  const std::size_t shared = shared_bytes / kWorkspaceUnitBytes;
  workspace.resize(std::max(workspace.size(), shared + bytes.own / kWorkspaceUnitBytes));
  const std::size_t block_units = subject.launch.args_bytes / sizeof(BlockUnit) + 1;
  std::vector<BlockUnit> units_of_block(block_units), units_of_packed(block_units);
  auto* const block = reinterpret_cast<std::byte*>(units_of_block.data());
  auto* const packed = reinterpret_cast<std::byte*>(units_of_packed.data());
  const LaunchMemory memory{
      .workspace = workspace.data() + shared,
      .kept = selection != nullptr ? selection->data : nullptr,
      .shared = workspace.data(),
      .pieces = static_cast<std::size_t>(workspace_pieces(subject.launch, bound.shape))};
  clear_memory(subject.launch, bound, memory, values.data());
  fill_argument_block(subject.launch, bound, memory, values.data(), block);
  fill_packed_block(subject.launch, bound, memory, values.data(), block, packed);
  encode_maps(subject, subject.launch.maps, bound, block);
  encode_maps(subject, subject.launch.packed.maps, bound, packed);
  for (std::size_t x = 0; x < subject.kernels.size(); ++x) {
    const KernelLaunch& launch = subject.launch.launches[x];
    if (launch.decides && selection != nullptr && selection->calls != 0) continue;
    const bool is_kept = bound[TensorRole::kKSummaries].data != nullptr;
    const std::int32_t count =
        values[static_cast<std::size_t>(is_kept ? launch.kept_grid_x : launch.grid_x)];
    const std::int32_t rows = launch.each_sequence ? bound.shape.n_b : 1;
    std::vector<emulation::BlockLaunch> blocks;
    for (std::int32_t n = 0; n < count * rows; ++n)
      blocks.push_back({subject.kernels[x], launch.is_packed ? packed : block, n % count,
                        launch.threads, launch.smem_bytes, count, n / count});
    const std::string error = run_blocks(blocks, residency.together, schedule);
    if (!error.empty()) return launch.entry + ", " + error;
  }
  return "";
}

}  // namespace

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = make_subjects(
      [](const GeneratedSpec& spec) { return spec.batch == "uniform" && spec.kv == "same"; });
  return all;
}

const std::vector<Subject>& coded_subjects() {
  static const std::vector<Subject> all = make_subjects(
      [](const GeneratedSpec& spec) { return spec.batch == "uniform" && spec.kv != "same"; });
  return all;
}

const std::vector<Subject>& sequence_subjects() {
  static const std::vector<Subject> all =
      make_subjects([](const GeneratedSpec& spec) { return spec.batch != "uniform"; });
  return all;
}

std::string twin_of(const Subject& subject) {
  const auto twin = kTwins.find(subject.spec);
  return twin == kTwins.end() ? subject.spec : twin->second.variant;
}

void follow_spec(const Subject& subject, numerics::Variant& variant) {
  const auto twin = kTwins.find(subject.spec);
  if (twin == kTwins.end()) return;
  variant.tiling.descending = twin->second.descending;
  if (variant.gate) variant.gate->skips_exp = twin->second.skips_exp;
}

Problem make_problem(const Subject& subject, numerics::Case shape, std::uint32_t seed) {
  shape.variant = twin_of(subject);
  shape.dtype = subject.dtype;
  shape.d = subject.head_dim;
  shape.d_v = subject.contract.head_dim_v;
  if (subject.contract.takes_order) shape.n_k = shape.n_q;  // they are permuted alike
  auto variant = numerics::make_variant(shape, subject.tile, seed);
  follow_spec(subject, variant);
  return {shape, variant};
}

numerics::Reported run(const Subject& subject, const Problem& problem,
                       const emulation::Schedule& schedule) {
  numerics::Binding binding(false, problem.shape, problem.variant);
  return run(subject, binding, schedule);
}

numerics::Reported run(const Subject& subject, numerics::Binding& binding,
                       const emulation::Schedule& schedule) {
  numerics::Reported failed;
  failed.error = launch(subject, binding.args, schedule);
  return failed.error.empty() ? binding.collect() : failed;
}

std::string launch(const Subject& subject, const lacuna_launch_args& args,
                   const emulation::Schedule& schedule, const Residency& residency) {
  Diagnostics diagnostics;
  BoundLaunch bound;
  if (!bind_launch(subject.contract, args, bound, diagnostics)) return render(diagnostics, {});
  std::vector<WorkspaceUnit> workspace;
  return bound.empty()
             ? ""
             : run_grid(subject, bound, schedule, workspace, residency, 0, args.selection);
}

const std::vector<BranchesSubject>& branches_subjects() {
  static const std::vector<BranchesSubject> all = make_branches_subjects(false);
  return all;
}

const std::vector<BranchesSubject>& branches_of_sequences_subjects() {
  static const std::vector<BranchesSubject> all = make_branches_subjects(true);
  return all;
}

std::string launch(const BranchesSubject& subject, const lacuna_launch_args& args,
                   const emulation::Schedule& schedule) {
  LaunchContract contract = subject.branches.front().contract;
  contract.params = subject.spec.params;
  contract.head_dim = subject.branches.front().head_dim;  // the caller's; a branch may take a band
  contract.has_lse = subject.spec.attention.lse;
  Diagnostics diagnostics;
  BoundLaunch bound;
  if (!bind_launch(contract, args, bound, diagnostics)) return render(diagnostics, {});
  std::vector<BoundLaunch> all;
  std::size_t shared = 0;
  for (std::size_t n = 0; n < subject.branches.size(); ++n) {
    const Subject& branch = subject.branches[n];
    all.push_back(bind_branch(subject.spec.branches[n], branch.contract, branch.program,
                              branch.contract.kv, bound));
    const LaunchShape& shape = all.back().shape;
    const auto values = values_of(branch, shape);
    shared = std::max(shared, workspace_parts(branch.launch, shape, values.data()).shared);
  }
  std::vector<WorkspaceUnit> workspace(shared / kWorkspaceUnitBytes);
  for (std::size_t n = 0; n < subject.branches.size(); ++n) {
    std::string error = run_grid(subject.branches[n], all[n], schedule, workspace, {}, shared);
    if (!error.empty()) return error;
  }
  return "";
}

}  // namespace lacuna::device

#include "tools/run/launch.hpp"

#include <algorithm>

#include "tools/common/progress_line.hpp"
#include "tools/run/dense_twin.hpp"
#include "tools/run/mask_classes.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/run/kernels.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

/// The output of one plain launch, and the median time of several (0 if times are not wanted).
double launch_and_time(const v1::Kernel& kernel, const v1::LaunchArgs& args, const Place& place,
                       bool times, Buffer& o, Array& output, DeviceErrors& errors) {
  double time_us = 0;
  if (times)
    time_us = median_time_us(
        place, [&] { kernel.launch(args); }, errors.diagnostics);
  else
    kernel.launch(args);
  output = fetch(o, place, errors.diagnostics);
  errors.check();
  return time_us;
}

/// One run under way.
struct Measurement {
  const SpecDocument& document;
  const Inputs& inputs;
  const LaunchOptions& options;
  const v1::Engine& engine;
  const Place& place;
  Tensors tensors;
  DeviceErrors errors;
  RunResult result;
};

/// Dense attention: the output to compare with, its time, and where the spec asks for it its LSE.
void measure_dense(Measurement& m, Buffer* lse) {
  DenseKernel dense = prepare_dense(m.engine, m.document, m.inputs, m.place, m.errors);
  const v1::LaunchArgs args = dense_arguments(dense, m.inputs, m.tensors, m.place, m.errors, lse);
  m.result.dense_us = launch_and_time(dense.kernel, args, m.place, m.options.times, m.tensors.o,
                                      m.result.dense_o, m.errors);
}

/// Outputs of several attends are compared with those of the same attends, each with all tiles that
/// its mask leaves: one softmax over all keys would be another function.
void measure_branches_twin(Measurement& m) {
  const DenseTwin text = branches_twin(m.document.spec);
  DenseKernel twin = prepare_twin(m.engine, text, m.document, m.inputs, m.place, m.errors);
  const v1::LaunchArgs args = dense_arguments(twin, m.inputs, m.tensors, m.place, m.errors);
  m.result.compared_with = "its branches with all tiles that their masks leave";
  launch_and_time(twin.kernel, args, m.place, false, m.tensors.o, m.result.dense_o, m.errors);
}

/// Does no query see a later key, in any branch?
bool is_causal(const VariantSpec& spec, const Inputs& inputs) {
  if (spec.branches.empty()) return looks_causal(spec, inputs);
  return std::ranges::all_of(
      spec.branches, [&inputs](const VariantSpec& branch) { return looks_causal(branch, inputs); });
}

bool has_mask(const VariantSpec& spec) {
  return !spec.attention.mask.empty() || std::ranges::any_of(spec.branches, has_mask);
}

/// What the mask itself gains shows against attention without it. The dense twin has it.
void measure_plain(Measurement& m) {
  if (!has_mask(m.document.spec) || !m.options.times) return;
  const bool causal = is_causal(m.document.spec, m.inputs);
  const std::string text = plain_twin(m.document.spec, causal);
  if (causal && m.document.spec.attention.mask.text == "k <= q + n_k - n_q")
    return;  // that is the dense twin
  const v1::Kernel kernel =
      prepare_spec(m.engine, text, m.document.source.path + " without its mask", m.inputs);
  AlignedBuffer workspace = place_workspace(kernel, m.inputs, m.place, m.errors);
  v1::LaunchArgs args = arguments(m.inputs, m.tensors, workspace, m.place);
  args.params.clear();
  m.result.plain = causal ? "causal" : "unmasked";
  m.result.plain_us = median_time_us(
      m.place, [&] { kernel.launch(args); }, m.errors.diagnostics);
  m.errors.check();
}

/// The time of a launch whose tiles are known already.
void measure_attend(Measurement& m, Extras& extras) {
  m.result.attend_us = m.result.sparse_us;
  // A predictor that keeps every tile was dropped, and its kernel has nothing to keep.
  if (m.result.selection_bytes == 0 || !m.options.times) return;
  const v1::Kernel kernel =
      prepare_spec(m.engine, reusing_twin(m.document.spec), m.document.source.path, m.inputs);
  AlignedBuffer workspace = place_workspace(kernel, m.inputs, m.place, m.errors);
  const std::size_t bytes = kernel.selection_bytes(shape_of(m.inputs));
  AlignedBuffer memory = place_bytes(bytes, m.place, m.errors);
  lacuna_selection selection{sizeof(lacuna_selection), memory.data(), bytes, 0};
  v1::LaunchArgs args = arguments(m.inputs, m.tensors, workspace, m.place);
  add_extras(extras, m.place, args);
  args.selection = &selection;
  kernel.launch(args);  // decides
  m.result.attend_us = median_time_us(
      m.place,
      [&] {
        selection.calls = 1;
        kernel.launch(args);
      },
      m.errors.diagnostics);
  m.errors.check();
}

RunResult measure(const SpecDocument& document, const Inputs& inputs, const LaunchOptions& options,
                  const Session& session) {
  const v1::Engine engine = create_engine(options, session);
  DeviceErrors errors;
  const auto place = open_place(engine.device(), errors.diagnostics);
  errors.check();
  Measurement m{document, inputs, options, engine, *place, {}, {}, {}};
  ProgressLine progress(session);
  progress.show(0, "compiling " + document.spec.name);
  m.result.device = engine.device();
  m.result.device_name = engine.device_name();
  m.result.target = engine.target();
  const v1::Kernel sparse =
      prepare_spec(engine, document.source.text, document.source.path, inputs);
  m.result.kernel = ordered_json::parse(sparse.info_json());
  m.result.tile_q = sparse.tile().q;
  m.result.tile_k = sparse.tile().k;
  m.result.selection_bytes = sparse.selection_bytes(shape_of(inputs));

  m.tensors = place_tensors(inputs, *place, m.errors);
  AlignedBuffer workspace = place_workspace(sparse, inputs, *place, m.errors);
  m.result.workspace_bytes = workspace.bytes;
  Extras extras = place_extras(document, sparse, inputs, *place, m.errors);
  const bool dense_first = wants_previous_lse(document);
  if (dense_first) measure_dense(m, &extras.previous_lse);
  v1::LaunchArgs args = arguments(inputs, m.tensors, workspace, *place);
  add_extras(extras, *place, args);
  progress.show(0.25, "launches of " + document.spec.name);
  if (document.spec.branches.empty())
    launch_with_report(sparse, args, *place, inputs, m.result, m.errors);
  else
    launch_with_branch_reports(sparse, args, *place, document, inputs, m.result, m.errors);
  m.result.sparse_us =
      launch_and_time(sparse, args, *place, options.times, m.tensors.o, m.result.o, m.errors);
  measure_attend(m, extras);
  progress.show(0.5, "dense attention");
  if (!dense_first) measure_dense(m, nullptr);
  if (!document.spec.branches.empty()) measure_branches_twin(m);
  progress.show(0.75, "attention without the mask");
  measure_plain(m);
  return std::move(m.result);
}

}  // namespace

std::optional<RunResult> run_and_measure(const SpecDocument& document, const Inputs& inputs,
                                         const LaunchOptions& options, Session& session) {
  std::optional<RunResult> result;
  guard_device(session, [&] { result = measure(document, inputs, options, session); });
  return result;
}

}  // namespace lacuna::tools

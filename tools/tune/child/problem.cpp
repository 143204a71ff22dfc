#include <algorithm>
#include <numeric>

#include "compiler/passes/check_request.hpp"
#include "tools/measure/random_problem.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/tune/child/problem.hpp"

namespace lacuna::tools {
namespace {

/// The caller's order has to be one; which it is makes no difference to the time.
Array identity_order(std::int32_t tokens) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(tokens));
  std::iota(order.begin(), order.end(), 0);
  Array array{ArrayType::kI32, {tokens}, {}};
  array.bytes.assign(reinterpret_cast<const char*>(order.data()), order.size() * sizeof(order[0]));
  return array;
}

void add_previous_lse(TuneProblem& problem, const v1::Engine& engine) {
  DenseKernel dense = prepare_dense(engine, problem.context.document, problem.inputs, problem.place,
                                    problem.errors);
  dense.kernel.launch(dense_arguments(dense, problem.inputs, problem.sets.front(), problem.place,
                                      problem.errors, &problem.previous_lse));
  // The workspace goes with this function.
  if (problem.place.stream) problem.place.stream->synchronize(problem.errors.diagnostics);
  problem.errors.check();
}

void poison(Buffer& buffer, std::size_t bytes, DeviceErrors& errors) {
  const std::string nan(bytes, '\xff');
  if (buffer.device) {
    buffer.device.copy_in(nan.data(), bytes, errors.diagnostics);
    errors.check();
  } else {
    std::ranges::copy(nan, buffer.host.bytes.begin());
  }
}

}  // namespace

void fill(TuneProblem& problem, const ValueSource& values, const LaunchShape& shape,
          std::size_t sets, const v1::Engine& engine) {
  const TuneTask& task = problem.context.task;
  const VariantSpec& spec = problem.context.document.spec;
  const int head_dim_v = lacuna::head_dim_v(spec, task.build);
  problem.inputs =
      make_inputs(values, shape, task.build.head_dim, task.build.dtype, task.seed, head_dim_v);
  take_v_of_k(spec, head_dim_v, problem.inputs);
  problem.inputs.params = problem.context.params;
  // Lists of the caller fix the tiles, so one list serves all configurations.
  const tune::Config& usual = problem.context.usual;
  if (problem.context.document.spec.external_mask)
    problem.inputs.tile_mask =
        random_tile_mask(shape, usual.tile_q, usual.tile_k, task.density.value_or(1), task.seed);
  if (problem.context.document.spec.permute.order == TokenOrder::kExternal)
    problem.inputs.order = identity_order(shape.n_q);
  if (sets == 0) sets = count_sets(problem.inputs, problem.place);
  for (std::size_t set = 0; set < sets; ++set)
    problem.sets.push_back(place_tensors(problem.inputs, problem.place, problem.errors));
  if (wants_previous_lse(problem.context.document)) add_previous_lse(problem, engine);
}

BoundKernel bind(TuneProblem& problem, const v1::Kernel& kernel) {
  BoundKernel bound{
      kernel,
      place_workspace(kernel, problem.inputs, problem.place, problem.errors),
      place_extras(problem.context.document, kernel, problem.inputs, problem.place, problem.errors),
      {}};
  for (Tensors& tensors : problem.sets) {
    v1::LaunchArgs args = arguments(problem.inputs, tensors, bound.workspace, problem.place);
    add_extras(bound.extras, problem.place, args);
    if (!problem.previous_lse.host.shape.empty())
      args.previous_lse = tensor_of(problem.previous_lse, problem.place);
    bound.args.push_back(std::move(args));
  }
  return bound;
}

v1::Kernel compile_config(const v1::Engine& engine, const TuneProblem& problem,
                          const tune::Config& config) {
  const TuneContext& context = problem.context;
  return prepare_spec(engine, print_spec(tune::fixed_spec(context.document.spec, config)),
                      context.task.path, problem.inputs);
}

std::vector<float> output_of(TuneProblem& problem, const BoundKernel& kernel) {
  Buffer& o = problem.sets.front().o;
  poison(
      o,
      static_cast<std::size_t>(size_bytes(o.host.type) * element_count(o.host.shape).value_or(0)),
      problem.errors);
  kernel.kernel.launch(kernel.args.front());
  std::vector<float> values = to_f32(fetch(o, problem.place, problem.errors.diagnostics));
  problem.errors.check();
  return values;
}

double density_of(TuneProblem& problem, const BoundKernel& kernel) {
  RunResult report;
  report.tile_q = kernel.kernel.tile().q;
  report.tile_k = kernel.kernel.tile().k;
  launch_with_report(kernel.kernel, kernel.args.front(), problem.place, problem.inputs, report,
                     problem.errors);
  if (report.tiles.visible == 0) return 1;
  return static_cast<double>(report.tiles.visited) / static_cast<double>(report.tiles.visible);
}

double time_launch_us(TuneProblem& problem, const BoundKernel& kernel, std::size_t set) {
  const double time_us = time_once_us(
      problem.place, [&] { kernel.kernel.launch(kernel.args[set]); }, problem.errors.diagnostics);
  problem.errors.check();
  return time_us;
}

}  // namespace lacuna::tools

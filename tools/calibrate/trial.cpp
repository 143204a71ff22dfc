#include "tools/calibrate/trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/threads/parallel_for.hpp"

namespace lacuna::tools {
namespace {

Place open(const v1::Engine& engine, DeviceErrors& errors) {
  auto place = open_place(engine.device(), errors.diagnostics);
  errors.check();
  return std::move(*place);
}

std::int64_t ceil_div(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

std::vector<Buffer> place_params(const std::vector<ParamInput>& params, const Place& place,
                                 DeviceErrors& errors) {
  std::vector<Buffer> buffers;
  for (const ParamInput& param : params)
    buffers.push_back(param.tensor ? place_array(*param.tensor, place, errors.diagnostics)
                                   : Buffer());
  errors.check();
  return buffers;
}

/// Sums over one work tile of one head.
struct RowError {
  double difference = 0, magnitude = 0;
};

/// Elements [begin, begin + count) of an output against dense attention.
RowError compare_row(const Array& o, const std::vector<float>& dense, std::size_t begin,
                     std::size_t count) {
  const auto step = static_cast<std::size_t>(size_bytes(o.type));
  const std::vector<float> sparse = to_f32(
      {o.type, {static_cast<std::int64_t>(count)}, o.bytes.substr(begin * step, count * step)});
  RowError error;
  for (std::size_t at = 0; at < count; ++at) {
    const double expected = dense[begin + at];
    error.difference += std::fabs(static_cast<double>(sparse[at]) - expected);
    error.magnitude += std::fabs(expected);
  }
  return error;
}

/// The error of all rows, and its standard error as a ratio of two sums over them.
void add_errors(const std::vector<RowError>& rows, HeadMeasure& measure) {
  RowError sum;
  for (const RowError& row : rows) {
    sum.difference += row.difference;
    sum.magnitude += row.magnitude;
  }
  measure.rel_l1 = sum.magnitude > 0 ? sum.difference / sum.magnitude : sum.difference;
  if (rows.size() < 2 || !(sum.magnitude > 0)) return;
  double squares = 0;
  for (const RowError& row : rows) {
    const double residual = row.difference - measure.rel_l1 * row.magnitude;
    squares += residual * residual;
  }
  const auto count = static_cast<double>(rows.size());
  measure.standard_error = std::sqrt(squares * count / (count - 1)) / sum.magnitude;
}

}  // namespace

Trial::Trial(const SpecDocument& document, const std::vector<Sample>& samples,
             const LaunchOptions& options, const Session& session)
    : document_(document),
      engine_(create_engine(options, session)),
      place_(open(engine_, errors_)),
      kernel_(prepare_spec(engine_, document.source.text, document.source.path,
                           samples.front().inputs)) {
  for (const Sample& sample : samples) {
    PlacedSample& placed = places_.emplace_back();
    placed.inputs = sample.inputs;
    placed.tensors = place_tensors(placed.inputs, place_, errors_);
    placed.workspace = place_workspace(kernel_, placed.inputs, place_, errors_);
    placed.extras = place_extras(document_, kernel_, placed.inputs, place_, errors_);
  }
}

void Trial::launch_dense(PlacedSample& sample) {
  DenseKernel dense = prepare_dense(engine_, document_, sample.inputs, place_, errors_);
  Buffer* lse = wants_previous_lse(document_) ? &sample.extras.previous_lse : nullptr;
  dense.kernel.launch(dense_arguments(dense, sample.inputs, sample.tensors, place_, errors_, lse));
  sample.dense_o = to_f32(fetch(sample.tensors.o, place_, errors_.diagnostics));
  errors_.check();
}

std::int64_t Trial::q_tiles(std::size_t sample) const {
  return ceil_div(places_[sample].inputs.q.shape[2], kernel_.tile().q);
}

std::int64_t Trial::k_tiles(std::size_t sample) const {
  return ceil_div(places_[sample].inputs.k.shape[2], kernel_.tile().k);
}

v1::LaunchArgs Trial::prepare(PlacedSample& sample, const std::vector<ParamInput>& params) {
  sample.inputs.params = fixed_;
  sample.inputs.params.insert(sample.inputs.params.end(), params.begin(), params.end());
  sample.tensors.params = place_params(sample.inputs.params, place_, errors_);
  if (sample.dense_o.empty()) launch_dense(sample);
  v1::LaunchArgs args = arguments(sample.inputs, sample.tensors, sample.workspace, place_);
  add_extras(sample.extras, place_, args);
  return args;
}

std::vector<HeadMeasure> Trial::launch(std::size_t index, const std::vector<ParamInput>& params) {
  PlacedSample& sample = places_[index];
  v1::LaunchArgs args = prepare(sample, params);
  Buffer counts =
      place_zeros(ArrayType::kI32, {1, heads(), q_tiles(index), 3}, place_, errors_.diagnostics);
  errors_.check();
  args.counts = tensor_of(counts, place_);
  kernel_.launch(args);
  const Array o = fetch(sample.tensors.o, place_, errors_.diagnostics);
  const Array rows = fetch(counts, place_, errors_.diagnostics);
  errors_.check();
  return compare_heads(sample, o, rows);
}

std::vector<std::uint8_t> Trial::probe(std::size_t index, const std::vector<ParamInput>& params) {
  PlacedSample& sample = places_[index];
  v1::LaunchArgs args = prepare(sample, params);
  Buffer tiles = place_zeros(ArrayType::kU8, {1, heads(), q_tiles(index), k_tiles(index)}, place_,
                             errors_.diagnostics);
  errors_.check();
  args.tile_mask = tensor_of(tiles, place_);
  kernel_.launch(args);
  const Array codes = fetch(tiles, place_, errors_.diagnostics);
  errors_.check();
  return {codes.bytes.begin(), codes.bytes.end()};
}

std::vector<HeadMeasure> Trial::compare_heads(const PlacedSample& sample, const Array& o,
                                              const Array& counts) const {
  const auto head_count = static_cast<std::size_t>(heads());
  const std::size_t elements = sample.dense_o.size() / head_count;
  const auto row_elements = static_cast<std::size_t>(kernel_.tile().q * sample.inputs.q.shape[3]);
  const std::size_t rows = counts.bytes.size() / sizeof(std::int32_t[3]) / head_count;
  std::vector<std::vector<RowError>> errors(head_count, std::vector<RowError>(rows));
  const auto items = static_cast<std::int64_t>(head_count * rows);
  // The work tiles on all cores: an output of a long sample takes one core as long as a hundred
  // launches of a GPU.
  parallel_for(worker_count(0, items), items, [&](std::int64_t item, std::size_t) {
    const std::size_t head = static_cast<std::size_t>(item) / rows;
    const std::size_t row = static_cast<std::size_t>(item) % rows;
    const std::size_t begin = row * row_elements;
    errors[head][row] = compare_row(o, sample.dense_o, head * elements + begin,
                                    std::min(row_elements, elements - begin));
  });
  std::vector<HeadMeasure> measures(head_count);
  for (std::size_t head = 0; head < head_count; ++head) {
    HeadMeasure& measure = measures[head];
    add_errors(errors[head], measure);
    for (std::size_t row = head * rows; row < (head + 1) * rows; ++row) {
      std::int32_t of_row[3];  // visible, visited, gated
      std::memcpy(of_row, counts.bytes.data() + row * sizeof of_row, sizeof of_row);
      measure.visible += of_row[0];
      measure.computed += of_row[1] - of_row[2];
    }
  }
  return measures;
}

}  // namespace lacuna::tools

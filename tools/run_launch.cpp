#include "tools/run_launch.hpp"

#include <algorithm>
#include <cstring>

#include "tools/dense_twin.hpp"
#include "tools/device.hpp"
// After the compiler's headers: its Spec is lacuna::v1::Spec there.
#include "lacuna/lacuna.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

/// The driver failed; does not leave this file.
struct DeviceFailure {
  Diagnostics diagnostics;
};

/// Collects what the driver says; check() turns it into a DeviceFailure.
struct DeviceErrors {
  Diagnostics diagnostics;
  void check() const {
    if (diagnostics.has_errors()) throw DeviceFailure{diagnostics};
  }
};

v1::Tensor tensor_of(Buffer& buffer, const Place& place) {
  return v1::Tensor(buffer.data(), dl_type(buffer.host.type), buffer.host.shape, dl_device(place));
}

/// The engine; what it misses and what serves instead goes to the reader.
v1::Engine create_engine(const LaunchOptions& options, const Session& session) {
  v1::EngineOptions engine;
  engine.device = options.device;
  engine.threads = options.threads;
  engine.template_path = options.template_path;
  engine.on_event = [&session](const char* event, const char* detail_json) {
    const std::string name = event;
    const auto detail = ordered_json::parse(detail_json, nullptr, false);
    const char* key = name == "device" ? "note" : name == "cache_warning" ? "message" : nullptr;
    if (key == nullptr || !detail.is_object()) return;
    const std::string text = detail.value(key, std::string());
    if (!text.empty()) session.note(text);
  };
  return v1::Engine::create(engine);
}

/// The tensors of a run in their place.
struct Tensors {
  Buffer q, k, v, o;
  std::vector<Buffer> params;  ///< in the order of Inputs::params; empty for numbers
};

Tensors place_tensors(const Inputs& inputs, const Place& place, DeviceErrors& errors) {
  Tensors tensors;
  tensors.q = place_array(inputs.q, place, errors.diagnostics);
  tensors.k = place_array(inputs.k, place, errors.diagnostics);
  tensors.v = place_array(inputs.v, place, errors.diagnostics);
  std::vector<std::int64_t> o_shape = inputs.q.shape;
  o_shape.back() = inputs.v.shape.back();
  tensors.o = place_zeros(inputs.q.type, std::move(o_shape), place, errors.diagnostics);
  for (const ParamInput& param : inputs.params) {
    tensors.params.push_back(param.tensor ? place_array(*param.tensor, place, errors.diagnostics)
                                          : Buffer());
  }
  errors.check();
  return tensors;
}

/// Arguments with those parameters whose names `wanted` accepts.
v1::LaunchArgs arguments(const Inputs& inputs, Tensors& tensors, const Place& place,
                         const std::function<bool(const std::string&)>& wanted) {
  v1::LaunchArgs args;
  args.q = tensor_of(tensors.q, place);
  args.k = tensor_of(tensors.k, place);
  args.v = tensor_of(tensors.v, place);
  args.o = tensor_of(tensors.o, place);
  for (std::size_t i = 0; i < inputs.params.size(); ++i) {
    const ParamInput& param = inputs.params[i];
    if (!wanted(param.name)) continue;
    if (param.tensor) {
      args.params.emplace_back(param.name, tensor_of(tensors.params[i], place));
    } else {
      args.params.emplace_back(param.name, param.value);
    }
  }
  if (place.stream) args.stream = place.stream->handle();
  return args;
}

v1::Kernel prepare(const v1::Engine& engine, const std::string& text, const std::string& path,
                   const Inputs& inputs) {
  v1::CompileOptions compile;
  compile.head_dim = static_cast<std::int32_t>(inputs.q.shape.back());
  compile.dtype = dl_type(inputs.q.type);
  v1::Kernel kernel = engine.compile(v1::Spec::parse(text, path), compile);
  kernel.prepare();
  return kernel;
}

TileCounts sum_counts(const Array& counts) {
  TileCounts sum;
  for (std::size_t at = 0; at + 12 <= counts.bytes.size(); at += 12) {
    std::int32_t row[3];
    std::memcpy(row, counts.bytes.data() + at, sizeof row);
    sum.visible += row[0];
    sum.visited += row[1];
    sum.gated += row[2];
  }
  return sum;
}

/// A launch that also reports which tiles it visited and gated.
void launch_with_report(const v1::Kernel& kernel, v1::LaunchArgs args, const Place& place,
                        const Inputs& inputs, RunResult& result, DeviceErrors& errors) {
  const auto tiles = [](std::int64_t tokens, std::int32_t tile) {
    return (tokens + tile - 1) / tile;
  };
  const std::int64_t batch = inputs.q.shape[0];
  const std::int64_t heads = inputs.q.shape[1];
  const std::int64_t q_tiles = tiles(inputs.q.shape[2], result.tile_q);
  const std::int64_t k_tiles = tiles(inputs.k.shape[2], result.tile_k);
  Buffer counts =
      place_zeros(ArrayType::kI32, {batch, heads, q_tiles, 3}, place, errors.diagnostics);
  Buffer mask =
      place_zeros(ArrayType::kU8, {batch, heads, q_tiles, k_tiles}, place, errors.diagnostics);
  errors.check();
  args.counts = tensor_of(counts, place);
  args.tile_mask = tensor_of(mask, place);
  kernel.launch(args);
  result.tiles = sum_counts(fetch(counts, place, errors.diagnostics));
  result.tile_mask = fetch(mask, place, errors.diagnostics);
  errors.check();
}

/// The output of one plain launch, and the median time of several.
double launch_and_time(const v1::Kernel& kernel, const v1::LaunchArgs& args, const Place& place,
                       Buffer& o, Array& output, DeviceErrors& errors) {
  const double time_us = median_time_us(
      place, [&] { kernel.launch(args); }, errors.diagnostics);
  output = fetch(o, place, errors.diagnostics);
  errors.check();
  return time_us;
}

RunResult measure(const SpecDocument& document, const Inputs& inputs, const LaunchOptions& options,
                  const Session& session) {
  const v1::Engine engine = create_engine(options, session);
  RunResult result;
  result.device = engine.device();
  result.device_name = engine.device_name();
  result.target = engine.target();

  DeviceErrors errors;
  const auto place = open_place(result.device, errors.diagnostics);
  errors.check();
  const v1::Kernel sparse = prepare(engine, document.source.text, document.source.path, inputs);
  result.kernel = ordered_json::parse(sparse.info_json());
  result.tile_q = sparse.tile().q;
  result.tile_k = sparse.tile().k;

  Tensors tensors = place_tensors(inputs, *place, errors);
  const auto all = [](const std::string&) { return true; };
  const v1::LaunchArgs args = arguments(inputs, tensors, *place, all);
  launch_with_report(sparse, args, *place, inputs, result, errors);
  result.sparse_us = launch_and_time(sparse, args, *place, tensors.o, result.o, errors);

  const DenseTwin twin = dense_twin(document.spec);
  const auto kept = [&twin](const std::string& name) {
    return std::find(twin.params.begin(), twin.params.end(), name) != twin.params.end();
  };
  const v1::Kernel dense =
      prepare(engine, twin.text, document.source.path + " without its gate", inputs);
  const v1::LaunchArgs dense_args = arguments(inputs, tensors, *place, kept);
  result.dense_us = launch_and_time(dense, dense_args, *place, tensors.o, result.dense_o, errors);
  return result;
}

ExitCode exit_code_of(lacuna_status status) {
  switch (status) {
    case LACUNA_ERROR_INPUT:
      return ExitCode::kInput;
    case LACUNA_ERROR_ENVIRONMENT:
      return ExitCode::kEnvironment;
    default:
      return ExitCode::kInternal;
  }
}

}  // namespace

std::optional<RunResult> run_and_measure(const SpecDocument& document, const Inputs& inputs,
                                         const LaunchOptions& options, Session& session) {
  try {
    return measure(document, inputs, options, session);
  } catch (const v1::Error& error) {
    session.report_rendered(exit_code_of(error.status()), error.what(), error.json());
  } catch (const DeviceFailure& failure) {
    session.report(failure.diagnostics, {"GPU", ""});
    session.exit_code = ExitCode::kEnvironment;
  }
  return std::nullopt;
}

}  // namespace lacuna::tools

#include <algorithm>
#include <cstring>

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/run/kernels.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

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
    if (!text.empty()) session.note_once(text);
  };
  return v1::Engine::create(engine);
}

v1::Kernel prepare_spec(const v1::Engine& engine, const std::string& text, const std::string& path,
                        const Inputs& inputs) {
  v1::CompileOptions compile;
  compile.head_dim = static_cast<std::int32_t>(inputs.q.shape.back());
  compile.head_dim_v = static_cast<std::int32_t>(inputs.v.shape.back());
  compile.dtype = dl_type(inputs.q.type);
  compile.shape = shape_of(inputs);
  v1::Kernel kernel = engine.compile(Spec::parse(text, path), compile);
  kernel.prepare();
  return kernel;
}

DenseKernel prepare_dense(const v1::Engine& engine, const SpecDocument& document,
                          const Inputs& inputs, const Place& place, DeviceErrors& errors) {
  return prepare_twin(engine, dense_twin(document.spec), document, inputs, place, errors);
}

DenseKernel prepare_twin(const v1::Engine& engine, const DenseTwin& twin,
                         const SpecDocument& document, const Inputs& inputs, const Place& place,
                         DeviceErrors& errors) {
  const std::string name = document.source.path + " without its sparsity";
  DenseKernel dense{prepare_spec(engine, twin.text, name, inputs), twin.params, {}};
  dense.workspace = place_workspace(dense.kernel, inputs, place, errors);
  return dense;
}

v1::LaunchArgs dense_arguments(DenseKernel& dense, const Inputs& inputs, Tensors& tensors,
                               const Place& place, DeviceErrors& errors, Buffer* lse) {
  v1::LaunchArgs args = arguments(inputs, tensors, dense.workspace, place);
  std::erase_if(args.params, [&dense](const v1::Param& param) {
    return std::ranges::count(dense.params, param.name) == 0;
  });
  if (lse == nullptr) return args;
  const auto& q = inputs.q.shape;
  *lse = place_zeros(ArrayType::kF32, {q[0], q[1], q[2]}, place, errors.diagnostics);
  errors.check();
  args.lse = tensor_of(*lse, place);
  return args;
}

bool wants_previous_lse(const SpecDocument& document) {
  const auto& predictor = document.spec.predictor;
  return predictor && predictor->estimate &&
         predictor->estimate->normalise == Normalise::kPreviousLse;
}

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

void launch_with_branch_reports(const v1::Kernel& kernel, v1::LaunchArgs args, const Place& place,
                                const SpecDocument& document, const Inputs& inputs,
                                RunResult& result, DeviceErrors& errors) {
  struct Memory {
    Buffer counts, mask;
  };
  std::vector<Memory> reports;
  const auto tiles = [](std::int64_t tokens, std::int64_t tile) {
    return (tokens + tile - 1) / tile;
  };
  for (const VariantSpec& branch : document.spec.branches) {
    const v1::Tile tile = kernel.tile(branch.branch.name);
    const int means = branch.branch.means, query_means = branch.branch.query_means;
    result.branches.push_back({branch.branch.name, tile.q, tile.k, means, query_means, {}, {}});
    const std::int64_t batch = inputs.q.shape[0], heads = inputs.q.shape[1];
    const std::int64_t q_tiles = tiles(tiles(inputs.q.shape[2], query_means), tile.q),
                       k_tiles = tiles(tiles(inputs.k.shape[2], means), tile.k);
    reports.push_back(
        {place_zeros(ArrayType::kI32, {batch, heads, q_tiles, 3}, place, errors.diagnostics),
         place_zeros(ArrayType::kU8, {batch, heads, q_tiles, k_tiles}, place, errors.diagnostics)});
    errors.check();
  }
  for (std::size_t n = 0; n < reports.size(); ++n)
    args.branches.push_back({result.branches[n].name, tensor_of(reports[n].counts, place),
                             tensor_of(reports[n].mask, place)});
  kernel.launch(args);
  for (std::size_t n = 0; n < reports.size(); ++n) {
    result.branches[n].tiles = sum_counts(fetch(reports[n].counts, place, errors.diagnostics));
    result.branches[n].tile_mask = fetch(reports[n].mask, place, errors.diagnostics);
  }
  errors.check();
}

void guard_device(Session& session, const std::function<void()>& body) {
  try {
    body();
  } catch (const v1::Error& error) {
    session.report_rendered(exit_code_of(error.status()), error.what(), error.json());
  } catch (const DeviceFailure& failure) {
    session.report(failure.diagnostics, {"GPU", ""});
    session.exit_code = ExitCode::kEnvironment;
  }
}

}  // namespace lacuna::tools

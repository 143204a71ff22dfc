#include "tools/calibrate/param/sought_param.hpp"

#include "tools/inputs/calibration.hpp"

namespace lacuna::tools {

Array param_array(const SoughtParam& param, std::int64_t heads) {
  std::vector<std::int64_t> shape;
  if (!param.spec->symbol.shape.empty()) shape.push_back(heads);
  if (param.by_tile()) shape.push_back(param.rows);
  if (param.spec->symbol.type == ExprType::kI32) {
    Array array{ArrayType::kI32, std::move(shape), {}};
    for (const double value : param.values) {
      const auto whole = static_cast<std::int32_t>(value);
      array.bytes.append(reinterpret_cast<const char*>(&whole), sizeof whole);
    }
    return array;
  }
  const std::vector<float> values(param.values.begin(), param.values.end());
  return from_f32(values, std::move(shape), ArrayType::kF32);
}

std::vector<ParamInput> launch_params(const std::vector<SoughtParam>& params, std::int64_t heads,
                                      std::int64_t q_tiles) {
  std::vector<ParamInput> inputs;
  for (const SoughtParam& param : params) {
    ParamInput input{.name = param.spec->symbol.name, .tensor = {}, .value = 0, .origin = {}};
    if (param.spec->symbol.shape.empty())
      input.value = param.values.front();
    else
      input.tensor = param_array(param, heads);
    if (param.by_tile()) input.tensor = fit_rows(*input.tensor, q_tiles);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace lacuna::tools

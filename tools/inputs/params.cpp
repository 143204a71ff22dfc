#include "tools/inputs/params.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "tools/io/file_io.hpp"
#include "tools/io/npy.hpp"

namespace lacuna::tools {
namespace {

namespace fs = std::filesystem;

const ParamSpec* find_param(const VariantSpec& spec, const std::string& name) {
  for (const ParamSpec& param : spec.params) {
    if (param.symbol.name == name) return &param;
  }
  return nullptr;
}

std::string unknown_param(const VariantSpec& spec, const std::string& name) {
  std::vector<std::string> names;
  std::string list;
  for (const ParamSpec& param : spec.params) {
    names.push_back(param.symbol.name);
    list += (list.empty() ? "" : ", ") + param.symbol.name;
  }
  const std::string nearest = nearest_word(name, names);
  return "spec " + spec.name + " has no parameter " + name +
         (nearest.empty() ? "; it has " + (list.empty() ? "none" : list)
                          : "; did you mean " + nearest + "?");
}

/// To the two element types a kernel reads; floats stay floats, so that a wrong type is seen.
Array to_param_type(Array array, const ParamSpec& param) {
  const bool is_integer = array.type == ArrayType::kI32 || array.type == ArrayType::kI64 ||
                          array.type == ArrayType::kU8;
  const ArrayType wanted =
      param.symbol.type == ExprType::kI32 && is_integer ? ArrayType::kI32 : ArrayType::kF32;
  if (array.type == wanted) return array;
  return from_f32(to_f32(array), array.shape, wanted);
}

std::optional<Array> read_param_file(const std::string& path, const ParamSpec& param,
                                     Diagnostics& diagnostics) {
  const auto bytes = read_file(path, diagnostics);
  if (!bytes) return std::nullopt;
  if (path.ends_with(".npy")) {
    auto array = parse_npy(*bytes, diagnostics);
    return array ? std::optional(to_param_type(std::move(*array), param)) : std::nullopt;
  }
  auto file = parse_safetensors(*bytes, diagnostics);
  if (!file) return std::nullopt;
  const auto found = file->tensors.find(param.symbol.name);
  if (found == file->tensors.end()) {
    diagnostics.add(missing_tensor(param.symbol.name, *file));
    return std::nullopt;
  }
  return to_param_type(std::move(found->second), param);
}

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

std::optional<ParamInput> read_assignment(const std::string& assignment, const VariantSpec& spec,
                                          Session& session) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  const std::string text = equals == std::string::npos ? "" : assignment.substr(equals + 1);
  const bool has_name = equals != 0 && !name.empty();
  if (equals == std::string::npos || !has_name || name.ends_with(' ')) {
    session.fail(
        ExitCode::kInput,
        "--param: expected NAME=VALUE or NAME=@FILE without spaces, got \"" + assignment + "\"");
    return std::nullopt;
  }
  const ParamSpec* param = find_param(spec, name);
  if (param == nullptr) {
    session.fail(ExitCode::kInput, unknown_param(spec, name));
    return std::nullopt;
  }
  ParamInput input{.name = name, .tensor = std::nullopt, .value = 0, .origin = text};
  if (text.starts_with('@')) {
    input.origin = text.substr(1);
    Diagnostics diagnostics;
    input.tensor = read_param_file(input.origin, *param, diagnostics);
    session.report(diagnostics, {input.origin, ""});
    return input.tensor ? std::optional(input) : std::nullopt;
  }
  const auto value = parse_number(text);
  if (!value) {
    session.fail(ExitCode::kInput,
                 "--param " + name + ": expected a number or @FILE, got \"" + text + "\"");
    return std::nullopt;
  }
  input.value = *value;
  return input;
}

/// The files `<input without its ending>.<spec>-*.safetensors`, sorted.
std::vector<std::string> companions(const std::string& input, const std::string& spec_name) {
  const fs::path path(input);
  const std::string prefix = path.stem().string() + "." + spec_name + "-";
  std::vector<std::string> found;
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".safetensors")) {
      found.push_back((path.parent_path() / name).string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Adds to `params` what is not assigned and the companion file has.
bool add_companion(const std::string& input, const VariantSpec& spec,
                   std::vector<ParamInput>& params, Session& session) {
  const auto is_open = [&params](const ParamSpec& param) {
    return std::none_of(params.begin(), params.end(), [&param](const ParamInput& known) {
      return known.name == param.symbol.name;
    });
  };
  if (std::none_of(spec.params.begin(), spec.params.end(), is_open)) return true;
  const std::vector<std::string> files = companions(input, spec.name);
  if (files.empty()) return true;
  if (files.size() > 1) {
    session.fail(ExitCode::kInput, "several files have parameters for this input, " +
                                       files.front() + " and " + files.back() +
                                       " among them; choose with --param NAME=@FILE");
    return false;
  }
  Diagnostics diagnostics;
  const auto bytes = read_file(files.front(), diagnostics);
  auto file = bytes ? parse_safetensors(*bytes, diagnostics) : std::nullopt;
  session.report(diagnostics, {files.front(), ""});
  if (!file) return false;
  for (const ParamSpec& param : spec.params) {
    const auto found = file->tensors.find(param.symbol.name);
    if (found == file->tensors.end() || !is_open(param)) continue;
    params.push_back({.name = param.symbol.name,
                      .tensor = to_param_type(std::move(found->second), param),
                      .value = 0,
                      .origin = files.front()});
  }
  return true;
}

}  // namespace

Diagnostic missing_tensor(const std::string& name, const Safetensors& file) {
  std::string names;
  for (const auto& [known, array] : file.tensors) names += (names.empty() ? "" : ", ") + known;
  return {.code = Code::kTensorMissing,
          .message =
              "tensor " + name + " is missing; the file has " + (names.empty() ? "none" : names)};
}

std::optional<std::vector<ParamInput>> load_params(const std::vector<std::string>& assignments,
                                                   const std::string& input,
                                                   const VariantSpec& spec, Session& session) {
  std::vector<ParamInput> params;
  bool good = true;
  for (const std::string& assignment : assignments) {
    auto param = read_assignment(assignment, spec, session);
    good &= param.has_value();
    if (param) params.push_back(std::move(*param));
  }
  if (!input.empty()) good &= add_companion(input, spec, params, session);
  if (!good) return std::nullopt;
  return params;
}

}  // namespace lacuna::tools

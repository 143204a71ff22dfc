#include "tools/inputs/load_inputs.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "tools/inputs/calibration.hpp"
#include "tools/inputs/params.hpp"
#include "tools/inputs/parse_file.hpp"
#include "tools/io/file_io.hpp"
#include "tools/io/npy.hpp"
#include "tools/io/safetensors.hpp"

namespace lacuna::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSample = "lm-layer5-4k.safetensors";

/// Makes one of q, k, v a 4-dimensional tensor of a float type.
bool lift(const std::string& name, Array& array, const InputOptions& options,
          Diagnostics& diagnostics) {
  const bool is_float = array.type == ArrayType::kBF16 || array.type == ArrayType::kF16 ||
                        array.type == ArrayType::kF32 ||
                        (array.type == ArrayType::kF64 && options.dtype.has_value());
  if (!is_float) {
    diagnostics.add({.code = Code::kTensorDType,
                     .message = "tensor " + name + ": dtype: expected bf16, f16 or f32, got " +
                                std::string(name_of(array.type))});
    if (array.type == ArrayType::kF64)
      diagnostics.items.back().helps.emplace_back(
          "NumPy's default; have it converted with --dtype f32, bf16 or f16");
  }
  if (array.shape.size() < 2 || array.shape.size() > 4) {
    diagnostics.add({.code = Code::kTensorShape,
                     .message = "tensor " + name +
                                ": shape: expected [tokens, head_dim], [heads, tokens, head_dim] "
                                "or [batch, heads, tokens, head_dim], got " +
                                print_shape(array.shape)});
  }
  if (diagnostics.has_errors()) return false;
  array.shape.insert(array.shape.begin(), 4 - array.shape.size(), 1);
  if (options.dtype && array_type(*options.dtype) != array.type) {
    array = from_f32(to_f32(array), array.shape, array_type(*options.dtype));
  }
  return true;
}

bool lift_all(Inputs& inputs, const InputOptions& options, Diagnostics& diagnostics) {
  inputs.rank = inputs.q.shape.size();
  Diagnostics found[3];
  lift("q", inputs.q, options, found[0]);
  lift("k", inputs.k, options, found[1]);
  lift("v", inputs.v, options, found[2]);
  for (Diagnostics& one : found) {
    for (Diagnostic& item : one.items) diagnostics.add(std::move(item));
  }
  return !diagnostics.has_errors();
}

bool load_safetensors(const std::string& path, const InputOptions& options, Inputs& inputs,
                      Session& session) {
  Diagnostics diagnostics;
  const auto bytes = read_file(path, diagnostics);
  auto file = bytes ? parse_safetensors(*bytes, diagnostics) : std::nullopt;
  if (file) {
    for (const auto& [name, array] :
         {std::pair{"q", &inputs.q}, {"k", &inputs.k}, {"v", &inputs.v}}) {
      const auto found = file->tensors.find(name);
      if (found != file->tensors.end()) {
        *array = std::move(found->second);
        continue;
      }
      diagnostics.add(missing_tensor(name, *file));
    }
    if (!diagnostics.has_errors()) lift_all(inputs, options, diagnostics);
  }
  session.report(diagnostics, {path, ""});
  return !diagnostics.has_errors();
}

bool load_npy_files(const InputOptions& options, Inputs& inputs, Session& session) {
  bool good = true;
  const std::tuple<const char*, const std::string*, Array*> files[] = {
      {"q", &options.q, &inputs.q}, {"k", &options.k, &inputs.k}, {"v", &options.v, &inputs.v}};
  for (const auto& [name, path, array] : files) {
    if (path->empty()) continue;  // v, where it is a part of k
    Diagnostics diagnostics;
    const auto bytes = read_file(*path, diagnostics);
    auto parsed = bytes ? parse_npy(*bytes, diagnostics) : std::nullopt;
    if (parsed) {
      if (array == &inputs.q) inputs.rank = parsed->shape.size();
      *array = std::move(*parsed);
      lift(name, *array, options, diagnostics);
    }
    session.report(diagnostics, {*path, ""});
    good &= !diagnostics.has_errors();
  }
  return good;
}

std::optional<Array> load_npy(const std::string& path, Session& session) {
  return parse_file(path, parse_npy, session);
}

/// A file that some specs need: an error if it is needed and not given, or given and not needed.
bool wants(bool needed, const std::string& path, const char* flag, const std::string& reason,
           Session& session) {
  if (needed == !path.empty()) return needed;
  session.fail(ExitCode::kInput, needed ? "the spec says " + reason + ": pass " + flag + " FILE.npy"
                                        : std::string(flag) + " is only for specs with " + reason);
  return false;
}

/// Why integers are not an order of tokens; "" if each has its place.
std::string met_twice(const Array& order) {
  const auto count = static_cast<std::size_t>(order.shape[0]);
  std::vector<bool> met(count);
  for (std::size_t at = 0; at < count; ++at) {
    std::int32_t token = 0;
    std::memcpy(&token, order.bytes.data() + at * sizeof token, sizeof token);
    const bool is_token = token >= 0 && static_cast<std::size_t>(token) < count;
    if (is_token && !met[static_cast<std::size_t>(token)]) {
      met[static_cast<std::size_t>(token)] = true;
      continue;
    }
    return "expected each of the tokens 0 to " + std::to_string(count - 1) + " once, got " +
           std::to_string(token) + (is_token ? " again" : "") + " at [" + std::to_string(at) + "]";
  }
  return "";
}

bool load_order(const InputOptions& options, const VariantSpec& spec, Inputs& inputs,
                Session& session) {
  const bool needed = spec.permute.order == TokenOrder::kExternal;
  if (!wants(needed, options.order, "--order", "\"permute\": \"external\"", session))
    return !needed && options.order.empty();
  auto array = load_npy(options.order, session);
  if (!array) return false;
  if (array->shape.size() != 1 ||
      (array->type != ArrayType::kI32 && array->type != ArrayType::kI64)) {
    session.fail(ExitCode::kInput, options.order + ": expected integers of shape [tokens], got " +
                                       std::string(name_of(array->type)) + " " +
                                       print_shape(array->shape));
    return false;
  }
  inputs.order = to_i32(*array);
  const std::string twice = met_twice(*inputs.order);
  if (!twice.empty()) session.fail(ExitCode::kInput, options.order + ": " + twice);
  return twice.empty();
}

bool load_tile_mask(const InputOptions& options, const VariantSpec& spec, Inputs& inputs,
                    Session& session) {
  const bool needed = spec.external_mask;
  if (!wants(needed, options.tile_mask, "--tile-mask", "\"mask\": \"external\"", session))
    return !needed && options.tile_mask.empty();
  auto array = load_npy(options.tile_mask, session);
  if (!array) return false;
  const std::size_t rank = array->shape.size();
  if (array->type != ArrayType::kU8 || rank < 2 || rank > 4) {
    session.fail(
        ExitCode::kInput,
        options.tile_mask +
            ": expected u8 [batch, heads, q_tiles, k_tiles], as --mask-out writes it, got " +
            std::string(name_of(array->type)) + " " + print_shape(array->shape));
    return false;
  }
  const auto is_code = [](char code) { return static_cast<unsigned char>(code) <= 2; };
  if (const auto other = std::ranges::find_if_not(array->bytes, is_code);
      other != array->bytes.end()) {
    session.fail(ExitCode::kInput, options.tile_mask + ": expected 0 (not visited), 1 or 2, got " +
                                       std::to_string(static_cast<unsigned char>(*other)));
    return false;
  }
  array->shape.insert(array->shape.begin(), 4 - rank, 1);
  inputs.tile_mask = std::move(array);
  return true;
}

/// Finds a shipped file: beside the program, in an installation, or in the source tree.
std::string shipped(const std::string& in_tree, const std::string& installed) {
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = executable.parent_path(); !error; folder = folder.parent_path()) {
    for (const std::string& place : {in_tree, installed}) {
      const fs::path candidate = folder / place;
      if (fs::exists(candidate, error)) return fs::proximate(candidate, error).string();
    }
    if (folder == folder.parent_path()) break;
  }
  const fs::path source = fs::path(LACUNA_SOURCE_DIR) / in_tree;
  return fs::exists(source, error) ? fs::proximate(source, error).string() : std::string();
}

}  // namespace

std::string shipped_sample() {
  return shipped(std::string("tests/data/") + kSample, std::string("share/lacuna/data/") + kSample);
}

std::string shipped_specs() {
  // A folder `specs` without the schema is somebody else's.
  const std::string schema = shipped("specs/schema.json", "share/lacuna/specs/schema.json");
  return fs::path(schema).parent_path().string();
}

std::optional<Inputs> load_tensors(const std::string& path, std::optional<DType> dtype,
                                   Session& session) {
  Inputs inputs;
  inputs.origin = path;
  InputOptions options;
  options.dtype = dtype;
  if (!load_safetensors(path, options, inputs, session)) return std::nullopt;
  return inputs;
}

/// Does --v fit a spec that takes v from k, or one that does not?
namespace {

bool check_v(const InputOptions& options, const VariantSpec& spec, Session& session) {
  const bool is_of_k = spec.attention.v == ValuesOf::kKeys;
  if (is_of_k || options.q.empty() || !options.v.empty()) return true;
  session.fail(ExitCode::kUsage, "--q requires --v, unless the spec says \"v\": \"k\"");
  return false;
}

/// v that was given beside k although it is a part of k: the same numbers?
bool is_v_of_k(const Array& given, const Inputs& inputs, Session& session) {
  if (given.shape.empty() || given.bytes == inputs.v.bytes) return true;
  session.fail(ExitCode::kInput,
               "--v: expected none, or the first " + std::to_string(inputs.v.shape.back()) +
                   " elements of each row of k, because the spec says \"v\": \"k\"; got others");
  return false;
}

}  // namespace

std::optional<Inputs> load_inputs(const InputOptions& options, const VariantSpec& spec,
                                  Session& session) {
  Inputs inputs;
  bool good = true;
  std::string path = options.input;
  if (!check_v(options, spec, session)) return std::nullopt;
  if (!options.q.empty()) {
    inputs.origin = options.q + ", " + options.k + (options.v.empty() ? "" : ", " + options.v);
    good = load_npy_files(options, inputs, session);
  } else {
    if (path.empty()) path = shipped_sample();
    if (path.empty()) {
      session.fail(ExitCode::kInput, std::string("the sample ") + kSample +
                                         " is not beside this program; name a file with --input");
      return std::nullopt;
    }
    inputs.origin = path;
    good = load_safetensors(path, options, inputs, session);
  }
  const bool calibrated = !options.calibration.path.empty();
  auto params = load_params(options.params, calibrated ? "" : path, spec, session);
  if (good && params) {
    const auto& q = inputs.q.shape;
    good &= add_calibration(options.calibration, spec, {q[1], q[3], q[2]}, *params, session);
  }
  good &= load_order(options, spec, inputs, session);
  good &= load_tile_mask(options, spec, inputs, session);
  if (!good || !params) return std::nullopt;
  inputs.params = std::move(*params);
  const std::vector<int>& widths = spec.attention.head_dim_v.values;
  const Array given_v = inputs.v;
  take_v_of_k(spec, widths.empty() ? 0 : widths.front(), inputs);
  if (inputs.v_of_k && !options.v.empty() && !is_v_of_k(given_v, inputs, session))
    return std::nullopt;
  inputs.v_not_finite = count_not_finite_rows(inputs.v);
  return inputs;
}

}  // namespace lacuna::tools

#include "tools/inputs/calibration.hpp"

#include <algorithm>
#include <cstdio>

#include "cache/key.hpp"
#include "tools/inputs/parse_file.hpp"

namespace lacuna::tools {
namespace {

/// "expected 4, got 8" of one thing that has to agree.
bool agrees(const std::string& path, const char* what, const std::string& made_for,
            const std::string& got, Session& session) {
  if (made_for == got) return true;
  session.fail(ExitCode::kInput, path + ": " + what + ": it was made for " + made_for +
                                     ", this is " + got + "; calibrate again");
  return false;
}

/// The spec, or the branch of it that was calibrated by itself.
VariantSpec calibrated_part(const VariantSpec& whole, const Calibration& calibration) {
  for (const VariantSpec& branch : whole.branches) {
    if (branch.name != calibration.spec) continue;
    VariantSpec alone = branch;
    alone.branch = {};
    return alone;
  }
  return whole;
}

bool fits(const std::string& path, const Calibration& calibration, const VariantSpec& whole,
          const CalibrationUse& use, Session& session) {
  const VariantSpec spec = calibrated_part(whole, calibration);
  if (!agrees(path, "spec", calibration.spec, spec.name, session)) return false;
  if (calibration.spec_sha256 != spec_sha256(spec)) {
    session.fail(ExitCode::kInput, path + ": spec " + spec.name +
                                       " computes something else since this calibration was made "
                                       "for it; calibrate again");
    return false;
  }
  const bool heads =
      agrees(path, "heads", std::to_string(calibration.heads), std::to_string(use.heads), session);
  const bool head_dim = agrees(path, "head dim", std::to_string(calibration.head_dim),
                               std::to_string(use.head_dim), session);
  return heads && head_dim;
}

std::string kept_name(const std::string& param, int kept) {
  return param + ".kept_" + std::to_string(kept);
}

/// The numbers N of all tables "NAME.kept_N" of the file: "8, 16, 32".
std::string kept_choices(const Calibration& calibration) {
  std::vector<int> choices;
  for (const auto& [name, array] : calibration.params) {
    int kept = 0;
    const std::size_t dot = name.find(".kept_");
    if (dot != std::string::npos && std::sscanf(name.c_str() + dot, ".kept_%d", &kept) == 1)
      choices.push_back(kept);
  }
  std::sort(choices.begin(), choices.end());
  std::string text;
  for (const int kept : choices) text += (text.empty() ? "" : ", ") + std::to_string(kept);
  return text.empty() ? "none" : text;
}

}  // namespace

std::string spec_sha256(const VariantSpec& spec) {
  VariantSpec plain = without_let(spec);
  plain.doc.clear();
  plain.source.clear();
  for (ParamSpec& param : plain.params) {
    param.has_default = false;
    param.default_value = 0;
    param.calibrate = Calibrate::kNone;
    param.doc.clear();
    param.unit.clear();
  }
  return cache::sha256_hex(print_spec(plain));
}

std::optional<Calibration> load_calibration(const std::string& path, Session& session) {
  return parse_file(path, parse_calibration, session);
}

Array fit_rows(const Array& array, std::int64_t rows) {
  const std::int64_t heads = array.shape[0], have = array.shape[1];
  const auto bytes = static_cast<std::size_t>(size_bytes(array.type));
  Array fitted{array.type, {heads, rows}, {}};
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t row = 0; row < rows; ++row)
      fitted.bytes += array.bytes.substr(
          static_cast<std::size_t>(head * have + std::min(row, have - 1)) * bytes, bytes);
  return fitted;
}

bool add_calibration(const CalibrationOptions& options, const VariantSpec& spec,
                     const CalibrationUse& use, std::vector<ParamInput>& params, Session& session) {
  if (options.path.empty()) return true;
  const auto calibration = load_calibration(options.path, session);
  if (!calibration || !fits(options.path, *calibration, spec, use, session)) return false;
  bool has_table = !options.kept;
  for (const ParamSpec& param : spec.params) {
    const std::string& name = param.symbol.name;
    const bool assigned = std::any_of(params.begin(), params.end(),
                                      [&](const ParamInput& known) { return known.name == name; });
    auto found = calibration->params.find(name);
    if (found == calibration->params.end()) continue;
    const auto table =
        options.kept ? calibration->params.find(kept_name(name, *options.kept)) : found;
    has_table |= table != calibration->params.end();
    if (table != calibration->params.end()) found = table;
    if (assigned) continue;
    Array array = found->second;
    const bool by_tile = param.symbol.shape.size() == 2 && array.shape.size() == 2;
    if (by_tile && array.shape[1] > 0)
      array = fit_rows(array, (use.n_q + calibration->tile_q - 1) / calibration->tile_q);
    params.push_back(
        {.name = name, .tensor = std::move(array), .value = 0, .origin = options.path});
  }
  if (!has_table)
    session.fail(ExitCode::kInput, options.path + ": --kept " + std::to_string(*options.kept) +
                                       ": the file has tables for " + kept_choices(*calibration));
  return has_table;
}

}  // namespace lacuna::tools

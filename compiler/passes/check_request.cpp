#include "compiler/passes/check_request.hpp"

#include "compiler/ir/names.hpp"
#include "compiler/passes/check_head_dim.hpp"
#include "compiler/passes/pass.hpp"
#include "compiler/spec/table/bands.hpp"

namespace lacuna {
namespace {

template <class T, class ToText>
std::string list_of(const std::vector<T>& values, ToText to_text) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + std::string(to_text(value));
  return text;
}

/// The caller's value must be one that the spec admits.
template <class T, class ToText>
void check_admitted(const SpecDocument& document, std::string_view pointer, const char* field,
                    const Choice<T>& admitted, T value, ToText to_text, Diagnostics& diagnostics) {
  if (admitted.admits(value)) return;
  const std::string legal = list_of(admitted.values, to_text);
  Diagnostic& d =
      diagnostics.add(at_field(document, pointer, Code::kUnsupported, Severity::kError,
                               std::string(field) + ": the spec admits " + legal +
                                   ", the caller asks for " + std::string(to_text(value))));
  d.helps.push_back("compile for " + legal + ", or extend the spec's list");
}

/// A plan is of one attend.
void check_branches(const SpecDocument& document, Diagnostics& diagnostics) {
  if (document.spec.branches.empty()) return;
  Diagnostic& d =
      diagnostics.add(at_field(document, "/branches", Code::kUnsupported, Severity::kError,
                               "branches: expected a spec of one attend here"));
  d.notes.emplace_back("each branch has tiles and a plan of its own");
  d.helps.emplace_back("write the branch in question as a spec");
}

}  // namespace

int head_dim_v(const VariantSpec& spec, const BuildOptions& options) {
  if (options.head_dim_v > 0) return options.head_dim_v;
  const std::vector<int>& written = spec.attention.head_dim_v.values;
  return written.empty() ? options.head_dim : written.front();
}

int width_of(const VariantSpec& spec, const BuildOptions& options) {
  return only_band(spec.branch.dims, options.head_dim).value_or(Band{0, options.head_dim}).width();
}

void check_request(const SpecDocument& document, const BuildOptions& options,
                   Diagnostics& diagnostics) {
  const VariantSpec& spec = document.spec;
  check_admitted(
      document, "/attention/head_dim", "head_dim", spec.attention.head_dim, options.head_dim,
      [](int d) { return std::to_string(d); }, diagnostics);
  check_admitted(
      document, "/attention/head_dim_v", "head_dim_v", spec.attention.head_dim_v,
      head_dim_v(spec, options), [](int d) { return std::to_string(d); }, diagnostics);
  check_admitted(
      document, "/attention/dtype", "dtype", spec.attention.dtype, options.dtype,
      [](DType t) { return name_of(t); }, diagnostics);
  if (spec.attention.v == ValuesOf::kKeys && head_dim_v(spec, options) > options.head_dim) {
    Diagnostic& d = diagnostics.add(
        at_field(document, "/attention/v", Code::kUnsupported, Severity::kError,
                 "attention.v \"k\": expected a head_dim_v of " + std::to_string(options.head_dim) +
                     " or less, got " + std::to_string(head_dim_v(spec, options))));
    d.notes.emplace_back("V is the first head_dim_v elements of each key, which has head_dim");
    d.helps.emplace_back("swap head_dim and head_dim_v, or leave v out");
  }
  check_bands(document, options.head_dim, width_of(spec, options), diagnostics);
  check_branches(document, diagnostics);
}

}  // namespace lacuna

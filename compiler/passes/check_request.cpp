#include "compiler/passes/check_request.hpp"

#include <algorithm>

#include "compiler/passes/pass.hpp"
#include "compiler/spec/bands.hpp"

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
  if (admitted.is_auto() || std::ranges::count(admitted.values, value) > 0) return;
  const std::string legal = list_of(admitted.values, to_text);
  Diagnostic& d =
      diagnostics.add(at_field(document, pointer, Code::kUnsupported, Severity::kError,
                               std::string(field) + ": the spec admits " + legal +
                                   ", the caller asks for " + std::string(to_text(value))));
  d.helps.push_back("compile for " + legal + ", or extend the spec's list");
}

/// The row LSE of an earlier call lies in the caller's order.
void check_previous_lse(const SpecDocument& document, Diagnostics& diagnostics) {
  const VariantSpec& spec = document.spec;
  const bool reads_it = spec.predictor && spec.predictor->estimate &&
                        spec.predictor->estimate->normalise == Normalise::kPreviousLse;
  if (!reads_it || spec.permute.order == TokenOrder::kNone) return;
  Diagnostic& d = diagnostics.add(
      at_field(document, "/predictor/estimate/normalise", Code::kConflict, Severity::kError,
               "predictor.estimate.normalise: previous_lse does not go with permute"));
  d.notes.emplace_back("the lse of an earlier call lies in the caller's order of tokens");
  d.helps.emplace_back("normalise with \"lse\" or \"softmax\", or permute the tensors outside");
}

/// Bands end with the head.
void check_dims(const SpecDocument& document, const BuildOptions& options,
                Diagnostics& diagnostics) {
  for (const PredictorSpec* step : document.spec.steps()) {
    if (!step->estimate || step->estimate->dims.empty()) continue;
    const int needed = last_band_end(band_steps(step->estimate->dims).value_or(0));
    if (needed <= options.head_dim) continue;
    Diagnostic& d = diagnostics.add(at_field(
        document, "/predictor/estimate/dims", Code::kUnsupported, Severity::kError,
        "predictor.estimate.dims: \"" + step->estimate->dims + "\" needs a head_dim of " +
            std::to_string(needed) + ", the caller asks for " + std::to_string(options.head_dim)));
    d.helps.push_back("write \"head_dim\": " + std::to_string(needed) +
                      " in attention, or bands that end before");
  }
}

}  // namespace

void check_request(const SpecDocument& document, const BuildOptions& options,
                   Diagnostics& diagnostics) {
  const VariantSpec& spec = document.spec;
  check_admitted(
      document, "/attention/head_dim", "head_dim", spec.attention.head_dim, options.head_dim,
      [](int d) { return std::to_string(d); }, diagnostics);
  check_admitted(
      document, "/attention/dtype", "dtype", spec.attention.dtype, options.dtype,
      [](DType t) { return name_of(t); }, diagnostics);
  check_previous_lse(document, diagnostics);
  check_dims(document, options, diagnostics);
}

}  // namespace lacuna

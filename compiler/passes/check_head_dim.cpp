#include "compiler/passes/check_head_dim.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "compiler/ir/head_dims.hpp"
#include "compiler/passes/pass.hpp"
#include "compiler/spec/table/bands.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {
namespace {

/// Ascending.
struct HeadDims {
  std::vector<int> legal;
  std::string words;
  std::string why;
};

HeadDims head_dims_of(TargetKind kind) {
  if (kind == TargetKind::kCuda)
    return {{kLegalHeadDims.begin(), kLegalHeadDims.end()},
            "64, 80, 96, 112, 128, 192, 256, 512 or 576",
            "kernels are laid out and tested for these head dimensions"};
  HeadDims of_cpu{
      {},
      "a multiple of " + std::to_string(kHeadDimStep) + " up to " + std::to_string(kLargestHeadDim),
      "a row of a head is whole vectors of the CPU"};
  for (int d = kHeadDimStep; d <= kLargestHeadDim; d += kHeadDimStep) of_cpu.legal.push_back(d);
  return of_cpu;
}

void check_band_of_branch(const SpecDocument& document, int head_dim, Diagnostics& diagnostics) {
  const std::string& band = document.spec.branch.dims;
  const int needed = last_band_end(band_steps(band).value_or(0));
  if (band.empty() || needed <= head_dim) return;
  Diagnostic& d = diagnostics.add(at_field(document, "/dims", Code::kUnsupported, Severity::kError,
                                           "dims: \"" + band + "\" needs a head_dim of " +
                                               std::to_string(needed) + ", the caller asks for " +
                                               std::to_string(head_dim)));
  d.helps.push_back("write \"head_dim\": " + std::to_string(needed) +
                    " in attention, or a band that ends before");
}

}  // namespace

void check_head_dim(const SpecDocument& document, const char* field, int head_dim,
                    const Target& target, Diagnostics& diagnostics) {
  const HeadDims dims = head_dims_of(target.kind);
  const auto above = std::ranges::lower_bound(dims.legal, head_dim);
  if (above != dims.legal.end() && *above == head_dim) return;
  const std::string& band = document.spec.branch.dims;
  const bool is_of_band = !band.empty() && std::string_view(field) == "head_dim";
  const std::string subject = is_of_band ? "dims \"" + band + "\"" : field;
  Diagnostic& d = diagnostics.add(
      at_field(document, is_of_band ? "/dims" : "/attention/" + std::string(field),
               Code::kUnsupported, Severity::kError,
               subject + ": expected " + (is_of_band ? "a width of " : "") + dims.words + " on " +
                   target.name + ", got " + std::to_string(head_dim)));
  d.notes.push_back(dims.why);
  // The legal neighbours: the next smaller and the next larger, where there are such.
  std::string nearest;
  if (above != dims.legal.begin()) nearest = std::to_string(*std::prev(above));
  if (above != dims.legal.end()) nearest += (nearest.empty() ? "" : ", ") + std::to_string(*above);
  d.helps.push_back("nearest legal values: " + nearest);
}

void check_bands(const SpecDocument& document, int head_dim, int width, Diagnostics& diagnostics) {
  check_band_of_branch(document, head_dim, diagnostics);
  for (const PredictorSpec* step : document.spec.steps()) {
    if (!step->estimate || step->estimate->dims.empty()) continue;
    const int needed = last_band_end(band_steps(step->estimate->dims).value_or(0));
    if (needed <= width) continue;
    const bool is_of_band = !document.spec.branch.dims.empty();
    Diagnostic& d = diagnostics.add(
        at_field(document, "/predictor/estimate/dims", Code::kUnsupported, Severity::kError,
                 "predictor.estimate.dims: \"" + step->estimate->dims + "\" needs a head_dim of " +
                     std::to_string(needed) + ", " +
                     (is_of_band ? "and the branch compares " : "the caller asks for ") +
                     std::to_string(width)));
    if (is_of_band) {
      d.helps.emplace_back("bands of an estimate are counted within the branch's dims");
      continue;
    }
    d.helps.push_back("write \"head_dim\": " + std::to_string(needed) +
                      " in attention, or bands that end before");
  }
}

}  // namespace lacuna

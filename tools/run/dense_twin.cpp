#include "tools/run/dense_twin.hpp"

#include <algorithm>

#include "compiler/expr/text/parse.hpp"

namespace lacuna::tools {
namespace {

/// Leaves of one attend what decides about every visible pair, in the type of the tensors.
void strip(VariantSpec& spec) {
  spec.gate.reset();
  spec.predictor.reset();
  // Tiles of integers may be too large for the type of the tensors.
  if (spec.quantise != QuantiseSpec{}) spec.tile = {};
  spec.quantise = {};
  spec.loader = {};
}

bool reads(const VariantSpec& spec, int parameter) {
  return uses_parameter(spec.attention.mask, parameter) ||
         uses_parameter(spec.attention.score, parameter) ||
         uses_parameter(spec.attention.sink, parameter) ||
         uses_parameter(spec.branch.weight, parameter) ||
         std::ranges::any_of(spec.branches, [parameter](const VariantSpec& branch) {
           return reads(branch, parameter);
         });
}

/// With those of `params` that it reads; what is not read may be required, and not be at hand.
DenseTwin print_twin(VariantSpec twin, const std::vector<ParamSpec>& params) {
  DenseTwin printed;
  twin.params.clear();
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!reads(twin, static_cast<int>(i))) continue;
    twin.params.push_back(params[i]);
    printed.params.push_back(params[i].symbol.name);
  }
  printed.text = print_spec(twin);
  return printed;
}

}  // namespace

DenseTwin dense_twin(const VariantSpec& spec) {
  VariantSpec dense = without_let(spec);
  strip(dense);
  dense.permute = {};
  dense.external_mask = false;
  dense.branches.clear();
  return print_twin(std::move(dense), spec.params);
}

DenseTwin branches_twin(const VariantSpec& spec) {
  VariantSpec dense = without_let(spec);
  for (VariantSpec& branch : dense.branches) strip(branch);
  return print_twin(std::move(dense), spec.params);
}

std::string plain_twin(const VariantSpec& spec, bool is_causal) {
  VariantSpec plain;
  plain.name = spec.name;
  plain.attention.scale = spec.attention.scale;
  plain.attention.head_dim = spec.attention.head_dim;
  plain.attention.head_dim_v = spec.attention.head_dim_v;
  plain.attention.v = spec.attention.v;
  plain.attention.dtype = spec.attention.dtype;
  if (is_causal) plain.attention.mask = parse_expr("k <= q + n_k - n_q", Site::kMask, {}).expr;
  return print_spec(plain);
}

std::string reusing_twin(const VariantSpec& spec) {
  constexpr int kMostLaunches = 1000;
  VariantSpec reusing = spec;
  if (reusing.predictor) reusing.predictor->reuse = kMostLaunches;
  return print_spec(reusing);
}

}  // namespace lacuna::tools

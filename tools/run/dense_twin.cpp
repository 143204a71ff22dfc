#include "tools/run/dense_twin.hpp"

#include "compiler/expr/text/parse.hpp"

namespace lacuna::tools {

DenseTwin dense_twin(const VariantSpec& spec) {
  VariantSpec dense = spec;
  DenseTwin twin;
  dense.gate.reset();
  dense.predictor.reset();
  dense.quantise = {};
  dense.permute = {};
  dense.external_mask = false;
  dense.loader = {};
  dense.branches.clear();
  dense.params.clear();
  for (std::size_t i = 0; i < spec.params.size(); ++i) {
    const int index = static_cast<int>(i);
    const bool is_read = uses_parameter(spec.attention.mask, index) ||
                         uses_parameter(spec.attention.score, index) ||
                         uses_parameter(spec.attention.sink, index);
    if (!is_read) continue;
    dense.params.push_back(spec.params[i]);
    twin.params.push_back(spec.params[i].symbol.name);
  }
  twin.text = print_spec(dense);
  return twin;
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

// Twins of a spec that a run is measured against. The dense twin: the same attention with neither
// predictor, gate, quantisation nor permutation.
#pragma once

#include <string>
#include <vector>

#include "compiler/spec/spec.hpp"

namespace lacuna::tools {

struct DenseTwin {
  std::string text;                 ///< JSON
  std::vector<std::string> params;  ///< that mask and score still read
};

/// One attend; of a spec with branches that of the spec's own mask and score.
DenseTwin dense_twin(const VariantSpec& spec);

/// All branches, joined as the spec says, each without predictor, gate and quantisation: what the
/// results of a spec with branches are compared with.
DenseTwin branches_twin(const VariantSpec& spec);

/// Attention with nothing of the spec's but its scale: causal, or unmasked.
std::string plain_twin(const VariantSpec& spec, bool is_causal);

/// JSON of the same spec, but one decision serves as many launches as may be: what remains of a
/// launch without its prediction. The kernels are the same.
std::string reusing_twin(const VariantSpec& spec);

}  // namespace lacuna::tools

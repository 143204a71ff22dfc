// Batches of sequences of specs with branches.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "tests/numerics/harness/rows.hpp"
#include "tests/numerics/harness/sequences.hpp"
#include "tests/numerics/variants/random_variant.hpp"

namespace lacuna::numerics {

bool SequenceCase::has_branches() const {
  return std::ranges::count(branch_sequence_variants(), variant) > 0;
}

bool SequenceCase::has_lse() const {
  if (is_random_name(variant))
    return has_denominator(random_spec(variant)->document.spec.attention.normalise);
  if (variant == "sigmoid") return false;
  return !has_branches() || variant == "merged-branches" || variant == "ordered-merged";
}

bool SequenceCase::has_order() const {
  if (is_random_name(variant))
    return random_spec(variant)->document.spec.permute.order != TokenOrder::kNone;
  return variant.starts_with("ordered-") || variant == "sparge-video";
}

SequenceCase SequenceCase::fitting_order() const {
  SequenceCase fitting = *this;
  for (auto& [n_q, n_k] : fitting.lengths) n_k = has_order() ? n_q : n_k;
  return fitting;
}

Case SequenceCase::of_sequence(std::pair<int, int> lengths, int entry) const {
  Case dense;
  const bool is_known = is_tiled() || has_branches() || is_random_name(variant);
  dense.variant = is_known ? variant : "dense", dense.dtype = dtype,
  dense.batch = {entry, static_cast<int>(this->lengths.size()), most_queries(), most_keys()};
  dense.d = d, dense.d_v = d_v;
  dense.n_b = 1, dense.n_h = n_h, dense.n_h_kv = n_h_kv;
  dense.n_q = lengths.first, dense.n_k = lengths.second, dense.fill = fill;
  return dense;
}

const std::vector<std::string>& branch_sequence_variants() {
  static const std::vector<std::string> names = {
      "merged-branches",  "weighted-branches", "pooled-branches", "differential", "nsa",
      "ordered-branches", "ordered-merged"};
  return names;
}

JoinedVariant joined_sequence(const SequenceCase& c, std::pair<int, int> lengths,
                              std::uint32_t seed) {
  const Case own = c.of_sequence(lengths);
  return make_joined(own, seed, [&](const std::string& name) {
    PredictedBranch branch = predicted_branch(own, name, seed, kParamsSeed);
    if (!branch.wrong.empty()) std::abort();  // of one length it is tested for itself
    return branch;
  });
}

std::vector<ParamValue> SequenceBatch::params_of_branches(int most_q) const {
  std::vector<ParamValue> all = variants.front().params;
  for (std::size_t p = 0; p < all.size(); ++p) {
    std::vector<std::int64_t>& extents = all[p].shape;  // [1, heads, n_q, columns]
    if (extents.size() != 4) continue;
    extents[0] = sequences.count, extents[2] = most_q;
    all[p].values.clear();
    for (const Variant& variant : variants) {
      const ParamValue& own = variant.params[p];
      for (int h = 0; h < shape.n_h; ++h) {
        const auto row = own.values.begin() + h * own.shape[2] * own.shape[3];
        all[p].values.insert(all[p].values.end(), row, row + own.shape[2] * own.shape[3]);
        all[p].values.resize(all[p].values.size() + size_of((most_q - own.shape[2]) * own.shape[3]),
                             std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  return all;
}

}  // namespace lacuna::numerics

#include "tests/numerics/harness/codes/uniform_codes.hpp"

namespace lacuna::numerics {
namespace {

std::vector<std::int64_t> scales_shape(const Case& c, Scales kind) {
  return {kind == Scales::kOfEntriesAndHeads ? c.n_b : 1, kind >= Scales::kOfHeads ? c.n_h_kv : 1};
}

/// Of a tensor [n_b, heads_kv, n_k, d], whose numbers become those of the codes.
Codes encoded(std::vector<double>& numbers, const Case& c, Scales kind, std::mt19937& random) {
  const std::vector<std::int64_t> shape = scales_shape(c, kind);
  Codes codes(numbers.size(), static_cast<int>(shape[0] * shape[1]), random);
  if (kind == Scales::kNone) codes.scales.assign(1, 1.0);
  const std::size_t rows = numbers.size() / static_cast<std::size_t>(c.n_b * c.n_h_kv);
  for (int head = 0; head < c.n_b * c.n_h_kv; ++head) {
    const std::int64_t scale = head / c.n_h_kv % shape[0] * shape[1] + head % c.n_h_kv % shape[1];
    const std::size_t place = static_cast<std::size_t>(head) * rows;
    codes.encode({numbers.data() + place, rows}, c.dtype, place, static_cast<std::size_t>(scale));
  }
  return codes;
}

}  // namespace

UniformCodes::UniformCodes(const Case& c, Scales kind, oracle::Problem& problem)
    : kind_(kind),
      keys_(encoded(problem.k, c, kind, random_)),
      values_(encoded(problem.v, c, kind, random_)) {}

void UniformCodes::bind(Binding& binding, const Case& c) const {
  TensorSet& tensors = binding.tensors;
  const std::vector<std::int64_t> scales = scales_shape(c, kind_);
  const auto upload = [&](const Codes& codes, int width) {
    return tensors.upload_e4m3(codes.codes, {c.n_b, c.n_h_kv, c.n_k, width}, c.token_major);
  };
  binding.k = upload(keys_, c.d), binding.v = upload(values_, c.value_dim());
  binding.args.k = binding.k.view(), binding.args.v = binding.v.view();
  if (kind_ == Scales::kNone) return;
  binding.k_scale = tensors.upload(keys_.scales, DType::kF32, scales, false);
  binding.v_scale = tensors.upload(values_.scales, DType::kF32, scales, false);
  binding.args.k_scale = binding.k_scale.view(), binding.args.v_scale = binding.v_scale.view();
}

}  // namespace lacuna::numerics

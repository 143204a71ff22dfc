#include "runtime/launch/kernel_signature.hpp"

#include <nlohmann/json.hpp>

#include "compiler/ir/names.hpp"
#include "runtime/engine/signature.hpp"
#include "runtime/launch/tensors/tensor_rules.hpp"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

bool is_of_sequences(TensorRole role) {
  return role >= TensorRole::kQBegin && role <= TensorRole::kPages;
}

bool is_of_use(TensorRole role, const LaunchContract& contract) {
  if (is_of_sequences(role)) return is_required(role, contract);
  return refusal(role, contract) == nullptr;
}

/// All tensors that a kernel has a use for, in the order of lacuna_launch_args.
Json arguments_json(const LaunchContract& contract) {
  Json arguments = Json::array();
  for (int n = 0; n < kTensorRoleCount; ++n) {
    const auto role = static_cast<TensorRole>(n);
    if (!is_of_use(role, contract)) continue;
    const TensorRule rule = rule_of(role, contract, {});
    Json shape = Json::array();
    for (int d = 0; d < rule.rank; ++d) shape.push_back(rule.dims[static_cast<std::size_t>(d)]);
    arguments.push_back({{"name", rule.name},
                         {"dtype", dtype_name(rule.dtype)},
                         {"shape", std::move(shape)},
                         {"output", rule.is_output},
                         {"required", is_required(role, contract)}});
  }
  return arguments;
}

}  // namespace

std::string kernel_signature(const KernelState& kernel) {
  const LaunchContract& contract = kernel.planned.contract;
  Json signature = {
      {"spec", contract.kernel},          {"digest", spec_digest(kernel.document.spec)},
      {"head_dim", contract.head_dim},    {"dtype", name_of(contract.dtype)},
      {"batch", name_of(contract.batch)}, {"arguments", arguments_json(contract)}};
  signature.update(signature_json(kernel.planned.plan.program, contract));
  return signature.dump();
}

}  // namespace lacuna

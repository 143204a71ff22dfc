#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <numbers>

#include "runtime/cpu/llvm/attend/attend.hpp"
#include "runtime/cpu/llvm/kernel.hpp"

namespace lacuna::host {
namespace {

Shape choose_shape(const Program& program, const Attend& attend, int width) {
  Shape shape;
  shape.head_dim = program.head_dim;
  shape.head_dim_v = value_dim(program);
  shape.tile_q = attend.tile_q;
  shape.tile_k = attend.tile_k;
  const int registers = host_cpu().registers;
  shape.keys = choose_panels(shape.tile_k, shape.head_dim, width, registers);
  shape.values = choose_panels(shape.head_dim_v, shape.tile_k, width, registers);
  return shape;
}

/// Vectors are no wider than a row of the head dimension.
int choose_width(int head_dim) {
  return std::min(host_cpu().width,
                  static_cast<int>(std::bit_floor(static_cast<unsigned>(head_dim))));
}

/// The functions of `key`, compiled if no kernel has them yet: a second spec of the same shape and
/// type then has only its own formulas to compile. Null: `error` says why. The caller holds the
/// lock of LLVM.
std::shared_ptr<Code> common_code(const CommonKey& key, int width, std::string& error) {
  // Never destroyed: as with the JIT, kernels may be released at any time until the process ends.
  static auto* const alive = new std::map<CommonKey, std::weak_ptr<Code>>;
  if (const auto found = alive->find(key); found != alive->end()) {
    if (auto code = found->second.lock()) return code;
  }
  auto code = std::make_shared<Code>();
  const auto fill = [&](llvm::Module& module) {
    Emitter e(module, width);
    emit_common(e, key);
  };
  if (!generate("attend of d" + std::to_string(key.shape.head_dim), fill, *code, error))
    return nullptr;
  std::erase_if(*alive, [](const auto& entry) { return entry.second.expired(); });
  (*alive)[key] = code;
  return code;
}

void find_own(const Code& code, const Attend& attend, Kernels& functions) {
  code.find("classify", functions.classify);
  if (attend.pairs) code.find("classify_row", functions.classify_row);
  code.find("scores_full", functions.scores_full);
  code.find("scores_partial", functions.scores_partial);
  if (attend.gate) code.find("gate", functions.gate);
  if (!attend.sink.empty()) code.find("sink", functions.sink);
}

void find_common(const Code& code, Kernels& functions) {
  code.find("softmax", functions.softmax);
  code.find("accumulate", functions.accumulate);
  code.find("accumulate_nonzero", functions.accumulate_nonzero);
  code.find("pack_q", functions.pack_q);
  code.find("pack_k", functions.pack_k);
  code.find("pack_v", functions.pack_v);
  code.find("store_o", functions.store_o);
}

}  // namespace

bool compile_kernel(const Program& program, Kernel& kernel, std::string& error) {
  const Attend& attend = attend_of(program);
  if (attend.tile_q == 0) {
    error = program.name +
            ", tile_q and tile_k: expected sizes, got a program whose tiles are still open";
    return false;
  }
  const int width = choose_width(std::min(program.head_dim, value_dim(program)));
  kernel.name = program.name;
  kernel.shape = choose_shape(program, attend, width);
  kernel.dtype = program.dtype;
  kernel.descending = attend.order == TileOrder::kDescending;
  kernel.uses_lists = attend.list_indices >= 0;
  kernel.scale = attend.scale;
  kernel.scales_qk = attend.q_scale >= 0;
  kernel.scales_v = attend.v_scale >= 0;
  kernel.keep_k = attend.columns >= 0 ? attend.keep_k : 0;
  if (attend.lse_base == LseBase::k2) kernel.lse_factor = std::numbers::log2e_v<float>;
  kernel.param_count = program.params.size();
  if (attend.gate)
    kernel.gate = GatePlan{.by_group = attend.gate->scope == GateScope::kWarp,
                           .keeps_sum = !attend.gate->skips_exp};
  const auto fill = [&](llvm::Module& module) {
    Emitter e(module, width);
    emit_own(e, attend, kernel.shape);
  };
  if (!generate(program.name, fill, kernel.own, error)) return false;
  const CommonKey key = {.shape = kernel.shape,
                         .dtype = kernel.dtype,
                         .weights = attend.normalise,
                         .scales_v = kernel.scales_v};
  kernel.common = common_code(key, width, error);
  if (kernel.common == nullptr) return false;
  kernel.ir = std::move(kernel.own.ir) + "\n" + kernel.common->ir;
  find_own(kernel.own, attend, kernel.functions);
  find_common(*kernel.common, kernel.functions);
  return true;
}

}  // namespace lacuna::host

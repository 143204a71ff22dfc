#include "tools/run/mask_classes.hpp"

#include <algorithm>

namespace lacuna::tools {
namespace {

/// Parameters as expressions read them; `values` point into the inputs.
std::vector<ParamView> views_of(const VariantSpec& spec, const Inputs& inputs) {
  std::vector<ParamView> views;
  for (const ParamSpec& param : spec.params) {
    const bool is_i32 = param.symbol.type == ExprType::kI32;
    ParamView& view = views.emplace_back();
    const auto set = [&](double value) {
      if (is_i32)
        view.value.i32 = static_cast<std::int32_t>(value);
      else
        view.value.f32 = static_cast<float>(value);
    };
    set(param.default_value);
    for (const ParamInput& input : inputs.params) {
      if (input.name != param.symbol.name) continue;
      if (!input.tensor) {
        set(input.value);
        continue;
      }
      view.data = input.tensor->bytes.data();
      std::int64_t stride = 1;
      for (std::size_t d = input.tensor->shape.size(); d-- > 0;) {
        view.extent[d] = static_cast<std::int32_t>(input.tensor->shape[d]);
        view.stride[d] = stride;
        stride *= input.tensor->shape[d];
      }
    }
  }
  return views;
}

}  // namespace

MaskClasses::MaskClasses(const SpecDocument& document, const Inputs& inputs, std::int32_t tile_q,
                         std::int32_t tile_k)
    : classifier_(classify_mask(document.spec.attention.mask)),
      views_(views_of(document.spec, inputs)),
      tile_q_(tile_q),
      tile_k_(tile_k),
      n_q_(static_cast<std::int32_t>(inputs.q.shape[2])),
      n_k_(static_cast<std::int32_t>(inputs.k.shape[2])) {
  bindings_.parameters = views_;
  bindings_.set(Variable::kNQ, n_q_);
  bindings_.set(Variable::kNK, n_k_);
  bindings_.set(Variable::kNH, static_cast<std::int32_t>(inputs.q.shape[1]));
}

TileLook MaskClasses::look(std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j,
                           std::uint8_t code) {
  bindings_.set(Variable::kB, b);
  bindings_.set(Variable::kH, h);
  bindings_.set(Variable::kQ0, i * tile_q_);
  bindings_.set(Variable::kQ1, std::min(n_q_, (i + 1) * tile_q_) - 1);
  bindings_.set(Variable::kK0, j * tile_k_);
  bindings_.set(Variable::kK1, std::min(n_k_, (j + 1) * tile_k_) - 1);
  if (code == 2) return TileLook::kGated;
  if (code == 1) return holds(classifier_.must) ? TileLook::kFull : TileLook::kPartial;
  return holds(classifier_.may) ? TileLook::kDropped : TileLook::kInvisible;
}

bool MaskClasses::holds(const Expr& expr) const {
  return expr.empty() || evaluate(expr, bindings_).boolean;
}

}  // namespace lacuna::tools

#include "tools/run/mask_classes.hpp"

#include <algorithm>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/fold.hpp"

namespace lacuna::tools {
namespace {

/// Of tokens in another order a tile knows nothing.
TileClassifier classifier_of(const VariantSpec& spec) {
  const Expr& mask = spec.attention.mask;
  if (spec.permute.order == TokenOrder::kNone ||
      (!uses(mask, Variable::kQ) && !uses(mask, Variable::kK)))
    return classify_mask(mask);
  ExprBuilder builder;
  return {builder.extract(builder.boolean(false), {}), builder.extract(builder.boolean(true), {})};
}

}  // namespace

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

bool looks_causal(const VariantSpec& spec, const Inputs& inputs) {
  constexpr std::int32_t kQueries = 64;
  const std::vector<ParamView> views = views_of(spec, inputs);
  const auto n_b = static_cast<std::int32_t>(inputs.q.shape[0]);
  const auto n_h = static_cast<std::int32_t>(inputs.q.shape[1]);
  const auto n_q = static_cast<std::int32_t>(inputs.q.shape[2]);
  const auto n_k = static_cast<std::int32_t>(inputs.k.shape[2]);
  Bindings bindings;
  bindings.parameters = views;
  bindings.set(Variable::kNQ, n_q);
  bindings.set(Variable::kNK, n_k);
  bindings.set(Variable::kNH, n_h);
  const std::int32_t step = std::max(n_q / kQueries, 1);
  for (std::int32_t head = 0; head < n_b * n_h; ++head)
    for (std::int32_t q = 0; q < n_q; q += step) {
      bindings.set(Variable::kB, head / n_h);
      bindings.set(Variable::kH, head % n_h);
      bindings.set(Variable::kQ, q);
      for (std::int32_t k = std::max(q + n_k - n_q + 1, 0); k < n_k; ++k) {
        bindings.set(Variable::kK, k);
        if (spec.attention.mask.empty() || evaluate(spec.attention.mask, bindings).boolean)
          return false;
      }
    }
  return true;
}

MaskClasses::MaskClasses(const SpecDocument& document, const Inputs& inputs, std::int32_t tile_q,
                         std::int32_t tile_k)
    : classifier_(classifier_of(document.spec)),
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

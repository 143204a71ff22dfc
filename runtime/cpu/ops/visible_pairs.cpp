#include <algorithm>

#include "compiler/expr/text/parse.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna::predict {
namespace {

/// Has tile j of row i a visible pair? Bounds of the mask are asked first, because they often tell;
/// only where they do not, the mask is evaluated for pair after pair. `bindings` know the head.
bool is_seen(const Select& op, const HostArgs& args, int i, int j, Bindings& bindings) {
  bind_bounds(op, args, i, j, bindings);
  if (!holds(op.classifier.may, bindings, true)) return false;
  if (holds(op.classifier.must, bindings, true)) return true;
  return has_visible_pair(op.mask, i * op.tile_q, std::min((i + 1) * op.tile_q, args.n_q) - 1,
                          j * op.tile_k, std::min((j + 1) * op.tile_k, args.n_k) - 1, bindings);
}

}  // namespace

bool has_visible_pair(const Expr& mask, int q0, int q1, int k0, int k1, Bindings& bindings) {
  for (int q = q0; q <= q1; ++q) {
    bindings.set(Variable::kQ, q);
    for (int k = k0; k <= k1; ++k) {
      bindings.set(Variable::kK, k);
      if (evaluate(mask, bindings).boolean) return true;
    }
  }
  return false;
}

Array visible_tiles(const Select& op, const HostArgs& args, std::span<const ParamView> params) {
  const int q_tiles = ceil_div(args.n_q, op.tile_q), k_tiles = ceil_div(args.n_k, op.tile_k);
  Array bits =
      make_array(Element::kU32, uses(op.mask, Variable::kB) ? args.n_b : 1,
                 uses(op.mask, Variable::kH) ? args.n_h : 1, q_tiles, ceil_div(k_tiles, 32));
  const std::int64_t rows = bits.head_count() * q_tiles;
  parallel_for(args.threads, worker_count(args.threads, rows), rows,
               [&](std::int64_t row, std::size_t) {
                 const HeadIndex head = head_at(bits, row / q_tiles);
                 const int i = static_cast<int>(row % q_tiles);
                 Bindings bindings;
                 bind_head(args, params, head, bindings);
                 auto* const words = at<std::uint32_t>(bits, head, i);
                 std::fill_n(words, bits.width(), 0U);
                 for (int j = 0; j < k_tiles; ++j) {
                   if (is_seen(op, args, i, j, bindings)) words[j / 32] |= 1U << (j % 32U);
                 }
               });
  return bits;
}

bool is_visible(const Array& visible, HeadIndex head, int i, int j) {
  const HeadIndex of_mask{visible.batches() > 1 ? head.b : 0, visible.heads() > 1 ? head.h : 0};
  return has_bit(visible, of_mask, i, j);
}

}  // namespace lacuna::predict

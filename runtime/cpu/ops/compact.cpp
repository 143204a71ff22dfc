#include <algorithm>

#include "compiler/expr/evaluate.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna::predict {
Lists compact(const Array& bits, const Compact& op, const HostArgs& args,
              std::span<const ParamView> params) {
  constexpr std::uint32_t kMaskFlag = std::uint32_t{1} << 31U;
  const int q_tiles = ceil_div(args.n_q, op.tile_q), k_tiles = ceil_div(args.n_k, op.tile_k);
  Lists lists{make_array(Element::kI32, args.n_b, args.n_h, q_tiles, k_tiles),
              make_array(Element::kI32, args.n_b, args.n_h, q_tiles)};
  const std::int64_t items = bits.head_count() * q_tiles;
  parallel_for(args.threads, worker_count(args.threads, items), items,
               [&](std::int64_t item, std::size_t) {
                 const HeadIndex head = head_at(bits, item / q_tiles);
                 const int i = static_cast<int>(item % q_tiles);
                 Bindings bindings;
                 bind_head(args, params, head, bindings);
                 const auto* words = at<std::uint32_t>(bits, head, i * op.tile_q / op.keep_q);
                 auto* const list = at<std::int32_t>(lists.indices, head, i);
                 int count = 0;
                 for (int j = 0; j < k_tiles; ++j) {
                   if (!is_kept(words, j * op.tile_k / op.keep_k)) continue;
                   bind_bounds(op, args, i, j, bindings);
                   if (!holds(op.classifier.may, bindings, true)) continue;
                   const bool is_full = holds(op.classifier.must, bindings, true);
                   const std::uint32_t flag = is_full ? 0U : kMaskFlag;
                   list[count++] = static_cast<std::int32_t>(static_cast<std::uint32_t>(j) | flag);
                 }
                 *at<std::int32_t>(lists.counts, head, i) = count;
               });
  return lists;
}

Array spread_rows(const Array& bits, int keep_q, int tile_q, int n_q) {
  const int q_tiles = ceil_div(n_q, tile_q);
  Array result = make_array(Element::kU32, bits.batches(), bits.heads(), q_tiles, bits.width());
  for (std::int64_t item = 0; item < bits.head_count(); ++item) {
    const HeadIndex head = head_at(bits, item);
    for (int i = 0; i < q_tiles; ++i) {
      std::copy_n(at<std::uint32_t>(bits, head, i * tile_q / keep_q), bits.width(),
                  at<std::uint32_t>(result, head, i));
    }
  }
  return result;
}

}  // namespace lacuna::predict

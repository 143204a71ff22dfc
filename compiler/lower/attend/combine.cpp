// combine: the partial results of split work tiles, merged to o and lse.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/lower.hpp"

namespace lacuna {

Kernels lower_combine(const Plan& plan) {
  if (plan.attend.split_kv.value <= 1 || has_sequence_tiles(plan)) return {};
  const Attend& attend = attend_of(plan.program);
  std::vector<ConfigField> config{split_kv_field(plan.attend),
                                  boolean("kWritesLse", attend.lse, "/attention/lse")};
  add_weight_kind(attend, config);
  add_row_end_fields(attend, config);
  const int tokens = kBlockThreads / (value_dim(plan.program) / kCombinedElements);
  return {{.name = "combine",
           .because = "several blocks share a work tile",
           .header = "attend/combine.cuh",
           .function = "combine_shares",
           .config = std::move(config),
           .grid = {blocks_over(Tensor::kQ, tokens),
                    "one for each " + std::to_string(tokens) + " tokens of a head"},
           .threads = block_threads(),
           .smem_bytes = no_smem(),
           .operands = {"partial_o", "partial_lse", "o", "lse"},
           .needs_keys = false}};
}

}  // namespace lacuna

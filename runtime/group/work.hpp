// What each query tile of each head costs: from the mask, or from what the caller counted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "compiler/ir/program.hpp"
#include "runtime/group/layout.hpp"

namespace lacuna::group {

/// Where the work of a spec may be cut between ranks.
struct CutRules {
  std::int32_t unit = 1;        ///< queries: cuts are at multiples of it
  bool reads_tiles = false;     ///< then a share that begins elsewhere would have other tiles
  bool whole_kv_heads = false;  ///< query heads of one KV head decide together
  bool reads_all_keys = false;  ///< kernels before attend do, whatever the mask hides
  std::string no_query_cut;     ///< why a head's queries stay together; "" if they need not
};
CutRules cut_rules(const Program& program);
/// Of a spec with branches: what holds for both of two.
CutRules both(const CutRules& first, const CutRules& second);

/// Pairs of tokens to compute, for `unit` queries of a head.
struct Work {
  std::int32_t heads = 0, units = 0;
  std::vector<double> pairs;  ///< [heads, units]
  double pairs_of_unit = 0;   ///< that take as long as to begin and end a unit
  /// Of each unit: a range with all keys that its queries see, in any head and whatever the
  /// parameters are. Empty: not known.
  std::vector<Range> seen = {};

  double cost(std::int32_t head, std::int32_t unit) const { return at(head, unit) + pairs_of_unit; }
  double at(std::int32_t head, std::int32_t unit) const { return pairs[index(head, unit)]; }
  std::size_t index(std::int32_t head, std::int32_t unit) const {
    return static_cast<std::size_t>(head) * static_cast<std::size_t>(units) +
           static_cast<std::size_t>(unit);
  }
};

/// By the mask, on a grid of at most 256 x 256 cells, of which those that the mask cuts count half.
/// Parameters count with their defaults, since tensors of a device are not read here.
Work work_of_mask(const SpecDocument& document, const LaunchShape& shape, std::int32_t unit);

/// Of `count` sequences, which have the tokens of `shape` together: as if all were equally long.
/// Queries of one head stay together, so where they begin does not matter.
Work work_of_sequences(const SpecDocument& document, const LaunchShape& shape, std::int32_t count,
                       std::int32_t unit);

/// `tiles`: [heads, ceil(n_q / tile_q)] numbers of tiles that were computed before.
Work work_of_tiles(std::span<const float> tiles, const Program& program, const LaunchShape& shape,
                   std::int32_t unit);

}  // namespace lacuna::group

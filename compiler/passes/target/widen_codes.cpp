#include "compiler/passes/target/widen_codes.hpp"

#include <algorithm>

#include "compiler/ir/coded_rows.hpp"
#include "compiler/ir/fields.hpp"

namespace lacuna {
namespace {

/// Does the estimate load the tokens of keys tile by tile, as they are?
bool loads_coded_tiles(const Program& program, const Estimate& estimate) {
  if (estimate.is_given() || estimate.is_indexed()) return false;
  const bool is_pooled = estimate.rows.kind == SummaryKind::kMean;  // reads key by key
  return is_coded(program, estimate.exact_k) || (is_coded(program, estimate.k) && !is_pooled);
}

}  // namespace

bool needs_wide_rows(const Program& program) {
  const Attend& attend = attend_of(program);
  if (is_coded(program, attend.k) != is_coded(program, attend.v)) return true;
  return std::ranges::any_of(program.nodes, [&](const Node& node) {
    const auto* estimate = std::get_if<Estimate>(&node.op);
    return estimate != nullptr && loads_coded_tiles(program, *estimate);
  });
}

Program widen_codes(const Program& program) {
  Program wide = program;
  wide.nodes.clear();
  wide.values.clear();
  std::vector<int> new_id(program.values.size(), -1);
  const auto add_value = [&](const Value& value) {
    wide.values.push_back(value);
    return static_cast<int>(wide.values.size()) - 1;
  };
  for (const Node& node : program.nodes) {
    Node& moved = wide.nodes.emplace_back(node);
    for_each_operand(moved.op, [&](int& id, bool) {
      if (id >= 0) id = new_id[static_cast<std::size_t>(id)];
    });
    for (int& id : moved.results) {
      const auto old = static_cast<std::size_t>(id);
      new_id[old] = id = add_value(program.values[old]);
    }
    const int result = node.results.front();
    if (!is_coded(program, result)) continue;
    const int codes = new_id[static_cast<std::size_t>(result)];
    Value numbers = program.values[static_cast<std::size_t>(result)];
    numbers.name += "_numbers";
    const int made = add_value(numbers);
    wide.nodes.push_back({{made}, Means{codes, 1}});
    new_id[static_cast<std::size_t>(result)] = made;
  }
  return wide;
}

}  // namespace lacuna

// What each branch of a spec reports and keeps, as Python passes it.
#include <nanobind/stl/string.h>

#include <string_view>

#include "launch.hpp"

namespace lacuna_python {

std::size_t branch_count(const nb::dict& named) {
  return named.contains(kBranches) && nb::isinstance<nb::dict>(named[kBranches])
             ? nb::cast<nb::dict>(named[kBranches]).size()
             : 0;
}

lacuna_selection* Launch::selection_of(nb::handle selection, const Target& target) const {
  if (!nb::isinstance<Selection>(selection)) {
    throw nb::type_error(
        "selection: expected a lacuna.Selection, which Kernel.new_selection makes");
  }
  auto& own = nb::cast<Selection&>(selection);
  check_reaches(target.device, own.memory(), "selection");
  return own.raw();
}

void Launch::take_branches(const Target& target) {
  if (!named_.contains(kBranches) || named_[kBranches].is_none()) return;
  const auto refuse = [] {
    refuse_argument(
        "branches: expected a dict of dicts, such as {\"NAME\": {\"counts\": array, \"tile_mask\": "
        "array, \"selection\": selection}}");
  };
  if (!nb::isinstance<nb::dict>(named_[kBranches])) refuse();
  for (const auto [name, given] : nb::cast<nb::dict>(named_[kBranches])) {
    if (!nb::isinstance<nb::dict>(given)) refuse();
    lacuna_branch_args branch{};
    branch.struct_size = sizeof(branch);
    branch.name = text_of(name, "branches").data();
    for (const auto [key, value] : nb::cast<nb::dict>(given)) {
      const std::string_view part = text_of(key, "branches");
      if (value.is_none()) continue;
      if (part == "counts")
        output(value, "counts", true, branch.counts);
      else if (part == "tile_mask")
        output(value, "tile_mask", true, branch.tile_mask);
      else if (part == "selection")
        branch.selection = selection_of(value, target);
      else
        refuse();
    }
    branches_.push_back(branch);
  }
  for (const lacuna_branch_args& branch : branches_) branch_pointers_.push_back(&branch);
  args_.branches = branch_pointers_.data();
  args_.branches_count = branch_pointers_.size();
}

}  // namespace lacuna_python

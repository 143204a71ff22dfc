#include "compiler/spec/read/check_grid.hpp"

#include <algorithm>

#include "compiler/spec/table/field_words.hpp"

namespace lacuna {
namespace {

using Kind = JsonNode::Kind;

/// The numbers in a list or an object, from one of them on.
std::string sides_text(const JsonNode& node, std::size_t first) {
  std::string text;
  for (std::size_t n = first; n < node.children.size(); ++n)
    text += (text.empty() ? "" : ", ") + std::to_string(static_cast<int>(node.children[n].number));
  return "[" + text + "]";
}

/// [T, H, W] of a grid, [t, h, w] of cubes.
void check_sides(JsonNode& node, const SpecField& field, const std::string& label,
                 FieldErrors& errors) {
  const std::string form = node.key == kCubesKey ? "[t, h, w]" : "[T, H, W]";
  if (!node.is(Kind::kArray) || node.children.size() != 3) {
    errors.wrong_type(node, label, "a list of three integers, " + form);
    const auto is_side = [](const JsonNode& side) {
      return side.is(Kind::kInteger) && side.number >= 1;
    };
    const bool has_sides = std::ranges::all_of(node.children, is_side);
    std::vector<Diagnostic>& items = errors.diagnostics.items;
    if (node.is(Kind::kString) && node.string.starts_with('['))
      items.back().helps.push_back("write " + node.string + " without quotes");
    else if (node.is(Kind::kObject) && node.children.size() == 3 && has_sides)
      items.back().helps.push_back("write " + sides_text(node, 0));
    else if (node.is(Kind::kArray) && node.children.size() == 2 && has_sides)
      errors.diagnostics.items.back().helps.push_back(
          "in two dimensions: [1, " + std::to_string(static_cast<int>(node.children[0].number)) +
          ", " + std::to_string(static_cast<int>(node.children[1].number)) + "]");
    return;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    JsonNode& side = node.children[i];
    const std::string side_label = label + "[" + std::to_string(i) + "]";
    if (!side.is(Kind::kInteger)) {
      errors.wrong_type(side, side_label, "an integer");
    } else if (side.number < 1 || side.number > kLongestSide) {
      const int nearest = side.number < 1 ? 1 : kLongestSide;
      errors.illegal(side, field, side_label, "is not in 1.." + std::to_string(kLongestSide))
          .helps.push_back("nearest legal value: " + std::to_string(nearest));
    }
    node.usable = node.usable && side.usable;
  }
}

}  // namespace

std::string grid_help(const JsonNode& node, const SpecField& field) {
  if (!node.is(Kind::kArray) || node.children.size() < 3) return "";
  const bool has_name = node.children[0].is(Kind::kString);
  if (node.children.size() != (has_name ? 4 : 3)) return "";
  const auto is_side = [](const JsonNode& side) { return side.is(Kind::kInteger); };
  if (!std::all_of(node.children.end() - 3, node.children.end(), is_side)) return "";
  std::string grid = has_name ? node.children[0].string : "row_major";
  if (std::ranges::find(field.grids, grid) == field.grids.end()) return "";
  return "write { \"" + grid + "\": " + sides_text(node, has_name ? 1 : 0) + " }";
}

void check_grid(JsonNode& node, const SpecField& field, const std::string& label,
                FieldErrors& errors) {
  int grids = 0;
  bool is_known = true;  // every key; an unknown one may have been meant for a grid
  for (JsonNode& child : node.children) {
    const std::string child_label = label + "." + child.key;
    const bool is_grid = std::ranges::find(field.grids, child.key) != field.grids.end();
    if (child.key == kCommentKey) {
      if (!child.is(Kind::kString)) errors.wrong_type(child, child_label, "a string");
    } else if (is_grid || child.key == kCubesKey) {
      check_sides(child, field, child_label, errors);
      grids += is_grid ? 1 : 0;
    } else {
      std::vector<std::string> keys(field.grids.begin(), field.grids.end());
      keys.emplace_back(kCubesKey);
      errors.unknown_key(child, keys, label);
      is_known = false;
    }
    node.usable = node.usable && child.usable;
  }
  if (grids == 1 || !is_known) return;
  const std::string got = grids == 0 ? "none" : std::to_string(grids);
  errors.report(Code::kOutOfRange, node,
                label + ": expected exactly one of " + joined_names(field.grids) + ", got " + got);
  if (grids == 0 && node.find(kCubesKey) != nullptr)
    errors.diagnostics.items.back().helps.emplace_back(
        "cubes stand beside the grid that they are cut from: \"row_major\": [T, H, W]");
}

}  // namespace lacuna

// A mask may read a tensor with an element for each pair, or for each token in no order. Bounds of
// a tile then do not tell whether one of its pairs is visible; nor do they where the mask compares
// remainders, such as the columns of an image: of neighbourhoods of 13 x 13 in an image of 64 x 64
// they leave all 2048 tiles of 128 x 64, of which 442 have a visible pair. For such masks this pass
// sets `pairs` of attend, selects and estimates: the mask of the pairs is evaluated first, attend
// visits only tiles that have a visible pair, and a predictor counts and ranks no others. On a GPU
// a kernel at the begin of a launch does this, once for all heads and batch entries that have the
// same mask; on the CPU attend does it for each tile before its visit. In a batch of sequences it
// is done for each of them, but for attend by wgmma without lists, whose schedule knows no tiles:
// there bounds are all that there is (passes/target/choose_wgmma.cpp).
//
// A cell of an estimate, or a column whose keys are gathered, is no tile of attend: whether it has
// a visible pair is asked where it is compared.
//
// This costs less than it saves wherever rows have more than a few tiles. A tile without a visible
// pair is evaluated in whole, but neither of its products is computed. A tile of visible pairs
// alone is evaluated in whole, and attend does not read its mask again. Of any other tile the first
// rows show that it has both kinds, and no further rows are evaluated. Where the mask depends on
// the distance of query and key alone, a GPU asks about each distance of a tile, in place of each
// pair.
#include "compiler/expr/bounds/open_reads.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/passes/pass.hpp"

namespace lacuna {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Why tiles are visited by their bounds alone; "" if their pairs may be asked.
std::string objection(const Program& program, const Attend& attend) {
  if (attend.columns >= 0) return "keys are gathered, and each of them is asked";
  if (attend.list_indices >= 0 && find_op<Compact>(program) == nullptr)
    return "the caller's lists say what is visited";
  return "";
}

/// What shares the answers of one mask.
std::string shared_by(const Expr& mask) {
  const bool heads = !uses(mask, Variable::kH), batch = !uses(mask, Variable::kB);
  if (heads && batch) return "once for all heads and batch entries";
  if (heads) return "once for all heads";
  return batch ? "once for all batch entries" : "for each head";
}

}  // namespace

Program ask_pairs(Program program, const PassContext& context) {
  Attend& attend = attend_of(program);
  const std::vector<std::string> names = open_reads(attend.mask);
  const std::string loose = names.empty() ? loose_part(attend.mask) : "";
  if (names.empty() && loose.empty()) return program;
  for (Node& node : program.nodes) {
    if (auto* select = std::get_if<Select>(&node.op)) select->pairs = true;
    if (auto* estimate = std::get_if<Estimate>(&node.op)) estimate->pairs = true;
  }
  const std::string against = objection(program, attend);
  attend.pairs = against.empty();
  context.attend.pairs = {
      attend.pairs, Origin::kDerived,
      attend.pairs
          ? "bounds of a tile " +
                (loose.empty() ? "say nothing of " + listed(names) : "are loose in " + loose) +
                ": its pairs are asked before it is visited, " + shared_by(attend.mask)
          : against};
  return program;
}

}  // namespace lacuna

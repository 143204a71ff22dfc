// Tiles whose mask reads a tensor for each pair, or for tokens in no order: nothing is known of
// them before their pairs are asked. Here attend is told to ask them first, and to visit only tiles
// that have a visible one. A kernel before attend does that once for all heads and batch entries
// that have the same mask; the CPU does it tile by tile.
//
// It always pays where rows are longer than a few tiles: of a tile without a visible pair it saves
// both products, of one that is visible in whole attend need not read the mask again, and of any
// other a few rows show what it is.
#include "compiler/expr/bounds/open_reads.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/names.hpp"
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
  if (program.batch != BatchLayout::kUniform)
    return "a batch of " + std::string(name_of(program.batch)) +
           ": no kernel knows its tiles before attend";
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
  if (names.empty()) return program;
  const std::string against = objection(program, attend);
  attend.pairs = against.empty();
  context.attend.pairs = {attend.pairs, Origin::kDerived,
                          attend.pairs ? "bounds of a tile say nothing of " + listed(names) +
                                             ": its pairs are asked before it is visited, " +
                                             shared_by(attend.mask)
                                       : against};
  return program;
}

}  // namespace lacuna

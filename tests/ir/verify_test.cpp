// Every rule of the verifier, broken once.
#include <functional>

#include "compiler/expr/text/parse.hpp"
#include "tests/ir/programs.hpp"

namespace lacuna {
namespace {

std::string verify(const Program& program) {
  Diagnostics diagnostics;
  verify_program(program, diagnostics);
  for (const Diagnostic& d : diagnostics.items) EXPECT_EQ(d.code, Code::kProgramRule);
  return messages(diagnostics);
}

Expr parse(const char* text, Site site, const Program& program) {
  std::vector<ParamSymbol> symbols;
  for (const ParamSpec& p : program.params) symbols.push_back(p.symbol);
  return parse_expr(text, site, symbols).expr;
}

TEST(Verifier, AcceptsASoundProgram) { EXPECT_EQ(verify(must_parse(kGatedText)), ""); }

struct Violation {
  const char* name;
  const char* message;
  std::function<void(Program&)> cause;
};

class Rule : public testing::TestWithParam<Violation> {};

TEST_P(Rule, IsTheDiagnostic) {
  Program program = must_parse(kGatedText);
  GetParam().cause(program);
  EXPECT_EQ(verify(program), std::string(GetParam().message) + "\n");
}

const Violation kStructure[] = {
    {"ProgramName", "program @a b: a program's name consists of letters, digits, '_', '-' and '.'",
     [](Program& p) { p.name = "a b"; }},
    {"HeadDim", "program @gated: head_dim is a multiple of 8 between 8 and 576",
     [](Program& p) { p.head_dim = 20; }},
    {"HeadDimV",
     "program @gated: head_dim_v, where it is not head_dim, is a multiple of 8 between 8 and 576, "
     "too",
     [](Program& p) { p.head_dim_v = 20; }},
    {"ParameterNames", "program @gated: parameters have names, all different",
     [](Program& p) { p.params[1].symbol.name = "threshold"; }},
    {"ParameterRange", "program @gated: a parameter's range is not empty and holds its default",
     [](Program& p) { p.params[0].minimum = 0; }},
    {"ValueNames", "program @gated: values have names, all different",
     [](Program& p) { p.values[1].name = "q"; }},
    {"ValueOrder", "program @gated: values are numbered in the order in which ops define them",
     [](Program& p) { std::swap(p.nodes[3].results[0], p.nodes[3].results[1]); }},
    {"OperandDefined", "program @gated: an op reads only values that ops above it define",
     [](Program& p) { attend_of(p).q = 3; }},
    {"OneAttend", "program @gated: a program has exactly one attend",
     [](Program& p) {
       p.nodes.pop_back();
       p.values.resize(3);
     }},
    {"InputOnce", "program @gated: each tensor is an input once",
     [](Program& p) { std::get<Input>(p.nodes[2].op).name = "k"; }},
};
INSTANTIATE_TEST_SUITE_P(Structure, Rule, testing::ValuesIn(kStructure),
                         [](const auto& violation) { return violation.param.name; });

const Violation kOps[] = {
    {"InputName",
     "input %q: inputs are q, k, v, list_indices, list_counts, order and previous_lse\n"
     "input %q: an input defines one value, whose type follows from the input's name\n"
     "attend %o: q and k come from the inputs of these names: as they are, permuted, or both "
     "quantised with 8 bits in groups of attend's tiles",
     [](Program& p) { std::get<Input>(p.nodes[0].op).name = "bias"; }},
    {"InputType", "input %q: an input defines one value, whose type follows from the input's name",
     [](Program& p) { p.values[0].type.element = Element::kF16; }},
    {"Operands",
     "attend %o: v comes from the input of this name: as it is, permuted, or in e4m3 with its "
     "scale",
     [](Program& p) { attend_of(p).v = 1; }},
    {"Lists",
     "attend %o: list_indices and list_counts come together, from the inputs of these names or "
     "from a compact",
     [](Program& p) { attend_of(p).list_counts = 2; }},
    {"Results",
     "attend %o: attend defines o, of q's type, and with lse a second value [batch, heads, n_q] "
     "f32",
     [](Program& p) { attend_of(p).lse = false; }},
    {"MaskType", "attend %o: mask yields bool, score and sink f32",
     [](Program& p) { attend_of(p).mask = attend_of(p).score; }},
    {"SinkType", "attend %o: mask yields bool, score and sink f32",
     [](Program& p) { attend_of(p).sink = attend_of(p).mask; }},
    {"BaseOfNoLse", "attend %o: without lse there is no base of it",
     [](Program& p) {
       attend_of(p).lse = false;
       attend_of(p).lse_base = LseBase::k2;
       p.nodes.back().results.pop_back();
       p.values.pop_back();
     }},
    {"Sigmoid",
     "attend %o: only a softmax has a denominator: else no lse, sink or gate, and 16-bit values",
     [](Program& p) { attend_of(p).normalise = Weights::kSigmoid; }},
    {"ScoresAsWeights",
     "attend %o: only a softmax has a denominator: else no lse, sink or gate, and 16-bit values",
     [](Program& p) { attend_of(p).normalise = Weights::kNone; }},
    {"GatedSigmoid",
     "attend %o: only a softmax has a denominator: else no lse, sink or gate, and 16-bit values",
     [](Program& p) {
       attend_of(p).normalise = Weights::kSigmoid;
       attend_of(p).lse = false;
       p.nodes.back().results.pop_back();
       p.values.pop_back();
     }},
    {"GateSkip", "attend %o: a gate has a skip; skip and exempt yield bool",
     [](Program& p) { attend_of(p).gate->skip = {}; }},
    {"Parameters", "attend %o: expressions know the program's parameters, in its order",
     [](Program& p) { p.params[0].symbol.shape.pop_back(); }},
    {"Scale", "attend %o: scale is a positive finite number",
     [](Program& p) { attend_of(p).scale = 0; }},
    {"Tiles", "attend %o: tile_q and tile_k are multiples of 16 up to 1024, or both still open",
     [](Program& p) { attend_of(p).tile_k = 24; }},
    {"GateSkipsNothing", "attend %o: a gate skips something: v_load, exp or pv",
     [](Program& p) { attend_of(p).gate->skips_exp = attend_of(p).gate->skips_pv = false; }},
    {"GateSkipsExpAlone",
     "attend %o: a gate that skips exp or v_load also skips pv: without P or V there is no product",
     [](Program& p) { attend_of(p).gate->skips_pv = false; }},
    {"WarpGateSkipsVLoad",
     "attend %o: a gate that skips v_load has scope tile: all warps of a block share one copy of V",
     [](Program& p) { attend_of(p).gate->skips_v_load = true; }},
};
INSTANTIATE_TEST_SUITE_P(Ops, Rule, testing::ValuesIn(kOps),
                         [](const auto& violation) { return violation.param.name; });

TEST(Verifier, ReportsAllBrokenRulesOfALevel) {
  Program program = must_parse(kGatedText);
  attend_of(program).scale = -1;
  attend_of(program).tile_q = 8;
  attend_of(program).score = parse("k <= q", Site::kMask, program);
  EXPECT_EQ(verify(program),
            "attend %o: mask yields bool, score and sink f32\n"
            "attend %o: scale is a positive finite number\n"
            "attend %o: tile_q and tile_k are multiples of 16 up to 1024, or both still open\n");
}

}  // namespace
}  // namespace lacuna

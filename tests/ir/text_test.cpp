// The text of a program: round trips, and what a bad text is told.
#include <random>

#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/names.hpp"
#include "compiler/spec/declared_ranges.hpp"
#include "tests/ir/programs.hpp"

namespace lacuna {
namespace {

std::string errors_of(const std::string& text) {
  Diagnostics diagnostics;
  const SourceText source{"x.ir", text};
  (void)parse_program(source, diagnostics);
  return render(diagnostics, source);
}

std::string with_line(const std::string& line) {
  return "program @x(head_dim=64, dtype=f16) {\n" + line + "\n}\n";
}

TEST(ProgramText, PrintsWhatItParsed) {
  for (const char* text : {kGatedText, kPredictedText, kGatheredText})
    EXPECT_EQ(print_program(must_parse(text)), text);
}

TEST(ProgramText, ParsesIntoTheFieldsOfTheOp) {
  const Program program = must_parse(kGatedText);
  ASSERT_EQ(program.params.size(), 2u);
  EXPECT_EQ(program.params[0].default_value, -std::numeric_limits<double>::infinity());
  EXPECT_FALSE(program.params[1].has_default);
  EXPECT_TRUE(program.params[1].symbol.monotone);
  const Attend& attend = attend_of(program);
  EXPECT_EQ(attend.q, 0);
  EXPECT_EQ(attend.list_indices, -1);
  EXPECT_EQ(attend.scale, 0.08838835f);
  EXPECT_EQ(attend.order, TileOrder::kDescending);
  ASSERT_TRUE(attend.gate.has_value());
  EXPECT_EQ(attend.gate->scope, GateScope::kWarp);
  EXPECT_FALSE(attend.gate->skips_v_load);
  EXPECT_TRUE(attend.gate->skips_exp);
  EXPECT_FALSE(attend.classifier.may.empty()) << "the classifier follows from the mask";
}

TEST(ProgramText, DerivesTheClassifiersOfEveryOp) {
  const Program program = must_parse(kPredictedText);
  const auto causal = find_op<Select>(program)->classifier;
  EXPECT_EQ(print_expr(causal.may), "q0 - k1 < 4096");
  EXPECT_EQ(print_expr(find_op<Estimate>(program)->classifier.may), print_expr(causal.may));
  EXPECT_EQ(print_expr(find_op<Compact>(program)->classifier.must), print_expr(causal.must));
  EXPECT_EQ(print_expr(find_op<Estimate>(program)->reference_classifier.may),
            "k0 < 32 or q0 - k1 < 128");
}

TEST(ProgramText, ReadsSummariesWithTheirCounts) {
  const auto estimate = [](const std::string& kinds) {
    std::string text = kGatheredText;
    const std::string from = "%q_summary, %k, columns=tokens";
    text.replace(text.find(from), from.size(), "%q, %k" + kinds);
    const Program program = must_parse(text);
    EXPECT_EQ(must_parse(print_program(program)), program);
    return *find_op<Estimate>(program);
  };
  EXPECT_EQ(estimate("").rows, (Summary{SummaryKind::kMean, 1}));
  EXPECT_EQ(estimate(", rows=last(64), columns=tokens").rows, (Summary{SummaryKind::kLast, 64}));
  EXPECT_EQ(estimate(", rows=antidiagonal(8), columns=antidiagonal(8)").columns,
            (Summary{SummaryKind::kAntidiagonal, 8}));
}

TEST(ProgramText, LeavesOutDefaultsAndTakesComments) {
  const std::string text = "program @x(head_dim=64, dtype=f16) {  # head\n\n# a comment\n}\n";
  EXPECT_EQ(print_program(must_parse(text)), "program @x(head_dim=64, dtype=f16) {\n}\n");
}

/// A random program that the text form can hold.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {}

  Program make() {
    Program program;
    program.name = pick<std::string>({"a", "skip-softmax", "v1.2_x"});
    program.head_dim = pick({64, 96, 128, 256});
    program.dtype = pick({DType::kBF16, DType::kF16, DType::kF32});
    program.batch = pick({BatchLayout::kUniform, BatchLayout::kSequences, BatchLayout::kPages});
    program.kv = pick({KvFormat::kSame, KvFormat::kE4M3});
    program.params = make_params();
    std::vector<ParamSymbol> symbols;
    for (const ParamSpec& p : program.params) symbols.push_back(p.symbol);
    const bool lists = coin();
    for (const char* name : {"q", "k", "v", "list_indices", "list_counts"}) {
      if (name[0] == 'l' && !lists) continue;
      program.nodes.push_back({{add_value(program, name)}, Input{name, ""}});
    }
    Attend attend = make_attend(symbols);
    attend.list_indices = lists ? 3 : -1;
    attend.list_counts = lists ? 4 : -1;
    Node node{{add_value(program, "o")}, attend};
    if (attend.lse) node.results.push_back(add_value(program, "lse"));
    program.nodes.push_back(node);
    return program;
  }

 private:
  bool coin() { return random_() % 2 == 0; }
  template <class T>
  T pick(std::initializer_list<T> items) {
    return *(items.begin() + random_() % items.size());
  }

  std::vector<ParamSpec> make_params() {
    std::vector<ParamSpec> params;
    ParamSpec tau{{"tau", ExprType::kF32, {}, false}, 0, 1, 0.1, true, "", ""};
    if (coin()) tau.symbol.shape = {ParamAxis::kHeads};
    tau.default_value = std::uniform_real_distribution<double>(0, 1)(random_);
    tau.has_default = coin();
    params.push_back(tau);
    params.push_back({{"start", ExprType::kI32, {ParamAxis::kBatch, ParamAxis::kNQ}, coin()},
                      -std::numeric_limits<double>::infinity(),
                      7,
                      0,
                      false,
                      "",
                      ""});
    for (ParamSpec& param : params) note_declared_range(param);
    return params;
  }

  int add_value(Program& program, std::string name) {
    ValueType type{kAll<Element>[random_() % kAll<Element>.size()], {}};
    for (Dim d : kAll<Dim>) {
      if (coin()) type.shape.push_back(d);
    }
    program.values.push_back({std::move(name), std::move(type)});
    return static_cast<int>(program.values.size()) - 1;
  }

  Expr formula(std::initializer_list<const char*> texts, Site site,
               const std::vector<ParamSymbol>& symbols) {
    const char* text = pick(texts);
    if (text == nullptr) return {};
    ParsedExpr parsed = parse_expr(text, site, symbols);
    EXPECT_TRUE(parsed.ok()) << text;
    return parsed.expr;
  }

  Attend make_attend(const std::vector<ParamSymbol>& symbols) {
    Attend attend;
    attend.q = 0, attend.k = 1, attend.v = 2;
    attend.mask = formula({nullptr, "k <= q", "k >= start[q] and not (h == 3 or q - k > 7 // 2)"},
                          Site::kMask, symbols);
    attend.score = formula({nullptr, "s * 2.0", "30.0 * tanh(s / 30.0)", "s - tau * abs(q - k)"},
                           Site::kScore, symbols);
    if (coin()) {
      attend.gate = Gate{pick({GateScope::kWarp, GateScope::kTile}),
                         formula({"gap < log(tau / n_k)", "tile_max < -inf"}, Site::kGate, symbols),
                         formula({nullptr, "k1 >= q0"}, Site::kGate, symbols),
                         coin(),
                         coin(),
                         coin()};
    }
    attend.scale = std::uniform_real_distribution<float>(1e-4f, 10)(random_);
    attend.tile_q = pick({0, 16, 128});
    attend.tile_k = pick({0, 16, 64});
    attend.order = pick({TileOrder::kAscending, TileOrder::kDescending});
    attend.sink = formula({nullptr, "tau", "tau - h * 0.5"}, Site::kSink, symbols);
    attend.lse = coin();
    attend.lse_base = pick({LseBase::kE, LseBase::k2});
    return attend;
  }

  std::mt19937 random_;
};

TEST(ProgramText, RoundTripsRandomPrograms) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Program program = RandomProgram(seed).make();
    const std::string text = print_program(program);
    const Program again = must_parse(text);
    ASSERT_EQ(again, program) << text;
    ASSERT_EQ(print_program(again), text);
    ASSERT_EQ(hash_program(again), hash_program(program));
  }
}

TEST(ProgramText, DifferentProgramsDifferInHashAndEquality) {
  const Program base = must_parse(kGatedText);
  const auto differs = [&](auto change) {
    Program other = base;
    change(other);
    return !(other == base) && hash_program(other) != hash_program(base);
  };
  EXPECT_TRUE(differs([](Program& p) { p.head_dim = 64; }));
  EXPECT_TRUE(differs([](Program& p) { p.params[0].minimum = 0; }));
  EXPECT_TRUE(differs([](Program& p) { p.params[0].has_default = false; }));
  EXPECT_TRUE(differs([](Program& p) { attend_of(p).gate->skips_exp = false; }));
  EXPECT_TRUE(differs([](Program& p) { attend_of(p).gate->exempt = {}; }));
  EXPECT_TRUE(differs([](Program& p) { attend_of(p).scale = 0.0883884f; }));
  EXPECT_TRUE(differs([](Program& p) { attend_of(p).order = TileOrder::kAscending; }));
  EXPECT_TRUE(differs([](Program& p) { attend_of(p).v = 1; }));
  Program reworded = base;
  reworded.params[0].doc = "words for readers";
  EXPECT_EQ(reworded, base);
}

TEST(ProgramTextErrors, NamePlaceExpectedAndGot) {
  EXPECT_EQ(
      errors_of("program x"),
      "x.ir:1:9: error: expected '@', got 'x' [E0401]\n"
      "program x\n"
      "        ^\n"
      "x.ir:1:10: error: expected '}' at the end of the program, got the end of the line [E0401]\n"
      "program x\n"
      "         ^\n");
  EXPECT_EQ(errors_of(with_line("  %q = inpt name=\"q\" : [d] f16")),
            "x.ir:2:8: error: there is no op 'inpt' [E0401]\n"
            "  %q = inpt name=\"q\" : [d] f16\n"
            "       ^~~~\n");
  EXPECT_EQ(errors_of(with_line("  %q = input nam=\"q\" : [d] f16")),
            "x.ir:2:14: error: there is no field 'nam' [E0401]\n"
            "  %q = input nam=\"q\" : [d] f16\n"
            "             ^~~\n"
            "help: did you mean 'name'?\n");
  EXPECT_EQ(errors_of(with_line("  %q = input name=\"q\" : [depth] f16")),
            "x.ir:2:26: error: expected one of batch, heads, heads_kv, n_q, n_k, d, q_tiles, "
            "k_tiles, capacity, keep_q_tiles, keep_k_tiles, keep_words, q_cells, k_cells, "
            "q_groups, k_groups, bounds, n_tokens, n_queries, got "
            "'depth' [E0401]\n"
            "  %q = input name=\"q\" : [depth] f16\n"
            "                         ^~~~~\n");
  EXPECT_EQ(errors_of(with_line("  %q = input name=\"q : [d] f16")),
            "x.ir:2:19: error: the string has no closing '\"' [E0401]\n"
            "  %q = input name=\"q : [d] f16\n"
            "                  ^~~~~~~~~~~~\n");
  // A text may end anywhere, also between a backslash and what it stands before.
  EXPECT_TRUE(errors_of("program @x(head_dim=64, dtype=f16) {\n  %q = input name=\"q\\")
                  .starts_with("x.ir:2:19: error: the string has no closing '\"' [E0401]\n"
                               "  %q = input name=\"q\\\n"
                               "                  ^~~\n"));
}

TEST(ProgramTextErrors, KnowsTheSummaries) {
  for (const char* kind : {"median", "last", "last(0)", "antidiagonal(3)", "mean(3)"}) {
    std::string text = kGatheredText;
    text.replace(text.find("columns=tokens"), 14, "columns=" + std::string(kind));
    Diagnostics diagnostics;
    (void)parse_program({"x.ir", text}, diagnostics);
    EXPECT_TRUE(
        messages(diagnostics)
            .starts_with("expected mean, mean(n), tokens, antidiagonal(n), last(n), min_max or "
                         "stride(n), got '" +
                         std::string(kind) + "'\n"))
        << messages(diagnostics);
  }
}

TEST(ProgramTextErrors, UndefinedValueSuggestsANeighbour) {
  EXPECT_EQ(errors_of(with_line("  %query = input name=\"q\" : [d] f16\n"
                                "  %o = attend %qery, %query, %query : [d] f16")),
            "x.ir:3:15: error: %qery is not defined above [E0401]\n"
            "  %o = attend %qery, %query, %query : [d] f16\n"
            "              ^~~~~\n"
            "help: did you mean %query?\n");
}

TEST(ProgramTextErrors, ReportsEveryBadLineOnce) {
  Diagnostics diagnostics;
  (void)parse_program({"x.ir",
                       "program @x(head_dim=many, dtype=f16) {\n"
                       "  param a : f64\n"
                       "  %q = input name= : [d] f16\n"
                       "} }\n"},
                      diagnostics);
  EXPECT_EQ(messages(diagnostics),
            "expected an integer, got 'many'\n"
            "expected one of f32, i32, got 'f64'\n"
            "expected a quoted string, got ':'\n"
            "expected the end of the line, got '}'\n");
}

TEST(ProgramTextErrors, FormulaErrorsPointIntoTheFormula) {
  Diagnostics diagnostics;
  (void)parse_program({"x.ir", with_line("  %q = input name=\"q\" : [d] f16\n"
                                         "  %o = attend %q, %q, %q, mask=\"k <= qq\" : [d] f16")},
                      diagnostics);
  ASSERT_EQ(diagnostics.items.size(), 1u);
  EXPECT_EQ(diagnostics.items[0].code, Code::kExprUnknownName);
  EXPECT_EQ(diagnostics.items[0].span, (Span{3, 38, 2}));
}

}  // namespace
}  // namespace lacuna

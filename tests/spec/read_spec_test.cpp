// Reading specs: values, defaults, places, rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/spec/spec.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/fields.hpp"
#include "tests/spec/spec_text.hpp"

namespace lacuna {
namespace {

using test::kEverything, test::read, test::read_members;

std::string messages(const std::string& members) {
  Diagnostics diagnostics;
  read_spec({"x.json", R"({"version": 1, "name": "x", )" + members + "}"}, diagnostics);
  std::string out;
  for (const Diagnostic& d : diagnostics.items) out += d.message + "\n";
  return out;
}

TEST(ReadSpec, ShortestSpecHasDefaults) {
  const VariantSpec spec = read(R"({"version": 1, "name": "dense"})").spec;
  EXPECT_EQ(spec.name, "dense");
  EXPECT_TRUE(spec.attention.mask.empty());
  EXPECT_TRUE(spec.attention.score.empty());
  EXPECT_FALSE(spec.attention.scale.has_value());
  EXPECT_TRUE(spec.attention.head_dim.is_auto());
  EXPECT_TRUE(spec.attention.sink.empty());
  EXPECT_TRUE(spec.attention.lse);
  EXPECT_EQ(spec.attention.lse_base, LseBase::kE);
  EXPECT_TRUE(spec.params.empty());
  EXPECT_EQ(spec.permute, PermuteSpec{});
  EXPECT_FALSE(spec.predictor.has_value());
  EXPECT_FALSE(spec.gate.has_value());
  EXPECT_EQ(spec.quantise, QuantiseSpec{});
  EXPECT_FALSE(spec.external_mask);
  EXPECT_TRUE(spec.tile.q.is_auto());
  EXPECT_TRUE(spec.loader.is_auto());
}

TEST(ReadSpec, FillsEveryField) {
  Diagnostics diagnostics;
  const VariantSpec spec = read_spec({"x", kEverything}, diagnostics).spec;
  EXPECT_EQ(spec.name, "every-thing_2");
  EXPECT_EQ(spec.doc, "D");
  EXPECT_EQ(spec.source, "S");
  EXPECT_EQ(spec.attention.mask.text, "k <= q");
  EXPECT_FALSE(spec.attention.score.empty());
  EXPECT_EQ(spec.attention.scale, 0.1F);
  EXPECT_EQ(spec.attention.head_dim.values, (std::vector{64, 128}));
  EXPECT_EQ(spec.attention.dtype.values, std::vector{DType::kF16});
  EXPECT_EQ(spec.attention.sink.text, "a - h");
  EXPECT_FALSE(spec.attention.lse);
  EXPECT_EQ(spec.attention.lse_base, LseBase::k2);
  ASSERT_EQ(spec.params.size(), 2U);
  const ParamSpec& z = spec.params[0];  // in file order
  EXPECT_EQ(z.symbol,
            (ParamSymbol{"z", ExprType::kI32, {ParamAxis::kBatch, ParamAxis::kNQ}, true, 0}));
  EXPECT_EQ(z.minimum, 0);
  EXPECT_TRUE(std::isinf(z.maximum));
  EXPECT_EQ(z.default_value, 3);
  EXPECT_TRUE(z.has_default);
  EXPECT_EQ(z.doc, "Z");
  EXPECT_EQ(z.unit, "tokens");
  const ParamSpec& a = spec.params[1];
  EXPECT_EQ(a.symbol, (ParamSymbol{"a", ExprType::kF32, {}, false, INT32_MIN, 2}));
  EXPECT_EQ(a.minimum, -INFINITY);
  EXPECT_EQ(a.maximum, 2.5);
  EXPECT_FALSE(a.has_default);
  EXPECT_EQ(spec.permute, (PermuteSpec{TokenOrder::kHilbert, 2, 3, 5}));
  EXPECT_EQ(spec.quantise, (QuantiseSpec{8, QuantGroup::kThread, 8, 2.25F}));
  ASSERT_TRUE(spec.gate);
  EXPECT_EQ(spec.gate->scope, GateScope::kWarp);
  EXPECT_FALSE(spec.gate->skip.empty());
  EXPECT_TRUE(!spec.gate->skips_v_load && spec.gate->skips_exp && spec.gate->skips_pv);
  EXPECT_TRUE(spec.external_mask);
  EXPECT_EQ(spec.tile.q.values, (std::vector{64, 128}));
  EXPECT_EQ(spec.tile.k.values, std::vector{64});
  EXPECT_TRUE(spec.tile.stages.is_auto());
  EXPECT_EQ(spec.tile.warps.values, (std::vector{4, 8}));
  EXPECT_EQ(spec.tile.order.values, std::vector{TileOrder::kDescending});
  EXPECT_EQ(spec.tile.split_kv.values, (std::vector{4, 1}));
  EXPECT_EQ(spec.tile.queries.values,
            (std::vector{QueryPlace::kSharedMemory, QueryPlace::kRegisters}));
  EXPECT_EQ(spec.loader.values, std::vector{Loader::kCpAsync});
}

TEST(ReadSpec, FillsEveryFieldOfThePredictor) {
  Diagnostics diagnostics;
  const VariantSpec spec = read_spec({"x", kEverything}, diagnostics).spec;
  ASSERT_TRUE(spec.predictor);
  const PredictorSpec& predictor = *spec.predictor;
  EXPECT_EQ(predictor.tile_q, 64);
  EXPECT_EQ(predictor.tile_k, 32);
  EXPECT_TRUE(predictor.smooth_q && predictor.smooth_k);
  EXPECT_EQ(predictor.similarity, SimilarityForm::kGramMax);
  EXPECT_EQ(predictor.keep.text, "p > a or similar_k < 0");
  EXPECT_EQ(predictor.reuse, 3);
  EXPECT_TRUE(predictor.shared_heads);
  ASSERT_TRUE(predictor.estimate);
  const EstimateSpec& estimate = *predictor.estimate;
  EXPECT_EQ(estimate.q, (Summary{SummaryKind::kTokens, 1}));
  EXPECT_EQ(estimate.k, (Summary{SummaryKind::kTokens, 1}));
  EXPECT_EQ(estimate.bits, 4);
  EXPECT_EQ(estimate.group, QuantGroup::kWarp);
  EXPECT_EQ(estimate.reduce, Reduce::kSum);
  EXPECT_EQ(estimate.normalise, Normalise::kLse);
  EXPECT_EQ(estimate.reference.text, "early");
  EXPECT_EQ(print_expr(estimate.reference), "k < 8");
  ASSERT_EQ(spec.let.size(), 1U);
  EXPECT_EQ(spec.let[0].name, "early");
  EXPECT_EQ(estimate.exclude.text, "similar_q < a");
}

TEST(ReadSpec, ShortestPredictorHasDefaults) {
  const VariantSpec spec = read_members(R"("predictor": {"keep": "p > 0.5", "estimate": {}})");
  ASSERT_TRUE(spec.predictor && spec.predictor->estimate);
  EXPECT_EQ(spec.predictor->tile_q, 128);
  EXPECT_EQ(spec.predictor->tile_k, 64);
  EXPECT_FALSE(spec.predictor->smooth_q || spec.predictor->smooth_k);
  EXPECT_EQ(spec.predictor->reuse, 1);
  EXPECT_FALSE(spec.predictor->shared_heads);
  EXPECT_EQ(*spec.predictor->estimate, EstimateSpec{});
}

TEST(ReadSpec, IndexComparesTokens) {
  const VariantSpec spec = read_members(
      R"("predictor": {"keep": "p > 0.5", "estimate": {"index": {"heads": 2, "q": "q * index_d * 1.0", "k": "k * 1.0"}}})");
  ASSERT_TRUE(spec.predictor && spec.predictor->estimate && spec.predictor->estimate->index);
  const EstimateSpec& estimate = *spec.predictor->estimate;
  EXPECT_EQ(estimate.index->heads, 2);
  EXPECT_EQ(estimate.index->dim, 64);
  EXPECT_EQ(estimate.index->q.text, "q * index_d * 1.0");
  EXPECT_EQ(estimate.index->k.text, "k * 1.0");
  EXPECT_TRUE(estimate.index->weight.empty());
  EXPECT_EQ(estimate.q, (Summary{SummaryKind::kTokens, 1}));
  EXPECT_EQ(estimate.k, (Summary{SummaryKind::kTokens, 1}));
  Diagnostics diagnostics;
  EXPECT_EQ(read_spec({"x", print_spec(spec)}, diagnostics).spec, spec);
  EXPECT_FALSE(diagnostics.has_errors());
}

TEST(ReadSpec, ReferenceAloneImpliesLse) {
  const char* kReference = R"("q": "tokens", "k": "tokens", "reference": "k < 32")";
  const std::string rest = R"("predictor": {"keep": "p > 0.5", "estimate": {)";
  EXPECT_EQ(read_members(rest + kReference + "}}").predictor->estimate->normalise, Normalise::kLse);
  EXPECT_EQ(messages(rest + kReference + R"(, "normalise": "softmax"}})"),
            "predictor.estimate.reference needs normalise \"lse\", not \"softmax\"\n");
}

TEST(ReadSpec, PermutesByNameOrGrid) {
  EXPECT_EQ(read_members(R"("permute": "none")").permute, PermuteSpec{});
  EXPECT_EQ(read_members(R"("permute": "external")").permute.order, TokenOrder::kExternal);
  EXPECT_EQ(read_members(R"("permute": {"time_major": [1, 2, 3]})").permute,
            (PermuteSpec{TokenOrder::kTimeMajor, 1, 2, 3}));
}

TEST(ReadSpec, KeyColumnsMayBeNarrow) {
  for (const int keys : {1, 8, 16, 32, 256}) {
    const std::string tile = R"("tile": {"k": )" + std::to_string(keys) + "}";
    EXPECT_EQ(read_members(R"("predictor": {"keep": "j < 3", )" + tile + "}").predictor->tile_k,
              keys);
  }
}

TEST(ReadSpec, AnyLegalLoaderMakesAListLegal) {
  read_members(R"("loader": ["cp_async", "gather"])");
  read_members(
      R"("predictor": {"keep": "j < 3", "tile": {"k": 1}}, "loader": ["cp_async", "gather"])");
  read_members(R"("predictor": {"keep": "j < 3", "tile": {"k": 16}}, "loader": "gather")");
}

TEST(ReadSpec, GateAndQuantisationGoWithAPredictor) {
  read_members(R"("predictor": {"keep": "j < 3"}, "gate": {"skip": "gap < -9", "skips": ["pv"]},
                  "quantise": {"qk": {"bits": 8, "group": "thread"}, "v": {"bits": 8, "range": 2.25}})");
}

TEST(ReadSpec, PredictorMayReadPermutedPlaces) {
  read_members(R"("permute": "external", "predictor": {"keep": "k0 < 128 or q0 - k1 < 128"})");
}

TEST(ReadSpec, MistakeInOneFieldDrawsNoSecondError) {
  EXPECT_EQ(messages(R"("predictor": {"keep": "p > 0", "estimate": 3})"),
            "predictor.estimate: expected an object, got 3\n");
  EXPECT_EQ(messages(R"("predictor": {"keep": "j < 3", "tile": {"k": 2}}, "loader": "gather")"),
            "predictor.tile.k = 2 is not one of 1, 8 or 16 to 256 in steps of 16\n");
}

TEST(ReadSpec, ExpressionsSeeParamsDeclaredLater) {
  const VariantSpec spec =
      read_members(R"("attention": {"score": "s * a"}, "params": {"a": {"default": 1}})");
  EXPECT_EQ(spec.attention.score.parameters.size(), 1U);
}

TEST(ReadSpec, KnowsThePlaceOfEveryValue) {
  const SpecDocument document = read("{\"version\": 1, \"name\": \"x\",\n \"tile\": {\"q\": 64}}");
  EXPECT_EQ(document.spans.at("/tile/q"), (Span{2, 16, 2}));
  EXPECT_EQ(document.spans.at("/name"), (Span{1, 24, 3}));
  EXPECT_EQ(document.source.path, "x.json");
}

TEST(ReadSpec, AnyLegalTilePairMakesListsLegal) {
  read_members(R"("tile": {"q": [48, 64, 128], "warps": [2, 4]})");
  EXPECT_EQ(messages(R"("tile": {"q": [48, 128], "warps": [2, 4]})"),
            "tile.q = 48, 128 does not go with tile.warps = 2, 4\n");
}

TEST(ReadSpec, GateAcceptsTheFourUsefulSkips) {
  for (const char* skips :
       {R"(["pv"])", R"(["exp", "pv"])", R"(["v_load", "pv"])", R"(["v_load", "exp", "pv"])"})
    read_members(std::string(R"("gate": {"skip": "gap < -9", "skips": )") + skips + "}");
}

TEST(ReadSpec, ExternalMaskGoesWithAGate) {
  read_members(R"("mask": "external", "gate": {"skip": "gap < -9", "skips": ["pv"]})");
}

TEST(ReadSpec, BadDeclarationDrawsNoSecondError) {
  EXPECT_EQ(messages(R"("attention": {"mask": "k >= start[q]"},
                        "params": {"start": {"type": "i32", "shape": "[n_qq]"}})"),
            "params.start.shape = \"[n_qq]\" is not a shape\n");
}

TEST(ReadSpec, UnusedParamIsAWarning) {
  Diagnostics diagnostics;
  read_spec({"x", R"({"version": 1, "name": "x", "params": {"a": {}}})"}, diagnostics);
  ASSERT_EQ(diagnostics.items.size(), 1U);
  EXPECT_EQ(diagnostics.items[0].severity, Severity::kWarning);
  EXPECT_FALSE(diagnostics.has_errors());
}

TEST(ReadSpec, AppendsToEarlierDiagnostics) {
  Diagnostics diagnostics;
  diagnostics.add({.code = Code::kConflict, .message = "earlier", .span = {99, 1, 1}});
  read_spec({"x", "{}"}, diagnostics);
  ASSERT_EQ(diagnostics.items.size(), 3U);
  EXPECT_EQ(diagnostics.items[0].message, "earlier");
}

TEST(ReadSpec, ErrorsComeInTheOrderOfTheText) {
  Diagnostics diagnostics;
  read_spec({"x", R"({"tile": {"q": 1}, "version": 2, "attention": {"mask": "k +"}, "nam": 1})"},
            diagnostics);
  std::vector<int> columns;
  for (const Diagnostic& d : diagnostics.items) columns.push_back(d.span.column);
  EXPECT_EQ(columns.size(), 4U);  // "nam" is what "name" would be missing as
  EXPECT_TRUE(std::is_sorted(columns.begin(), columns.end()));
}

TEST(SpecNames, FollowTheJson) {
  EXPECT_EQ(name_of(DType::kBF16), "bf16");
  EXPECT_EQ(name_of(GateScope::kTile), "tile");
  EXPECT_EQ(name_of(TileOrder::kDescending), "descending");
  EXPECT_EQ(name_of(QueryPlace::kSharedMemory), "shared_memory");
  EXPECT_EQ(name_of(Loader::kCpAsync), "cp_async");
  EXPECT_EQ(name_of(Loader::kGather), "gather");
  EXPECT_EQ(name_of(Reduce::kSum), "sum");
  EXPECT_EQ(name_of(Normalise::kPreviousLse), "previous_lse");
  EXPECT_EQ(name_of(QuantGroup::kThread), "thread");
  EXPECT_EQ(name_of(SimilarityForm::kGramMax), "gram_max");
  EXPECT_EQ(name_of(TokenOrder::kTimeMajor), "time_major");
  EXPECT_EQ(name_of(ParamDim(ParamAxis::kQTiles)), "q_tiles");
  EXPECT_EQ(size_bytes(DType::kF32), 4);
  EXPECT_EQ(size_bytes(DType::kBF16), 2);
}

}  // namespace
}  // namespace lacuna

// The text of a plan shows every value and its origin.
#include "compiler/target/plan.hpp"

#include "compiler/target/plan_values.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

std::string print(const SpecDocument& document, const char* target_name) {
  Diagnostics diagnostics;
  const Plan plan = make_plan(document, {}, target(target_name), diagnostics);
  EXPECT_EQ(text_of(diagnostics), "");
  return print_plan(plan);
}

TEST(PlanText, ShowsEveryValueWithItsOrigin) {
  SpecDocument document = make_document(true);
  document.spec.tile.q.values = {128};
  document.spec.attention.scale = 0.5f;
  document.spans["/gate/scope"] = {5, 1, 1};
  EXPECT_EQ(print(document, "sm_89"),
            R"(plan @made on sm_89
head_dim = 128                (caller)
dtype = bf16                  (caller)
attention.mask = "k <= q + n_k - n_q"  (spec)
attention.tile_full = "k1 <= q0 + n_k - n_q"  (derived: if true, the mask lets each query of the tile see each key)
attention.tile_visible = "k0 <= q1 + n_k - n_q"  (derived: if false, no query of the tile sees a key)
attention.score = s           (default)
attention.scale = 0.5         (spec)
attention.lse = true          (default: a launch may ask for the log-sum-exp of each row)
gate.scope = tile             (spec)
gate.skip = "tile_max < threshold"  (spec)
gate.exempt = nothing         (default)
gate.skips = [v_load, exp, pv]  (spec)
tile.q = 128                  (spec)
tile.k = 64                   (default: the same on every target where it fits, because what a gate does depends on it)
tile.order = ascending        (default: keys as they lie in memory)
tile.stages = 2               (default: the least: one tile is loaded while another is multiplied)
tile.warps = 8                (derived: tile.q / 16: one mma of rows each)
mask_loop = 1 range of keys for each row  (derived: in tiles that the mask cuts)
walk = MaskWalk               (default: all tiles that the mask leaves)
producer = RowTileLoader      (default: rows as they lie in memory)
consumer = PlainLogits        (default: products of 16-bit rows are scores)
loader = cp_async             (default: runs on every target)
smem_bytes = 98432            (derived: (128 queries + 4 tiles * 64 keys) * 128 elements * 2 bytes + 128 of votes, of 101376)
registers = 216               (derived: of a thread: an estimate of the least without spilling, of 255 that it may have)
blocks_per_sm = 1             (derived: limited by shared memory and registers)
)");
}

TEST(PlanText, ShowsTheFamilyWhereThereIsAChoice) {
  const std::string text = print(make_document(), "sm_90a");
  EXPECT_EQ(text.substr(text.find("family")),
            R"(family = wgmma                (default: the tensor cores of sm_90a by TMA)
work_tiles = 1                (derived: one query tile, shared by all warpgroups)
warpgroups = 2                (derived: tile.q / 64; one more loads)
step_keys = 128               (derived: as many as have scores that fit the registers at head_dim 128)
value_stages = 2              (derived: tile.stages, like those of keys)
query_buffers = 2             (derived: the next queries come while these are in use)
walk = MaskWalk               (default: all tiles that the mask leaves)
producer = WgmmaProducer      (default: walks over tiles and loads each of them)
consumer = ChainedConsumer    (default: operands of 16 bits; the next row begins before O is stored)
loader = tma                  (derived: comes with wgmma)
smem_bytes = 197632           (derived: 1024 of control + (2 * 128 queries + (2 + 2) * 128 keys) * 128 elements * 2 bytes, of 232448)
registers = 240               (derived: of a consumer's thread, by setmaxnreg; the producer's have 24)
blocks_per_sm = 1             (derived: limited by registers)
)");
  SpecDocument document = make_document();
  document.spec.tile.q.values = {64};
  const std::string mma = print(document, "sm_90a");
  EXPECT_NE(mma.find("family = mma                  (derived: tile.q = 64: the two warpgroups of a "
                     "block have 128 rows)\nwalk = MaskWalk "),
            std::string::npos)
      << mma;
  EXPECT_EQ(print(make_document(), "sm_80").find("family"), std::string::npos);
}

TEST(PlanText, GivesTheProducerMoreRegistersIfItAsksAboutEachTile) {
  const auto registers_under = [](const char* mask) {
    SpecDocument document = make_document();
    document.spec.attention.mask =
        parse_expr(mask, Site::kMask, document.spec.param_symbols()).expr;
    const std::string text = print(document, "sm_90a");
    return text.substr(text.find("registers = "), 15);
  };
  EXPECT_EQ(registers_under("k <= q and k > q - 64"), "registers = 240");
  EXPECT_EQ(registers_under("(q - k) % 64 == 0"), "registers = 232") << "no range of keys";
}

TEST(PlanText, ShowsWhatAPredictorDecidesByAndInWhichPrecision) {
  const std::string text =
      print(read_document(
                R"("predictor": {"tile": {"q": 64, "k": 32}, "smooth": ["q", "k"], "reuse": 4,
               "estimate": {"q": "tokens", "k": "tokens", "bits": 4, "normalise": "lse",
                            "reference": "k < 32"}, "keep": "p > 0.1"},
             "quantise": {"qk": {"bits": 8, "group": "thread"}, "v": {"bits": 8}},
             "tile": {"warps": 4, "stages": 3})"),
            "sm_80");
  EXPECT_EQ(text.substr(text.find("predictor.tile.q"),
                        text.find("tile.order") - text.find("predictor.tile.q")),
            R"(predictor.tile.q = 64         (spec)
predictor.tile.k = 32         (spec)
predictor.estimate = tokens x tokens, max, lse  (spec)
predictor.estimate.bits = 4   (spec)
predictor.estimate.product_bits = 8  (derived: sm_80 has no mma of int4: the same integers in int8, the same logits)
predictor.estimate.group = thread  (spec)
predictor.estimate.reference = "k < 32"  (spec)
predictor.estimate.exclude = nothing  (default)
predictor.keep = "p > 0.1"    (spec)
predictor.heads = own         (default: each head decides for itself)
predictor.reuse = 4           (spec: launches that a decision serves)
quantise.qk.bits = 8          (spec)
quantise.qk.group = thread    (spec)
quantise.v.bits = 16          (derived: sm_80 has no mma of e4m3)
tile.q = 64                   (derived: 16 * tile.warps)
tile.k = 32                   (derived: that of predictor.tile.k)
)");
  EXPECT_NE(
      text.find("(64 queries * 2 bytes + 32 keys * (3 * 1 + 3 * 2)) * 128 elements, of 166912"),
      std::string::npos)
      << text;
}

/// A line of the plan.
std::string plan_line(const std::string& fields, const char* name, const char* target_name) {
  const std::string text = print(read_document(fields), target_name);
  const std::size_t begin = text.find("\n" + std::string(name) + " = ");
  if (begin == std::string::npos) return "";
  return text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
}

/// Ids of documents; `rising`: that bounds of a tile tell.
std::string documents(const std::string& rising, const std::string& mask) {
  const auto param = [&](const char* name, const char* axis) {
    return "\"" + std::string(name) + R"(": {"type": "i32", "shape": "[)" + axis + "]\"" + rising +
           R"(, "doc": "document"})";
  };
  return R"("attention": {"mask": ")" + mask + R"("}, "params": {)" + param("of_query", "n_q") +
         ", " + param("of_key", "n_k") + "}";
}

TEST(PlanText, SaysWhyPairsOfTilesAreAskedOrNot) {
  const std::string same = "k <= q and of_query[q] == of_key[k]";
  const std::string asked =
      "attention.pairs = true        (derived: bounds of a tile say nothing of of_query, of_key: "
      "its "
      "pairs are asked before it is visited, once for all ";
  EXPECT_EQ(plan_line(documents("", same), "attention.pairs", "sm_90a"),
            asked + "heads and batch entries)");
  EXPECT_EQ(plan_line(documents("", same + " + b"), "attention.pairs", "sm_80"), asked + "heads)");
  EXPECT_EQ(plan_line(documents("", same + " + h"), "attention.pairs", "sm_80"),
            asked + "batch entries)");
  EXPECT_EQ(plan_line(documents(R"(, "monotone": true)", same), "attention.pairs", "sm_80"), "");
  EXPECT_EQ(
      plan_line(documents("", "k <= q and of_query[n_q - 1] > 0"), "attention.pairs", "sm_80"), "");
  EXPECT_EQ(
      plan_line(documents("", "k <= q and q % 24 == k % 24"), "attention.pairs", "sm_90a"),
      "attention.pairs = true        (derived: bounds of a tile are loose in q % 24: its pairs "
      "are asked before it is visited, once for all heads and batch entries)");
  const std::string columns = R"(, "predictor": {"tile": {"q": 128, "k": 1}, "keep": "k0 < 9"})";
  EXPECT_EQ(
      plan_line(documents("", same) + columns, "attention.pairs", "sm_90a"),
      "attention.pairs = false       (derived: keys are gathered, and each of them is asked)");
  EXPECT_EQ(plan_line(documents("", same) + R"(, "mask": "external")", "attention.pairs", "sm_90a"),
            "attention.pairs = false       (derived: the caller's lists say what is visited)");
}

TEST(PlanText, ShowsWhatIsLeftForEachScore) {
  const std::string bounds = R"("attention": {"mask": "k <= q and q - k < 64 or k < 4"})";
  EXPECT_EQ(plan_line(bounds, "mask_loop", "sm_80"),
            "mask_loop = 2 ranges of keys for each row  (derived: in tiles that the mask cuts)");
  EXPECT_EQ(plan_line(R"("attention": {"mask": "q % 3 == k % 3"})", "mask_loop", "sm_80"),
            "mask_loop = asked for each score  (derived: conditions on pairs of query and key)");
  const std::string chunks = R"("attention": {"mask": "k <= q and k // chunk == q // chunk"})";
  const auto chunk = [](const char* range) {
    return R"(, "params": {"chunk": {"type": "i32", "range": )" + std::string(range) + "}}";
  };
  EXPECT_EQ(plan_line(chunks + chunk("[1, 4096]"), "mask_loop", "sm_80"),
            "mask_loop = 1 range of keys for each row  (derived: in tiles that the mask cuts)");
  EXPECT_EQ(plan_line(chunks + chunk("[0, 4096]"), "mask_loop", "sm_80"),
            "mask_loop = asked for each score  (derived: conditions on pairs of query and key; "
            "chunk with a range from 1 on would make it ranges of keys)");
  EXPECT_EQ(plan_line(R"("attention": {"mask": "(q - k) % 3 == 0"})", "mask_loop", "sm_80"),
            "mask_loop = asked for each distance  (derived: the mask depends on q - k alone)");
  EXPECT_EQ(
      plan_line(R"("attention": {"mask": "(q - k) % 3 == 0 and k < n_q"})", "mask_loop", "sm_90a"),
      "mask_loop = asked for each distance, and 1 range of keys for each row  (derived: "
      "conditions that depend on one of these alone)");
  EXPECT_EQ(plan_line(R"("attention": {"mask": "q - k < 9 or k % 64 == 0"})", "mask_loop", "sm_80"),
            "mask_loop = asked for each distance and key  (derived: conditions that depend on one "
            "of these alone)");
  const std::string gate =
      bounds + R"(, "gate": {"scope": "tile", "skip": "tile_max < 1", "skips": ["exp", "pv"]})";
  EXPECT_EQ(plan_line(gate, "mask_loop", "sm_90a"),
            "mask_loop = asked for each score  (derived: ranges of keys make the warps of "
            "TileGateConsumer divergent to the compiler)");
  EXPECT_EQ(plan_line(gate, "mask_loop", "sm_80"), plan_line(bounds, "mask_loop", "sm_80"));
  const std::string distance = R"("attention": {"score": "-abs(q - k) + s"
})";
  const std::string columns = R"("predictor": {"tile": {"q": 128, "k": 1}, "keep": "k0 < 9"}, )";
  EXPECT_EQ(plan_line(columns + distance, "score_loop", "sm_90a"),
            "score_loop = the whole formula for each score  (derived: keys are gathered)");
  EXPECT_EQ(
      plan_line(distance, "score_loop", "sm_90a"),
      "score_loop = 2 FFMA, 0.6 shuffle for each score; 4 integer for each distance  (derived: "
      "s + a part of q - k, worked out once for each distance of 16 queries)");
  EXPECT_EQ(plan_line(distance, "score_loop", "cpu"), "");
}

// Formulas of many instructions (compiler/expr/parts/costly_formulas.hpp).
TEST(PlanText, ShowsWhatStandsInALoop) {
  const std::string params = R"("params": {"codes": {"type": "i32", "shape": "[n_k, 8]"}, )"
                             R"("of_q": {"type": "i32", "shape": "[n_q, 8]"}}, )";
  std::string mask, score = "s";
  for (int n = 0; n < 4; ++n) {
    const std::string place = std::to_string(n) + "]";
    mask += (n == 0 ? "of_q[q, " : " or of_q[q, ") + place + " == codes[k, " + place;
    score += " + of_q[q + k, " + place + " * codes[k - q, " + place;
  }
  const std::string why = " instructions, in a copy for each score a kernel takes long to compile)";
  EXPECT_EQ(plan_line(params + R"("attention": {"mask": ")" + mask + "\"}", "mask_loop", "sm_80"),
            "mask_loop = asked for each score, in a loop over blocks of keys  (derived: conditions "
            "on pairs of query and key; some 151" +
                why);
  const std::string attention = params + R"("attention": {"score": ")" + score + "\"}";
  EXPECT_EQ(plan_line(attention, "score_loop", "sm_90a"),
            "score_loop = 2 FFMA, 3 other f32, 8 load, 10 integer for each score, in a loop over "
            "blocks of keys  (derived: s + rest; some 157" +
                why);
  const std::string columns = R"("predictor": {"tile": {"q": 128, "k": 1}, "keep": "k0 < 9"}, )";
  EXPECT_EQ(plan_line(columns + attention, "score_loop", "sm_90a"),
            "score_loop = the whole formula for each score, in a loop over blocks of keys  "
            "(derived: keys are gathered; some 157" +
                why);
}

/// Scores of as many keys as registers hold beside what a formula takes.
TEST(PlanText, TakesLongStepsWhereLanesShareTheRest) {
  const auto step_keys = [](const std::string& score, const std::string& more = "") {
    const std::string line =
        plan_line(more + R"("attention": {"score": ")" + score + "\"}\n", "step_keys", "sm_90a");
    return line.substr(0, line.find(' ', std::string("step_keys = ").size()));
  };
  EXPECT_EQ(step_keys("s - abs(q - k)"), "step_keys = 128");
  EXPECT_EQ(step_keys("s * 2.0 - tanh(0.1 * (q - k)) - 0.5 * k"), "step_keys = 128");
  EXPECT_EQ(step_keys("s - abs(q - 2 * k)"), "step_keys = 64");
  EXPECT_EQ(step_keys("s * k - abs(q - k)"), "step_keys = 64");
  EXPECT_EQ(step_keys("s - tanh(0.1 * (q - k)) * (k // 2)"), "step_keys = 64");
  EXPECT_EQ(step_keys("s - abs(q - k)", R"("quantise": {"qk": {"bits": 8}}, )"), "step_keys = 64");
}

TEST(PlanText, OfTheCpuEndsWithTheTiles) {
  const std::string text = print(make_document(), "cpu");
  EXPECT_EQ(text.find("smem_bytes"), std::string::npos);
  EXPECT_NE(text.find("tile.q = 128"), std::string::npos);
}

}  // namespace
}  // namespace lacuna

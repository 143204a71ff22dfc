// LaunchPrograms of programs of several kernels: sizes, the workspace, where arguments come from.
#include <gtest/gtest.h>

#include <map>

#include "tests/emit/plans.hpp"
#include "tests/ir/programs.hpp"

namespace lacuna {
namespace {

using Values = std::map<std::string, std::int32_t>;

Values values_of(const LaunchProgram& program, const LaunchShape& shape) {
  std::vector<std::int32_t> values(program.values.size());
  EXPECT_TRUE(evaluate_launch_values(program, shape, values.data()));
  Values named;
  for (std::size_t i = 0; i < values.size(); ++i) named[program.values[i].name] = values[i];
  return named;
}

const ArgField* field_of(const LaunchProgram& program, const std::string& name) {
  const auto found = std::ranges::find(program.fields, name, &ArgField::name);
  return found == program.fields.end() ? nullptr : &*found;
}

/// What the printed text says of an argument.
std::string origin_of(const LaunchProgram& program, const std::string& name) {
  const std::string text = print_launch_program(program);
  const std::size_t at = text.find(" " + name + " ", text.find("\narguments "));
  if (at == std::string::npos) return "";
  const std::size_t begin = text.find("= ", at) + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

constexpr LaunchShape kShape{.n_b = 2, .n_h = 8, .n_h_kv = 2, .n_q = 300, .n_k = 300};

TEST(Launch, SizesFollowFromTheShape) {
  const Values values = values_of(emit_launch_program(plan_of_text(kPredictedText)), kShape);
  EXPECT_EQ(values.at("q_tiles"), 5);  // of 64
  EXPECT_EQ(values.at("k_tiles"), 10);
  EXPECT_EQ(values.at("heads_per_kv"), 4);
  EXPECT_EQ(values.at("q_padded"), 512);
  EXPECT_EQ(values.at("keep_q_tiles"), 3);  // of 128
  EXPECT_EQ(values.at("keep_k_tiles"), 5);  // of 64
  EXPECT_EQ(values.at("keep_words"), 1);
  EXPECT_EQ(values.at("q_groups"), 512 / 16);  // of a warp
  EXPECT_EQ(values.at("k_groups"), 512 / 32);
  EXPECT_EQ(values.at("estimate_q_groups"), 512 / 2);  // of a thread
  EXPECT_EQ(values.at("estimate_k_groups"), 512 / 8);
}

TEST(Launch, GridsFollowFromTheShape) {
  const Values values = values_of(emit_launch_program(plan_of_text(kPredictedText)), kShape);
  EXPECT_EQ(values.at("grid.permute_q"), 16 * 5);
  EXPECT_EQ(values.at("grid.permute_v"), 4 * 5);
  EXPECT_EQ(values.at("grid.mean_q"), 16);
  EXPECT_EQ(values.at("grid.finish_mean_k"), 4);
  EXPECT_EQ(values.at("grid.prepare_q"), 16 * 512 / 128);
  EXPECT_EQ(values.at("grid.prepare_k"), 4 * 512 / 64);
  EXPECT_EQ(values.at("grid.prepare_v"), 4 * 512 / 128);
  EXPECT_EQ(values.at("grid.estimate"), 16 * 3);
  EXPECT_EQ(values.at("grid.compact"), 16 * 5 / 8);
  EXPECT_EQ(values.at("grid.order_rows"), 1);
  EXPECT_EQ(values.at("grid"), 16 * 5);
}

TEST(Launch, BlocksThatStrideAreAtMost512) {
  const LaunchShape large{.n_b = 4, .n_h = 32, .n_h_kv = 8, .n_q = 131072, .n_k = 131072};
  EXPECT_EQ(values_of(emit_launch_program(plan_of_text(kPredictedText)), large).at("grid.estimate"),
            512);
  const Values gathered = values_of(emit_launch_program(plan_of_text(kGatheredText)), large);
  EXPECT_EQ(gathered.at("grid.estimate"), 512);
  EXPECT_EQ(gathered.at("grid"), 512);
}

TEST(Launch, AGatheringAttendCountsColumns) {
  const LaunchProgram program = emit_launch_program(plan_of_text(kGatheredText));
  const Values values = values_of(program, kShape);
  EXPECT_EQ(values.at("k_tiles"), 38);  // of 8
  EXPECT_EQ(values.at("keep_words"), 2);
  EXPECT_EQ(values.at("gathered.size"), 2 * 8 * 3 * 512 * 4 / 256);
  EXPECT_EQ(origin_of(program, "gathered"), "workspace gathered");
  EXPECT_EQ(origin_of(program, "row_order"), "");
  EXPECT_EQ(origin_of(program, "list_capacity"), "list_indices.extent[3]");
}

TEST(Launch, SlotsLieOneBehindTheOther) {
  for (const char* text : {kPredictedText, kGatheredText}) {
    const LaunchProgram program = emit_launch_program(plan_of_text(text));
    std::vector<std::int32_t> values(program.values.size());
    ASSERT_TRUE(evaluate_launch_values(program, kShape, values.data()));
    std::int32_t end = 0;
    for (const WorkspaceSlot& slot : program.slots) {
      EXPECT_EQ(values[static_cast<std::size_t>(slot.offset)], end) << slot.name;
      EXPECT_GT(values[static_cast<std::size_t>(slot.size)], 0) << slot.name;
      end += values[static_cast<std::size_t>(slot.size)];
    }
    ASSERT_GE(program.workspace_value, 0);
    EXPECT_EQ(values[static_cast<std::size_t>(program.workspace_value)], end);
  }
}

TEST(Launch, SlotsHoldTheirArrays) {
  const Values values = values_of(emit_launch_program(plan_of_text(kPredictedText)), kShape);
  constexpr int kUnit = 256, kHeads = 16, kHeadsKv = 4, kDim = 128;
  const auto expect_holds = [&](const std::string& slot, int bytes, int slack) {
    const int size = values.at(slot + ".size") * kUnit;
    EXPECT_GE(size, bytes) << slot;
    EXPECT_LE(size, bytes + slack * kUnit) << slot;
  };
  expect_holds("ordered_q", kHeads * 300 * kDim * 2, kHeads);
  expect_holds("ordered_v", kHeadsKv * 300 * kDim * 2, kHeadsKv);
  expect_holds("ordered_lse", kHeads * 300 * 4, kHeads);
  expect_holds("partial", kHeads * 1 * kDim * 4, kHeads);
  expect_holds("k_mean", kHeadsKv * kDim * 4, 0);
  expect_holds("k_summary", kHeadsKv * 5 * kDim * 4, 0);
  expect_holds("q_similarity", kHeads * 3 * 4, kHeads);
  expect_holds("q_values", kHeads * 512 * kDim, 0);
  expect_holds("q_scale", kHeads * 32 * 4, kHeads);
  expect_holds("estimate_k_scale", kHeadsKv * 64 * 4, kHeadsKv);
  expect_holds("v_values", kHeadsKv * 512 * kDim, 0);
  expect_holds("column_bias", kHeads * 512 * 4, 0);
  expect_holds("scores", 48 * 4 * 5 * 4, 48);  // rank or mass: four rows for each block
  expect_holds("kept", kHeads * 3 * 4, kHeads);
  expect_holds("list_indices", kHeads * 5 * 10 * 4, kHeads);
  expect_holds("row_order", kHeads * 5 * 4, kHeads);
}

TEST(Launch, AnOrderTakesRoom) {
  const auto room = [](const char* keep) {
    const Plan plan = plan_of_text(with(kGatheredText, "p > 0.5 / n_k", keep));
    return values_of(emit_launch_program(plan), kShape).at("scores.size");
  };
  EXPECT_LT(room("p > 0.5"), room("rank < 3 or p > 0.5"));
  for (const char* keep : {"rank < 3", "rank < 3 or k0 < 64"})
    EXPECT_EQ(room("p > 0.5"), room(keep)) << "the first are found without one";
}

TEST(Launch, ManyTokensFit) {
  const LaunchShape large{.n_b = 4, .n_h = 32, .n_h_kv = 8, .n_q = 131072, .n_k = 131072};
  for (const char* text : {kPredictedText, kGatheredText}) {
    const LaunchProgram program = emit_launch_program(plan_of_text(text));
    const Values values = values_of(program, large);
    for (const auto& [name, value] : values) EXPECT_GE(value, 0) << name;
    EXPECT_EQ(values.at("kept.size"), values.at("keep_q_tiles") * values.at("keep_words") * 2);
  }
}

TEST(Launch, WhatDoesNotFit31BitsIsNoticed) {
  const LaunchProgram program = emit_launch_program(plan_of_text(kPredictedText));
  std::vector<std::int32_t> values(program.values.size());
  const auto evaluate = [&](std::int32_t n_b, std::int32_t n) {
    return evaluate_launch_values(program, {n_b, 32, 8, n, n}, values.data());
  };
  EXPECT_TRUE(evaluate(64, 131072));
  EXPECT_FALSE(evaluate(4096, 131072));
  EXPECT_FALSE(evaluate(1, 2147483647)) << "rounding up the length itself";
}

TEST(Launch, TheKeptBitsHaveASlotOfTheirOwn) {
  const LaunchProgram program = emit_launch_program(plan_of_text(kPredictedText));
  ASSERT_GE(program.kept_slot, 0);
  EXPECT_EQ(program.slots[static_cast<std::size_t>(program.kept_slot)].name, "kept");
  EXPECT_EQ(emit_launch_program(plan_of_text(kGatedText)).kept_slot, -1);
}

TEST(Launch, ReuseIsThePlans) {
  Plan plan = plan_of_text(kGatheredText);
  EXPECT_EQ(emit_launch_program(plan).reuse, 1);
  EXPECT_NE(print_launch_program(emit_launch_program(plan)).find("or a selection\n"),
            std::string::npos);
  plan.attend.reuse.value = 15;
  EXPECT_EQ(emit_launch_program(plan).reuse, 15);
  EXPECT_NE(print_launch_program(emit_launch_program(plan)).find(", for 15 launches\n"),
            std::string::npos);
}

TEST(Launch, OrderedCopiesStandInForTheCallersTensors) {
  const LaunchProgram program = emit_launch_program(plan_of_text(kPredictedText));
  EXPECT_EQ(origin_of(program, "q.data"), "workspace ordered_q");
  EXPECT_EQ(origin_of(program, "q.stride_b"), "q_tokens_of_heads * 128");
  EXPECT_EQ(origin_of(program, "v.stride_h"), "k_tokens * 128");
  EXPECT_EQ(origin_of(program, "o.stride_n"), "128");
  EXPECT_EQ(origin_of(program, "lse.data"), "workspace ordered_lse");
  EXPECT_EQ(origin_of(program, "lse.stride_h"), "q_tokens * 1");
  EXPECT_EQ(origin_of(program, "caller_q.data"), "q.data");
  EXPECT_EQ(origin_of(program, "caller_lse.stride_b"), "lse.stride[0]");
  EXPECT_EQ(origin_of(program, "order"), "order.data");
}

TEST(Launch, WithoutPermutationNothingIsOrdered) {
  const LaunchProgram program = emit_launch_program(plan_of_text(kGatheredText));
  EXPECT_EQ(origin_of(program, "q.data"), "q.data");
  EXPECT_EQ(field_of(program, "caller_q.data"), nullptr);
  EXPECT_EQ(field_of(program, "order"), nullptr);
  EXPECT_EQ(field_of(program, "previous_lse.data"), nullptr) << "no estimate reads it";
}

TEST(Launch, AnEstimateReadsThePreviousLse) {
  const LaunchProgram program = emit_launch_program(plan_of_text(
      with(with(kPredictedText, "%order = input",
                "%previous_lse = input name=\"previous_lse\" : [batch, heads, n_q] f32\n"
                "  %order = input"),
           "exact_q=%q_ordered, exact_k=%k_ordered, similar_k=%k_similarity, rows=tokens, "
           "columns=tokens, bits=4, normalise=lse, mask=\"q - k < 4096\", reference=\"k < 32 or q "
           "- k < 128\"",
           "previous_lse=%previous_lse, similar_k=%k_similarity, rows=tokens, columns=tokens, "
           "bits=4, normalise=previous_lse, mask=\"q - k < 4096\"")));
  EXPECT_EQ(origin_of(program, "previous_lse.data"), "previous_lse.data");
  EXPECT_EQ(origin_of(program, "previous_lse.stride_h"), "previous_lse.stride[1]");
}

TEST(Launch, ListsOfAPredictorLieInTheWorkspace) {
  const LaunchProgram program = emit_launch_program(plan_of_text(kPredictedText));
  EXPECT_EQ(origin_of(program, "list_indices"), "workspace list_indices");
  EXPECT_EQ(origin_of(program, "list_counts"), "workspace list_counts");
  EXPECT_EQ(origin_of(program, "list_capacity"), "k_tiles");
  EXPECT_EQ(origin_of(program, "row_order"), "workspace row_order");
}

TEST(Launch, IntegersThatAttendAndTheEstimateShareAreMadeOnce) {
  std::string text = kPredictedText;
  for (const char* side : {"q", "k"}) {
    const std::string values = std::string("%estimate_") + side + "_values";
    const std::size_t begin = text.find("  " + values);
    text.erase(begin, text.find('\n', begin) + 1 - begin);
  }
  text = with(text, "estimate %estimate_q_values, %estimate_k_values",
              "estimate %q_values, %k_values");
  text = with(text, "q_scale=%estimate_q_scale, k_scale=%estimate_k_scale",
              "q_scale=%q_scale, k_scale=%k_scale");
  text = with(text, "columns=tokens, bits=4", "columns=tokens, bits=8, group=warp");
  const LaunchProgram program = emit_launch_program(plan_of_text(text));
  EXPECT_EQ(origin_of(program, "estimate_q_values"), "workspace q_values");
  EXPECT_EQ(origin_of(program, "estimate_k_scale"), "workspace k_scale");
  EXPECT_EQ(origin_of(program, "estimate_k_groups"), "k_groups");
}

/// Of a batch of sequences the values are those of one, however many there are; each has a row of
/// blocks and a piece of the workspace.
TEST(Launch, SequencesHaveRowsOfBlocksAndPiecesOfTheWorkspace) {
  Plan plan = plan_of_text(kGatedText);
  plan.program.batch = BatchLayout::kPages;
  const LaunchProgram program = emit_launch_program(plan);
  LaunchShape one = kShape, seven = kShape;
  one.n_b = 1, seven.n_b = 7;
  EXPECT_EQ(values_of(program, one), values_of(program, seven));
  EXPECT_EQ(workspace_pieces(program, seven), 7);
  EXPECT_EQ(workspace_pieces(emit_launch_program(plan_of_text(kGatedText)), seven), 1);
}

/// As the planner leaves it behind.
Plan wgmma_plan(const char* text) {
  Plan plan = plan_of_text(text);
  plan.attend.family.value = AttendFamily::kWgmma;
  plan.attend.warpgroups.value = 2;
  plan.attend.warps.value = 8;
  plan.attend.step_keys.value = 128;
  plan.attend.value_stages.value = 2;
  plan.attend.query_buffers.value = 2;
  return plan;
}

TEST(Launch, ManyRowsForEachKeyUseAllPlacesOfValues) {
  Plan plan = wgmma_plan(kGatedText);
  plan.program.batch = BatchLayout::kSequences;
  attend_of(plan.program).gate.reset();  // so that heads are packed
  plan.attend.stages.value = 2, plan.attend.value_stages.value = 3;
  const LaunchProgram program = emit_launch_program(plan);
  const auto places = [&](int n_q) {
    LaunchShape shape = kShape;
    shape.n_q = n_q;
    const Values values = values_of(program, shape);
    return std::pair(values.at("value_places"), values.at("value_places_inverse"));
  };
  EXPECT_EQ(places(511), std::pair(2, 1073741824)) << "2044 rows, of four heads each";
  EXPECT_EQ(places(512), std::pair(3, 715827883));
}

TEST(Launch, BlocksOfTheWgmmaFamilyAreAsManyAsMultiprocessors) {
  const LaunchProgram program = emit_launch_program(wgmma_plan(kGatedText));
  std::vector<std::int32_t> values(program.values.size());
  const auto grid = [&](const LaunchShape& shape, std::int32_t sm_count) {
    EXPECT_TRUE(evaluate_launch_values(program, shape, values.data(), sm_count));
    return values[static_cast<std::size_t>(program.launches.front().grid_x)];
  };
  const int rows = grid(kShape, kUnlimitedSmCount);
  EXPECT_GT(rows, 7);
  EXPECT_EQ(grid(kShape, 7), 7);
  EXPECT_EQ(grid(kShape, 132), rows);
  EXPECT_EQ(program.launches.front().threads, 384) << "one warpgroup loads";
}

TEST(Launch, MapsAndScheduleComeFirst) {
  for (const char* text : {kGatedText, kPredictedText}) {
    const LaunchProgram mma = emit_launch_program(plan_of_text(text));
    const LaunchProgram program = emit_launch_program(wgmma_plan(text));
    EXPECT_TRUE(mma.maps.empty());
    ASSERT_EQ(program.maps.size(), 4U);
    ASSERT_EQ(program.fields.size(), mma.fields.size() + 2) << "next_row, head_group";
    for (std::size_t n = 0; n < mma.fields.size(); ++n)
      EXPECT_EQ(program.fields[n + 2].offset, mma.fields[n].offset + 576) << mma.fields[n].name;
    EXPECT_EQ(program.args_bytes, (mma.args_bytes + 576 + 63) / 64 * 64);
    EXPECT_EQ(field_of(program, "next_row")->offset, 512U);
    EXPECT_EQ(field_of(program, "head_group")->offset, 520U);
  }
}

TEST(Launch, MapsReadWhatAttendIsTold) {
  const LaunchProgram program = emit_launch_program(wgmma_plan(kGatedText));
  std::uint32_t offset = 0;
  for (const TensorMapFields& map : program.maps) {
    const auto name_of_field = [&](int n) {
      return program.fields[static_cast<std::size_t>(n)].name;
    };
    EXPECT_EQ(map.offset, offset);
    EXPECT_EQ(name_of_field(map.data), map.name + ".data");
    EXPECT_EQ(name_of_field(map.stride_b), map.name + ".stride_b");
    EXPECT_EQ(name_of_field(map.stride_h), map.name + ".stride_h");
    EXPECT_EQ(name_of_field(map.stride_n), map.name + ".stride_n");
    offset += 128;
  }
}

TEST(Launch, RowsAreCountedInASlotThatIsCleared) {
  const LaunchProgram program = emit_launch_program(wgmma_plan(kPredictedText));
  EXPECT_EQ(origin_of(program, "next_row"), "workspace next_row");
  for (const WorkspaceSlot& slot : program.slots)
    EXPECT_EQ(slot.cleared, slot.name == "next_row") << slot.name;
  EXPECT_EQ(values_of(program, kShape).at("next_row.size"), 1);
  EXPECT_NE(print_launch_program(program).find("size next_row.size, zeros\n"), std::string::npos);
}

TEST(Launch, HeadsWhoseKeysStayInTheL2AreAtWorkTogether) {
  const auto group = [](const char* text, const LaunchShape& shape) {
    return values_of(emit_launch_program(wgmma_plan(text)), shape).at("head_group");
  };
  const std::string masked = kGatedText;
  ASSERT_NE(masked.find("mask="), std::string::npos);
  ASSERT_NE(masked.find("head_dim=128"), std::string::npos);
  // 65536 keys and values of head dim 128 are 32 MiB.
  EXPECT_EQ(group(kGatedText, {1, 32, 32, 16384, 16384}), 4);
  EXPECT_EQ(group(kGatedText, {1, 32, 8, 16384, 16384}), 4 * 4) << "query heads of a KV head";
  EXPECT_EQ(group(kGatedText, {1, 8, 2, 300, 300}), 8) << "no more than there are";
  EXPECT_EQ(group(kGatedText, {1, 8, 8, 1000000, 1000000}), 1);
  EXPECT_EQ(group(kGatedText, {2, 8, 8, 5, 0}), 16);
}

TEST(Launch, MapsArePrinted) {
  const std::string text = print_launch_program(emit_launch_program(wgmma_plan(kPredictedText)));
  for (const char* line :
       {"  128 map     maps.k          = int8 [128, k_padded tokens, 1, heads, batch] by boxes of "
        "128 x 32, from workspace k_values\n",
        "  256 map     maps.v          = e4m3 [64, 128 channels, k_padded / 64, heads, batch] by "
        "boxes of 64 x 128, from workspace v_values\n",
        "  384 map     maps.o          = bf16 [64, o tokens, 2, heads, batch] by boxes of 64 x 16, "
        "from workspace ordered_o with strides 128, q_tokens * 128, q_tokens_of_heads * 128\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(Launch, MapsOfCodesArePrinted) {
  Plan plan = wgmma_plan(kGatedText);
  plan.program.kv = KvFormat::kE4M3;
  const std::string text = print_launch_program(emit_launch_program(plan));
  EXPECT_NE(text.find("  128 map     maps.k          = e4m3 [128, k tokens, 1, heads, batch] by "
                      "boxes of 128 x "),
            std::string::npos)
      << text;
}

TEST(Launch, TheCpuHasValuesOnly) {
  const LaunchProgram program = emit_launch_program(plan_of_text(kPredictedText, "cpu"));
  EXPECT_EQ(program.values.size(), 3u);
  EXPECT_TRUE(program.launches.empty());
  EXPECT_TRUE(program.slots.empty());
  EXPECT_EQ(program.workspace_value, -1);
}

}  // namespace
}  // namespace lacuna

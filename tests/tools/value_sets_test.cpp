// Value sets: what --values reads, what it makes, and that kernels get it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"
#include "tools/measure/value_source.hpp"

namespace lacuna::tests {
namespace {

using tools::Array;
using tools::ArrayType;
using tools::Inputs;
using tools::ValueKind;
using tools::ValueSet;
using tools::ValueSource;

constexpr int kValueDim = 64;
constexpr std::int64_t kRisingTile = 128;

ValueSet read(const std::string& text) {
  ValueSet values;
  EXPECT_EQ(tools::parse_values(text, values), "");
  return values;
}

Inputs generate(const std::string& text, const LaunchShape& shape, std::uint64_t seed = 1) {
  return tools::make_inputs({read(text), text}, shape, kValueDim, DType::kF32, seed);
}

/// Logits of the queries of a head with its keys, [n_q][n_k]; one KV head for each head.
std::vector<std::vector<double>> logits(const Inputs& inputs, std::size_t head) {
  const std::vector<float> q = tools::to_f32(inputs.q), k = tools::to_f32(inputs.k);
  const auto queries = static_cast<std::size_t>(inputs.q.shape[2]);
  const auto keys = static_cast<std::size_t>(inputs.k.shape[2]);
  std::vector<std::vector<double>> all(queries, std::vector<double>(keys, 0));
  for (std::size_t i = 0; i < queries; ++i)
    for (std::size_t j = 0; j < keys; ++j) {
      for (std::size_t d = 0; d < kValueDim; ++d)
        all[i][j] += static_cast<double>(q[(head * queries + i) * kValueDim + d]) *
                     static_cast<double>(k[(head * keys + j) * kValueDim + d]);
      all[i][j] /= std::sqrt(static_cast<double>(kValueDim));
    }
  return all;
}

double rms(const Array& array) {
  double squares = 0;
  const std::vector<float> values = tools::to_f32(array);
  for (const float x : values) squares += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(ValueSets, EveryWordIsReadAndPrintedAgain) {
  for (const char* text : {"normal", "normal*8", "normal*0.1", "sink", "rising", "falling",
                           "folder/layer.safetensors"})
    EXPECT_EQ(tools::print_values(read(text)), text);
  EXPECT_EQ(read("normal*8").query_factor, 8);
  EXPECT_EQ(tools::print_values(read("normal*1")), "normal");
}

TEST(ValueSets, SaysWhatIsWrongWithAWord) {
  const std::string expected =
      "expected normal, normal*S, sink, rising, falling or FILE.safetensors, got ";
  ValueSet values = read("sink");
  EXPECT_EQ(tools::parse_values("risin", values), expected + "\"risin\"; did you mean rising?");
  EXPECT_EQ(tools::parse_values("zzz", values), expected + "\"zzz\"");
  for (const char* text : {"normal*", "normal*x", "normal*-1", "normal*0", "normal*inf",
                           "normal*2x", "", ".safetensors"})
    EXPECT_TRUE(tools::parse_values(text, values).starts_with(expected)) << text;
  EXPECT_EQ(values.kind, ValueKind::kSink) << "what is wrong changes nothing";
}

TEST(ValueSets, NormalValuesAreThoseOfTheSeedAndQueriesAreScaled) {
  const LaunchShape shape{1, 2, 2, 256, 256};
  const Inputs plain = generate("normal", shape), scaled = generate("normal*8", shape);
  EXPECT_NEAR(rms(plain.q), 1, 0.02);
  EXPECT_NEAR(rms(scaled.q), 8, 0.16);
  EXPECT_EQ(plain.k, scaled.k);
  EXPECT_EQ(plain.v, scaled.v);
  EXPECT_EQ(generate("sink", shape, 5).k, generate("sink", shape, 5).k);
  EXPECT_NE(generate("sink", shape, 5).k, generate("sink", shape, 6).k);
}

TEST(ValueSets, SinksLieAboutTenAboveEveryOtherLogit) {
  const Inputs inputs = generate("sink", {1, 2, 2, 64, 1024});
  for (std::size_t head = 0; head < 2; ++head) {
    double above = 0;
    for (const std::vector<double>& row : logits(inputs, head)) {
      const double least_sink = *std::min_element(row.begin(), row.begin() + 4);
      const double most_other = *std::max_element(row.begin() + 4, row.end());
      EXPECT_GT(least_sink, most_other);
      above += least_sink - most_other;
    }
    EXPECT_NEAR(above / 64, 10, 2);
  }
}

/// Mean over queries of each tile's largest logit.
std::vector<double> tile_maxima(const std::vector<std::vector<double>>& rows) {
  std::vector<double> maxima(rows.front().size() / kRisingTile, 0);
  for (const std::vector<double>& row : rows)
    for (std::size_t tile = 0; tile < maxima.size(); ++tile) {
      const auto begin = row.begin() + static_cast<std::ptrdiff_t>(tile * kRisingTile);
      maxima[tile] +=
          *std::max_element(begin, begin + kRisingTile) / static_cast<double>(rows.size());
    }
  return maxima;
}

TEST(ValueSets, EachTilesMaximumIsOneMoreOrOneLess) {
  for (const auto& [text, step] : {std::pair{"rising", 1.0}, {"falling", -1.0}}) {
    const Inputs inputs = generate(text, {1, 1, 1, 128, 8 * kRisingTile});
    const std::vector<double> maxima = tile_maxima(logits(inputs, 0));
    for (std::size_t tile = 1; tile < maxima.size(); ++tile)
      EXPECT_NEAR(maxima[tile] - maxima[tile - 1], step, 0.5) << text << " " << tile;
    EXPECT_NEAR((maxima.back() - maxima.front()) / static_cast<double>(maxima.size() - 1), step,
                0.1)
        << text;
  }
}

/// A file of values that say where they come from: 1000 * head + token; v of KV heads likewise.
ValueSource numbered_file(std::int64_t heads, std::int64_t heads_kv, std::int64_t tokens) {
  const auto tensor = [tokens](std::int64_t count) {
    std::vector<float> values;
    for (std::int64_t head = 0; head < count; ++head)
      for (std::int64_t token = 0; token < tokens; ++token)
        values.push_back(static_cast<float>(1000 * head + token));
    return tools::from_f32(values, {1, count, tokens, 1}, ArrayType::kF32);
  };
  ValueSource source{{ValueKind::kFile, 1, "x.safetensors"}, "x.safetensors", Inputs()};
  source.file->q = tensor(heads);
  source.file->k = source.file->v = tensor(heads_kv);
  return source;
}

/// Of each head of a tensor of a file of this kind: its first value.
std::vector<float> first_of_heads(const Array& array) {
  const std::vector<float> values = tools::to_f32(array);
  std::vector<float> firsts;
  for (std::size_t at = 0; at < values.size(); at += static_cast<std::size_t>(array.shape[2]))
    firsts.push_back(values[at]);
  return firsts;
}

TEST(ValueSets, HeadsOfAFileAreRepeatedWithTheirKvHeads) {
  const ValueSource source = numbered_file(4, 2, 8);
  // As many KV heads as query heads: each group of the file, its KV head twice.
  const Inputs own = tools::make_inputs(source, {2, 3, 3, 8, 8}, 1, DType::kF32, 1);
  EXPECT_EQ(first_of_heads(own.q), (std::vector<float>{0, 1000, 2000, 3000, 0, 1000}));
  EXPECT_EQ(first_of_heads(own.k), (std::vector<float>{0, 0, 1000, 1000, 0, 0}));
  EXPECT_EQ(own.k, own.v);
  // The same groups, and twice as large ones.
  const Inputs same = tools::make_inputs(source, {1, 6, 3, 8, 8}, 1, DType::kF32, 1);
  EXPECT_EQ(first_of_heads(same.q), (std::vector<float>{0, 1000, 2000, 3000, 0, 1000}));
  EXPECT_EQ(first_of_heads(same.k), (std::vector<float>{0, 1000, 0}));
  const Inputs wide = tools::make_inputs(source, {1, 8, 2, 8, 8}, 1, DType::kF32, 1);
  EXPECT_EQ(first_of_heads(wide.q), (std::vector<float>{0, 1000, 0, 1000, 2000, 3000, 2000, 3000}));
  EXPECT_EQ(first_of_heads(wide.k), (std::vector<float>{0, 1000}));
}

TEST(ValueSets, TokensOfAFileAreCutToTheFirstKeysAndTheQueriesThatEndWithThem) {
  const Inputs cut = tools::make_inputs(numbered_file(1, 1, 8), {1, 1, 1, 2, 6}, 1, DType::kF32, 1);
  EXPECT_EQ(tools::to_f32(cut.k), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(tools::to_f32(cut.q), (std::vector<float>{4, 5}));
}

TEST(ValueSets, SaysWhyAFileDoesNotFit) {
  const ValueSource source = numbered_file(4, 2, 8);
  EXPECT_EQ(tools::check_fits(source, {1, 4, 2, 8, 8}, 1), "");
  EXPECT_EQ(tools::check_fits(source, {1, 4, 2, 8, 8}, 64),
            "x.safetensors: head dim: expected 64, got 1; pass --head-dim 1");
  EXPECT_EQ(tools::check_fits(source, {1, 6, 2, 8, 8}, 1),
            "x.safetensors: it has 2 query heads for each KV head, --shape asks for 3; heads are "
            "repeated with their KV head, so one has to divide the other");
  EXPECT_EQ(tools::check_fits(source, {1, 4, 2, 9, 9}, 1),
            "x.safetensors: it has 8 tokens, --shape asks for 9; tokens are cut, never repeated: "
            "pass --shape n=8");
  EXPECT_EQ(tools::check_fits(source, {1, 4, 2, 7, 6}, 1),
            "x.safetensors: with 6 keys it has 6 queries, --shape asks for 7");
  EXPECT_EQ(tools::check_fits({read("sink"), "sink"}, {1, 6, 2, 7, 6}, 64), "");
}

class ValuesOfVerbs : public testing::Test {
 protected:
  CommandResult bench(const std::string& spec, const std::string& values,
                      const std::string& shape = "h=4,h_kv=1,n=256") const {
    return run_lacuna({"bench", spec, "--device", "cpu", "--shape", shape, "--head-dim", "64",
                       "--seconds", "0.01", "--json", "--values", values});
  }
  std::string write_sample() const {
    return scratch_.write("x.safetensors", tools::print_safetensors(
                                               small_problem(2, 256, kValueDim, ArrayType::kBF16)));
  }

  ScratchDirectory scratch_;
};

/// Tiles that a gate leaves out depend on the values that reach the kernel.
std::int64_t gated(const CommandResult& result) {
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  return parse_document(result)["tiles"]["gated"].get<std::int64_t>();
}

TEST_F(ValuesOfVerbs, BenchRunsOnThemAndNamesThem) {
  const std::string spec = scratch_.write("gated.json", R"({"version": 1, "name": "gated",
    "gate": {"scope": "tile", "skip": "tile_max < 100", "skips": ["pv"]},
    "tile": {"q": 128, "k": 128, "order": "ascending"}})");
  const CommandResult normal = bench(spec, "normal");
  EXPECT_EQ(parse_document(normal)["values"], "normal");
  EXPECT_EQ(gated(normal), 8) << "all tiles but the first of each row";
  tools::Safetensors large = small_problem(2, 256, kValueDim, ArrayType::kF32);
  for (const char* name : {"q", "k"})
    large.tensors[name] =
        tools::from_f32(std::vector<float>(tools::to_f32(large.tensors[name]).size(), 5),
                        large.tensors[name].shape, ArrayType::kF32);
  const std::string file = scratch_.write("large.safetensors", tools::print_safetensors(large));
  const CommandResult of_file = bench(spec, file);
  EXPECT_EQ(gated(of_file), 0) << "logits of 5 * 5 * 64 / 8 = 200";
  const std::string name = parse_document(of_file)["values"];
  EXPECT_TRUE(name.starts_with(file + " (sha256 ")) << name;
}

TEST_F(ValuesOfVerbs, BenchSaysWhatIsWrong) {
  const std::string dense = source_file("specs/dense.json");
  EXPECT_EQ(bench(dense, "sinc").status, 2);
  EXPECT_EQ(bench(dense, scratch_.file("none.safetensors")).status, 1);
  const CommandResult short_file = bench(dense, write_sample(), "h=2,h_kv=1,n=512");
  EXPECT_EQ(short_file.status, 1);
  EXPECT_EQ(parse_document(short_file)["diagnostics"][0]["message"],
            scratch_.file("x.safetensors") +
                ": it has 256 tokens, --shape asks for 512; tokens are cut, never repeated: pass "
                "--shape n=256");
  tools::Safetensors torn = small_problem(2, 256, kValueDim, ArrayType::kBF16);
  torn.tensors["v"] = small_problem(2, 128, kValueDim, ArrayType::kBF16).tensors["v"];
  const std::string file = scratch_.write("torn.safetensors", tools::print_safetensors(torn));
  EXPECT_EQ(parse_document(bench(dense, file))["diagnostics"][0]["message"],
            file +
                ": q [1, 2, 256, 64], k [1, 1, 256, 64] and v [1, 1, 128, 64] do not go "
                "together");
  torn.tensors["q"] = small_problem(3, 256, kValueDim, ArrayType::kBF16).tensors["q"];
  torn.tensors["k"] = torn.tensors["v"] =
      small_problem(2, 256, kValueDim, ArrayType::kBF16).tensors["q"];
  scratch_.write("torn.safetensors", tools::print_safetensors(torn));
  EXPECT_EQ(parse_document(bench(dense, file))["diagnostics"][0]["message"],
            file +
                ": q [1, 3, 256, 64], k [1, 2, 256, 64] and v [1, 2, 256, 64] do not go "
                "together");
}

TEST_F(ValuesOfVerbs, TuneMeasuresOnThemAndItsRecordsSaySo) {
  const std::string spec = scratch_.write(
      "small.json", R"({"version": 1, "name": "small", "tile": {"q": 128, "k": [64, 32],
      "order": "ascending"}})");
  const std::string cache = scratch_.file("cache"), sample = write_sample();
  const auto tune = [&](const std::string& values) {
    const CommandResult result =
        run_lacuna({"tune", spec, "--shape", "b=1,h=2,h_kv=1,n=256", "--head-dim", "64", "--device",
                    "cpu", "--threads", "2", "--json", "--values", values},
                   "", {{"LACUNA_CACHE_DIR", cache}});
    EXPECT_EQ(result.status, 0) << result.out << result.err;
    return parse_document(result)["tunings"][0];
  };
  EXPECT_EQ(tune("normal")["state"], "tuned");
  const auto of_file = tune(sample);
  EXPECT_EQ(of_file["state"], "tuned") << "what is known of other values is not known of these";
  EXPECT_TRUE(of_file["values"].get<std::string>().starts_with(sample + " (sha256 "));
  EXPECT_EQ(tune(sample)["state"], "known");
  const std::string exported = scratch_.file("records.jsonl");
  run_lacuna({"tune", "--export", exported}, "", {{"LACUNA_CACHE_DIR", cache}});
  EXPECT_NE(read_bytes(exported).find("values=" + sample), std::string::npos);
  EXPECT_EQ(read_bytes(exported).find("values=normal"), std::string::npos);
}

}  // namespace
}  // namespace lacuna::tests

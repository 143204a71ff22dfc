// run on the CPU with what some specs ask their caller for: the tiles to visit, and the order of
// tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"
#include "tools/io/npy.hpp"

namespace lacuna::tests {
namespace {

using tools::Array;
using tools::ArrayType;

constexpr std::int64_t kExternalTokens = 300;  // 3 x 5 tiles of 128 x 64
constexpr std::int64_t kLastTokens = 64;

class RunExternal : public ::testing::Test {
 protected:
  RunExternal() {
    tools::Safetensors problem = small_problem(2, kExternalTokens, 64, ArrayType::kF32);
    // Of V the last tokens are 1 and all others 0: o says which of them were seen.
    Array& v = problem.tensors["v"];
    std::vector<float> values(kExternalTokens * 64, 0);
    std::fill(values.end() - kLastTokens * 64, values.end(), 1.0F);
    v = tools::from_f32(values, v.shape, ArrayType::kF32);
    input_ = scratch_.write("x.safetensors", tools::print_safetensors(problem));
    ordered_ = scratch_.write("ordered.json", R"({"version": 1, "name": "ordered",
        "permute": "external", "predictor": {"tile": {"q": 64, "k": 64}, "keep": "j == 0"},
        "tile": {"q": 64, "k": 64}})");
  }

  CommandResult run(const std::string& spec, std::vector<std::string> more) const {
    more.insert(more.begin(), {"run", spec, "--device", "cpu", "--input", input_, "--json"});
    return run_lacuna(more);
  }

  std::string write_npy(const std::string& name, const Array& array) const {
    return scratch_.write(name, tools::print_npy(array));
  }

  Array read_npy(const std::string& path) const {
    Diagnostics diagnostics;
    const auto array = tools::parse_npy(read_bytes(path), diagnostics);
    EXPECT_TRUE(array.has_value()) << path;
    return array.value_or(Array());
  }

  /// Status 1 with exactly this message.
  void expect_rejected(const std::string& spec, const std::vector<std::string>& more,
                       const std::string& message) const {
    const CommandResult result = run(spec, more);
    EXPECT_EQ(result.status, 1) << result.err;
    const auto diagnostics = parse_document(result)["diagnostics"];
    ASSERT_EQ(diagnostics.size(), 1u) << diagnostics;
    EXPECT_EQ(diagnostics[0]["message"], message);
  }

  const std::string lists_ = source_file("specs/external-mask.json");
  ScratchDirectory scratch_;
  std::string input_, ordered_;
};

TEST_F(RunExternal, TheTilesThatAreNamedAreVisited) {
  const std::string tiles("\1\0\1\0\0\0\0\0\0\1\1\1\1\1\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0", 30);
  const std::string out = scratch_.file("visited.npy");
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{1, 2, 3, 5}, std::vector<std::int64_t>{2, 3, 5}}) {
    const std::string mask = write_npy("mask.npy", {ArrayType::kU8, shape, tiles});
    const CommandResult result = run(lists_, {"--tile-mask", mask, "--mask-out", out});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(parse_document(result)["tiles"]["visited"], std::ranges::count(tiles, '\1'));
    EXPECT_EQ(read_npy(out).bytes, tiles);
  }
}

TEST_F(RunExternal, TokensAreTakenInTheOrderThatIsGiven) {
  std::vector<float> order(kExternalTokens);
  std::iota(order.begin(), order.end(), 0.0F);
  // The first tile is that of the first tokens, then that of the last.
  for (const auto& [type, seen] :
       {std::pair(ArrayType::kI32, 0.0), std::pair(ArrayType::kI64, 1.0)}) {
    const std::string file =
        write_npy("order.npy", tools::from_f32(order, {kExternalTokens}, type));
    const std::string out = scratch_.file("o.npy");
    const CommandResult result = run(ordered_, {"--order", file, "--out", out});
    ASSERT_EQ(result.status, 0) << result.err;
    for (const float o : tools::to_f32(read_npy(out))) ASSERT_NEAR(o, seen, 1e-5);
    std::ranges::reverse(order);
  }
}

TEST_F(RunExternal, ExactlyWhatTheSpecAsksForIsToBeGiven) {
  const std::string dense = source_file("specs/dense.json");
  expect_rejected(dense, {"--tile-mask", "x.npy"},
                  "--tile-mask is only for specs with \"mask\": \"external\"");
  expect_rejected(dense, {"--order", "x.npy"},
                  "--order is only for specs with \"permute\": \"external\"");
  expect_rejected(lists_, {}, "the spec says \"mask\": \"external\": pass --tile-mask FILE.npy");
  expect_rejected(ordered_, {}, "the spec says \"permute\": \"external\": pass --order FILE.npy");
}

TEST_F(RunExternal, FilesOfAnotherKindAreRefused) {
  const std::vector<float> zeros(15, 0);
  const std::string floats =
      write_npy("floats.npy", tools::from_f32(zeros, {3, 5}, ArrayType::kF32));
  const std::string flat = write_npy("flat.npy", {ArrayType::kU8, {15}, std::string(15, '\0')});
  const std::string integers =
      write_npy("integers.npy", tools::from_f32(zeros, {3, 5}, ArrayType::kI32));
  const std::string tiles =
      ": expected u8 [batch, heads, q_tiles, k_tiles], as --mask-out writes it, got ";
  expect_rejected(lists_, {"--tile-mask", floats}, floats + tiles + "f32 [3, 5]");
  expect_rejected(lists_, {"--tile-mask", flat}, flat + tiles + "u8 [15]");
  const std::string order = ": expected integers of shape [tokens], got ";
  expect_rejected(ordered_, {"--order", integers}, integers + order + "i32 [3, 5]");
  expect_rejected(ordered_, {"--order", flat}, flat + order + "u8 [15]");
  const std::string twice = write_npy("twice.npy", tools::from_f32(zeros, {15}, ArrayType::kI32));
  expect_rejected(ordered_, {"--order", twice},
                  twice + ": expected each of the tokens 0 to 14 once, got 0 again at [1]");
  const std::string nines =
      write_npy("nines.npy", {ArrayType::kU8, {3, 5}, std::string(15, '\x09')});
  expect_rejected(lists_, {"--tile-mask", nines},
                  nines + ": expected 0 (not visited), 1 or 2, got 9");
  expect_rejected(ordered_, {"--order", scratch_.file("none.npy")},
                  "cannot be read: No such file or directory");
}

}  // namespace
}  // namespace lacuna::tests

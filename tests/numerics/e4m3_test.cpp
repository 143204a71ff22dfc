// Keys and values of e4m3 in batches of one length: what the oracle says of the numbers that codes
// and scales stand for. Sequences and pages: sequences_test.cpp.
#include <gtest/gtest.h>

#include "tests/numerics/harness/codes/uniform_codes.hpp"
#include "tests/tier.hpp"

namespace lacuna::numerics {
namespace {

lacuna_compile_options options_of(const Case& c) {
  lacuna_compile_options options{};
  options.struct_size = sizeof options;
  options.head_dim = c.d;
  options.head_dim_v = c.d_v;
  options.dtype = c.dtype == DType::kBF16  ? LACUNA_BF16
                  : c.dtype == DType::kF16 ? LACUNA_F16
                                           : LACUNA_F32;
  options.kv = LACUNA_KV_E4M3;
  return options;
}

/// Null with the error in `error`.
lacuna_kernel* compile_e4m3(const Case& c, std::string& error) {
  const std::string spec = spec_text(c);
  const lacuna_compile_options options = options_of(c);
  lacuna_kernel* kernel = nullptr;
  if (lacuna_compile(engine().engine, spec.data(), spec.size(), &options, &kernel) == LACUNA_OK &&
      lacuna_prepare(kernel) == LACUNA_OK)
    return kernel;
  error = lacuna_last_error();
  lacuna_kernel_destroy(kernel);
  return nullptr;
}

/// "" or what is wrong.
std::string run_e4m3(const Case& c, Scales kind) {
  std::string error;
  lacuna_kernel* const kernel = compile_e4m3(c, error);
  if (kernel == nullptr) return error;
  TestKernel tested(engine(), c);  // for what it says of itself
  lacuna_kernel_tile(kernel, &tested.tile.q, &tested.tile.k);
  tested.kernel = kernel;
  tested.tile.gate_rows = oracle::kWarpRows, tested.tile.step_tiles = 1;
  Variant variant = make_variant(c, tested.tile, 4321);
  const UniformCodes codes(c, kind, variant.problem);
  Binding binding(engine().is_cuda, c, variant);
  codes.bind(binding, c);
  error = binding.provide(tested, c);
  if (error.empty() && lacuna_launch(kernel, &binding.args) != LACUNA_OK)
    error = lacuna_last_error();
  if (error.empty()) error = check_variant(c, variant, binding.collect(), engine().is_cuda);
  lacuna_kernel_destroy(kernel);
  return error;
}

TEST(E4m3, KeysAndValuesAreTheNumbersOfTheirCodes) {
  int turn = 0;
  const std::vector<std::string> all = {"dense", "softcap",      "window",
                                        "bsfa",  "skip-softmax", "lists"};
  for (const std::string& variant : test::by_tier(all, std::vector<std::string>{"dense", "bsfa"})) {
    for (const Scales kind :
         {Scales::kNone, Scales::kOfTensor, Scales::kOfHeads, Scales::kOfEntriesAndHeads}) {
      const DType dtype = turn % 3 == 0 ? DType::kF16 : DType::kBF16;
      const int d = test::by_tier(turn % 2 == 0 ? 64 : 128, 64);
      const Case c{variant, dtype, d, 2, 4, 2, 161, 275, Fill::kUneven, turn++ % 2 == 1};
      EXPECT_EQ(run_e4m3(c, kind), "") << c.text() << ", scales " << static_cast<int>(kind);
    }
  }
}

/// Rows of V that are shorter or longer than those of K.
TEST(E4m3, ValuesMayBeOfAnotherWidthThanKeys) {
  for (const auto& [d, d_v] : {std::pair(192, 128), {64, 128}, {128, 64}}) {
    for (const char* variant : {"dense", "window"}) {
      Case c{variant, DType::kBF16, d, 2, 4, 2, 161, 275, Fill::kUneven, d == 64};
      c.d_v = d_v;
      EXPECT_EQ(run_e4m3(c, Scales::kOfEntriesAndHeads), "") << c.text();
    }
  }
}

/// Means, bounds, integers and another order of tokens are made of codes; columns are gathered.
TEST(E4m3, PredictorsReadTheNumbersToo) {
  const std::vector<std::string> all = {"topk-blocks", "sparge",         "sparge-topk",
                                        "relmax",      "quest",          "twilight",
                                        "sale",        "fg-attn-pooled", "xattention"};
  for (const std::string& variant :
       test::by_tier(all, std::vector<std::string>{"topk-blocks", "quest"})) {
    const Case c{variant, DType::kBF16, 64, 2, 4, 2, 161, 275, Fill::kClustered, true};
    EXPECT_EQ(run_e4m3(c, Scales::kOfEntriesAndHeads), "") << c.text();
  }
}

}  // namespace
}  // namespace lacuna::numerics

// Scales of a launch: that of the softmax, and those of keys and values of e4m3.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/runtime/arguments.hpp"

namespace lacuna {
namespace {

TEST(LaunchScales, ASoftmaxScaleIsAPositiveNumberOfItsType) {
  Arguments a;
  BoundLaunch bound;
  ASSERT_EQ(a.check(contract(), &bound), "");
  EXPECT_EQ(bound.softmax_scale, 0.0F) << "that of the plan";
  a.softmax_scale = 0.07;
  ASSERT_EQ(a.check(contract(), &bound), "");
  EXPECT_EQ(bound.softmax_scale, 0.07F);
  const std::string expected =
      "kernel bsfa, argument softmax_scale: expected a positive f32, or 0 for the spec's, got ";
  for (const auto& [value, text] :
       {std::pair(-0.125, "-0.125"), {1e-60, "1e-60"}, {1e60, "1e+60"}, {INFINITY, "inf"}}) {
    a.softmax_scale = value;
    EXPECT_EQ(a.check(contract()), expected + text + "\n");
  }
  a.softmax_scale = NAN;
  EXPECT_EQ(a.check(contract()).rfind(expected, 0), 0U);
}

TEST(LaunchScales, KeysAndValuesOfE4m3HaveScalesOfEntriesAndHeads) {
  LaunchContract c = contract();
  Arguments a;
  a.k_scale = Tensor(a.at(0x60000), f32, {2, 2});
  const std::string refused = "kernel bsfa, argument k_scale: ";
  EXPECT_EQ(a.check(c), refused +
                            "expected null, got a tensor: it was compiled for k and v of q's "
                            "type\n");
  c.kv = KvFormat::kE4M3;
  EXPECT_EQ(a.check(c),
            "kernel bsfa, argument k: dtype expected e4m3, got bf16\n"
            "kernel bsfa, argument v: dtype expected e4m3, got bf16\n");
  a.k = Tensor(a.at(0x20000), e4m3, {2, 2, 200, 64});
  a.v = Tensor(a.at(0x30000), e4m3, {2, 2, 200, 64});
  const auto strides = [&](std::initializer_list<std::int64_t> shape) {
    a.k_scale = Tensor(a.at(0x60000), f32, shape);
    BoundLaunch bound;
    EXPECT_EQ(a.check(c, &bound), "");
    const BoundTensor& scale = bound[TensorRole::kKScale];
    return std::pair(scale.stride[0], scale.stride[1]);
  };
  EXPECT_EQ(strides({2, 2}), std::pair(std::int64_t{2}, std::int64_t{1}));
  EXPECT_EQ(strides({1, 2}), std::pair(std::int64_t{0}, std::int64_t{1}));
  EXPECT_EQ(strides({2, 1}), std::pair(std::int64_t{1}, std::int64_t{0}));
  EXPECT_EQ(strides({1, 1}), std::pair(std::int64_t{0}, std::int64_t{0}));
  a.k_scale = Tensor(a.at(0x60000), f32, {3, 2});
  EXPECT_EQ(a.check(c), refused + "entries expected 1 or 2, got 3\n");
  a.k_scale = Tensor();
  EXPECT_EQ(a.check(c), "") << "all are 1";
  c.device = {kDLCUDA, 0};
  Arguments on_gpu({kDLCUDA, 0});
  on_gpu.k = on_gpu.v = Tensor(a.at(0x20000), e4m3, {2, 2, 200, 64}, c.device, {40000, 72, 144, 1});
  EXPECT_NE(on_gpu.check(c).find("argument k: stride of heads_kv expected a multiple of 16 "
                                 "elements, got 72"),
            std::string::npos);
}

}  // namespace
}  // namespace lacuna

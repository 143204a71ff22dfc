// Bytes of the argument block: from tensors, values, constants and the workspace.
#include "runtime/launch/argument_block.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace lacuna {
namespace {

enum Value { kTokens, kFirst, kSecond, kSize, kNothing };

class ArgumentBlock : public testing::Test {
 protected:
  void SetUp() override {
    program.slots = {
        {"first", kFirst, kSize}, {"second", kSecond, kSize}, {"empty", kSecond, kNothing}};
    program.args_bytes = 64;
    program.fields = {
        {"data", 0, FieldKind::kPointer, FieldSource::kTensorData,
         static_cast<int>(TensorRole::kOrder), 0},
        {"first", 8, FieldKind::kPointer, FieldSource::kWorkspace, 0, 0},
        {"second", 16, FieldKind::kPointer, FieldSource::kWorkspace, 1, 0},
        {"empty", 24, FieldKind::kPointer, FieldSource::kWorkspace, 2, 0},
        {"stride", 32, FieldKind::kI64, FieldSource::kScaledValue, kTokens, 128},
        {"width", 40, FieldKind::kI64, FieldSource::kConstant, 0, 96},
        {"tokens", 48, FieldKind::kI32, FieldSource::kValue, kTokens, 0},
        {"scale", 52, FieldKind::kF32, FieldSource::kSoftmaxScale, 0, 0.125},
    };
    bound.tensors[static_cast<std::size_t>(TensorRole::kOrder)].data = at(0x7000);
    std::memset(block, 0xff, sizeof(block));
  }

  static void* at(std::size_t address) { return reinterpret_cast<void*>(address); }

  template <class T>
  T read(std::size_t offset) const {
    T value;
    std::memcpy(&value, block + offset, sizeof(value));
    return value;
  }

  LaunchProgram program;
  BoundLaunch bound;
  std::int32_t values[5] = {1 << 30, 3, 1 << 26, 7, 0};
  std::byte block[64];
};

TEST_F(ArgumentBlock, EverySourceIsRead) {
  fill_argument_block(program, bound, {at(0x100000), nullptr}, values, block);
  EXPECT_EQ(read<void*>(0), at(0x7000));
  EXPECT_EQ(read<void*>(8), at(0x100000 + 3 * 256));
  EXPECT_EQ(read<std::int64_t>(32), std::int64_t{1} << 37) << "strides are 64 bits wide";
  EXPECT_EQ(read<std::int64_t>(40), 96);
  EXPECT_EQ(read<std::int32_t>(48), 1 << 30);
  EXPECT_EQ(read<float>(52), 0.125F);
  EXPECT_EQ(read<std::int64_t>(56), 0) << "bytes without a field";
  bound.softmax_scale = 0.75F;
  fill_argument_block(program, bound, {at(0x100000), nullptr}, values, block);
  EXPECT_EQ(read<float>(52), 0.75F) << "that of the launch";
}

TEST_F(ArgumentBlock, SlotsMayLieFarIntoTheWorkspace) {
  fill_argument_block(program, bound, {at(0x100000), nullptr}, values, block);
  EXPECT_EQ(read<std::size_t>(16), 0x100000 + (std::size_t{1} << 34));
}

TEST_F(ArgumentBlock, AnEmptySlotIsNull) {
  fill_argument_block(program, bound, {at(0x100000), nullptr}, values, block);
  EXPECT_EQ(read<void*>(24), nullptr);
}

TEST_F(ArgumentBlock, ASelectionTakesThePlaceOfTheKeptBits) {
  program.kept_slot = 1;
  fill_argument_block(program, bound, {at(0x100000), at(0x900)}, values, block);
  EXPECT_EQ(read<void*>(16), at(0x900));
  EXPECT_EQ(read<void*>(8), at(0x100000 + 3 * 256));
  fill_argument_block(program, bound, {at(0x100000), nullptr}, values, block);
  EXPECT_EQ(read<std::size_t>(16), 0x100000 + (std::size_t{1} << 34)) << "none given";
}

}  // namespace
}  // namespace lacuna

// The machine code of shipped specs, and of some of tests/device/specs, on sm_90a keeps the order
// that their protocol relies on.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <span>
#include <vector>

#include "compiler/ir/names.hpp"
#include "runtime/engine/build/build.hpp"
#include "tests/compile/nvrtc.hpp"
#include "tests/sass/nvdisasm.hpp"
#include "tests/sass/wgmma_instructions.hpp"
#include "tests/sass/wgmma_order.hpp"
#include "tests/tier.hpp"

namespace lacuna::sass {
namespace {

struct Case {
  const char* spec;
  int head_dim;
  DType dtype = DType::kBF16;
  BatchLayout batch = BatchLayout::kUniform;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.spec << " d" << c.head_dim; }

constexpr Case kCases[] = {
    {"dense", 64},
    {"dense", 128},
    {"dense", 256},
    {"dense", 128, DType::kF16},
    {"window", 64},
    {"window", 128},
    {"window", 256},
    {"flash-decoding", 64},
    {"flash-decoding", 128},
    {"flash-decoding", 256},
    {"external-mask", 64},
    {"external-mask", 128},
    {"external-mask", 256},
    {"bsfa", 64},
    {"bsfa", 128},
    {"bsfa", 256},
    {"skip-softmax", 64},
    {"skip-softmax", 128},
    {"skip-softmax", 128, DType::kF16},
    {"fg-attn-cached", 128},
    {"topk-blocks", 64},
    {"topk-blocks", 128},
    {"minference-block", 128},
    {"dense", 128, DType::kBF16, BatchLayout::kSequences},
    {"window", 64, DType::kBF16, BatchLayout::kSequences},
    {"dense", 64, DType::kBF16, BatchLayout::kPages},
    {"window", 128, DType::kBF16, BatchLayout::kPages},
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.spec) + "_d" + std::to_string(info.param.head_dim) +
                     "_" + std::string(name_of(info.param.dtype)) + "_" +
                     std::string(name_of(info.param.batch));
  std::ranges::replace(name, '-', '_');
  return name;
}

class Shipped : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::string reason;
    const auto nvrtc = find_nvrtc(reason);
    if (!nvrtc) GTEST_SKIP() << reason;
    const std::string nvdisasm = find_nvdisasm(reason);
    if (nvdisasm.empty()) GTEST_SKIP() << reason;

    const auto& [spec, head_dim, dtype, batch] = GetParam();
    std::filesystem::path path = LACUNA_SOURCE_DIR "/specs/" + std::string(spec) + ".json";
    if (!exists(path))
      path = LACUNA_SOURCE_DIR "/tests/device/specs/" + std::string(spec) + ".json";
    std::ifstream file(path);
    Diagnostics diagnostics;
    const SpecDocument document =
        read_spec({path, {std::istreambuf_iterator<char>(file), {}}}, diagnostics);
    plan_ = make_plan(document, {.head_dim = head_dim, .dtype = dtype, .batch = batch},
                      find_target("sm_90a").value(), diagnostics);
    ASSERT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
    ASSERT_EQ(plan_.attend.family.value, AttendFamily::kWgmma) << plan_.attend.family.reason;
    CudaSource source = emit_cuda(plan_, document);
    std::erase_if(source.kernels, [](const CudaKernel& kernel) { return kernel.name != "attend"; });
    const auto store = stored_kernels(*nvrtc);
    const Compilation made = compile_stored(store.get(), *nvrtc, source, "sm_90a", diagnostics);
    ASSERT_EQ(made.cubins.size(), 1u) << render(diagnostics, document.source) << made.log;
    const std::vector<Kernel> kernels = parse_listing(disassemble(nvdisasm, made.cubins[0]));
    ASSERT_EQ(kernels.size(), 1u);
    code_ = kernels[0].code;
  }

  Plan plan_;
  Code code_;  ///< of attend
};

TEST_P(Shipped, KeepsTheOrderOfTheProtocol) {
  for (const std::string& violation : violations(code_, step_facts(plan_)))
    ADD_FAILURE() << violation;
}

/// Of specs with int8 scores, whose step is of other instructions.
constexpr Case kByteCases[] = {
    {"sparge", 64}, {"sparge", 128}, {"sparge-video", 128}, {"sparge-topk", 128}, {"sale", 128},
};

class ShippedBytes : public Shipped {};

TEST_P(ShippedBytes, KeepsWarpsTogether) {
  const auto multiplies_keys = [](const Instruction& i) { return i.is("IGMMA"); };
  const auto multiplies_values = [](const Instruction& i) {
    return i.is("QGMMA") || is_value_product(i);
  };
  const Loop loop = find_loop(code_, {multiplies_keys, multiplies_values});
  ASSERT_TRUE(loop.exists());
  for (const std::string& gathering : gatherings(code_, loop)) ADD_FAILURE() << gathering;
  EXPECT_TRUE(std::ranges::none_of(code_, uses_local_memory));
}

class ShippedDistances : public Shipped {};

/// A bias of the distance is worked out for a warp's distances, not for each score of a lane. The
/// loop has the formula for steps without a mask and with one, and for single scores that are
/// computed again: together fewer times than a lane has scores.
TEST_P(ShippedDistances, WorksOutEachOnce) {
  const Loop loop = find_loop(code_, {is_key_product, is_value_product, is_exponential});
  ASSERT_TRUE(loop.exists());
  const auto begin = code_.begin() + static_cast<std::ptrdiff_t>(loop.first);
  const auto end = code_.begin() + static_cast<std::ptrdiff_t>(loop.last);
  const auto count = [&](const char* opcode) {
    return std::count_if(begin, end, [&](const Instruction& i) { return i.is(opcode); });
  };
  const int keys = plan_.attend.step_keys.value, scores = step_facts(plan_).scores;
  EXPECT_LT(count("LD") + count("LDG"), scores);
  EXPECT_LT(count("FLO"), scores);  // the bucket's logarithm
  EXPECT_GE(count("SHFL"), 2 * (keys / 8 + 1) * 2);
  for (const std::string& gathering : gatherings(code_, loop)) ADD_FAILURE() << gathering;
  EXPECT_TRUE(std::ranges::none_of(code_, uses_local_memory));
}

/// The wait for products.
bool is_completion(const Instruction& i) {
  return i.is("WARPGROUP") && i.opcode.find("DEPBAR") != std::string::npos;
}

class MasksOfDistances : public Shipped {};

/// Votes make words of what a mask says of distances: in each step before its products are
/// complete, and once more for steps that ranges of keys cut, too. No score asks the mask.
TEST_P(MasksOfDistances, AskEachOnce) {
  const Loop loop = find_loop(code_, {is_key_product, is_value_product, is_exponential});
  ASSERT_TRUE(loop.exists());
  const auto begin = code_.begin() + static_cast<std::ptrdiff_t>(loop.first);
  const auto end = code_.begin() + static_cast<std::ptrdiff_t>(loop.last);
  const auto is_vote = [](const Instruction& i) { return i.is("VOTE"); };
  const int votes = plan_.attend.step_keys.value / 32 + 1;
  EXPECT_GE(std::count_if(begin, end, is_vote), 2 * votes);
  const auto complete = std::find_if(begin, end, is_completion);
  EXPECT_GE(std::count_if(begin, complete, is_vote), votes);
  for (const std::string& gathering : gatherings(code_, loop)) ADD_FAILURE() << gathering;
  EXPECT_TRUE(std::ranges::none_of(code_, uses_local_memory));
}

class TablesAlongLines : public Shipped {};

/// Two elements of a row at once, by addresses that are those of the row, before the products of
/// the step are complete.
TEST_P(TablesAlongLines, AreReadInPairsAndEarly) {
  const Loop loop = find_loop(code_, {is_key_product, is_value_product, is_exponential});
  ASSERT_TRUE(loop.exists());
  const auto begin = code_.begin() + static_cast<std::ptrdiff_t>(loop.first);
  const auto end = code_.begin() + static_cast<std::ptrdiff_t>(loop.last);
  const auto complete = std::find_if(begin, end, is_completion);
  const auto is_pair = [](const Instruction& i) {
    return i.is("LDG") && i.opcode.find(".64") != std::string::npos;
  };
  EXPECT_GE(std::count_if(begin, complete, is_pair), plan_.attend.step_keys.value / 8 * 2);
  for (const std::string& gathering : gatherings(code_, loop)) ADD_FAILURE() << gathering;
  EXPECT_TRUE(std::ranges::none_of(code_, uses_local_memory));
}

constexpr Case kTableCases[] = {{"pair-bias", 128}, {"pair-bias", 64}};

constexpr Case kMaskCases[] = {
    {"dilated", 64}, {"dilated", 128}, {"dilated", 256}, {"kept-distances", 128, DType::kF16}};

constexpr Case kDistanceCases[] = {
    {"t5-bias", 64}, {"t5-bias", 128}, {"t5-bias", 256}, {"t5-bias", 128, DType::kF16}};

/// In the short tier every spec, every head dim, every type and every layout of a batch.
std::vector<Case> in_tier(std::span<const Case> cases) {
  return test::in_tier(
      std::vector(cases.begin(), cases.end()),
      [](const Case& c) {
        return test::Properties{c.spec, std::to_string(c.head_dim), std::string(name_of(c.dtype)),
                                std::string(name_of(c.batch))};
      },
      1);
}

INSTANTIATE_TEST_SUITE_P(Specs, Shipped, testing::ValuesIn(in_tier(kCases)), name_of_case);
INSTANTIATE_TEST_SUITE_P(Specs, ShippedDistances, testing::ValuesIn(in_tier(kDistanceCases)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Specs, TablesAlongLines, testing::ValuesIn(in_tier(kTableCases)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Specs, MasksOfDistances, testing::ValuesIn(in_tier(kMaskCases)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Specs, ShippedBytes, testing::ValuesIn(in_tier(kByteCases)), name_of_case);

}  // namespace
}  // namespace lacuna::sass

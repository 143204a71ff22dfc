// The machine code of shipped specs on sm_90a keeps the order that their protocol relies on.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

#include "runtime/build.hpp"
#include "tests/compile/nvrtc.hpp"
#include "tests/sass/nvdisasm.hpp"
#include "tests/sass/wgmma_order.hpp"

namespace lacuna::sass {
namespace {

struct Case {
  const char* spec;
  int head_dim;
  DType dtype = DType::kBF16;
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
    {"external-mask", 64},
    {"external-mask", 128},
    {"external-mask", 256},
    {"bsfa", 64},
    {"bsfa", 128},
    {"bsfa", 256},
    {"skip-softmax", 128},
    {"fg-attn-cached", 128},
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.spec) + "_d" + std::to_string(info.param.head_dim) +
                     "_" + std::string(name_of(info.param.dtype));
  std::ranges::replace(name, '-', '_');
  return name;
}

class Shipped : public testing::TestWithParam<Case> {};

TEST_P(Shipped, KeepsTheOrderOfTheProtocol) {
  std::string reason;
  const auto nvrtc = find_nvrtc(reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  const std::string nvdisasm = find_nvdisasm(reason);
  if (nvdisasm.empty()) GTEST_SKIP() << reason;

  const auto& [spec, head_dim, dtype] = GetParam();
  const std::filesystem::path path = LACUNA_SOURCE_DIR "/specs/" + std::string(spec) + ".json";
  std::ifstream file(path);
  Diagnostics diagnostics;
  const SpecDocument document =
      read_spec({path, {std::istreambuf_iterator<char>(file), {}}}, diagnostics);
  const Plan plan = make_plan(document, {.head_dim = head_dim, .dtype = dtype},
                              find_target("sm_90a").value(), diagnostics);
  ASSERT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  ASSERT_EQ(plan.attend.family.value, AttendFamily::kWgmma) << plan.attend.family.reason;
  const Compilation made =
      compile_cuda(*nvrtc, emit_cuda(plan, document), "sm_90a", "", false, diagnostics);
  ASSERT_FALSE(made.cubin.empty()) << render(diagnostics, document.source) << made.log;

  const std::vector<Kernel> kernels = parse_listing(disassemble(nvdisasm, made.cubin));
  const auto attend = std::ranges::find_if(
      kernels, [](const Kernel& kernel) { return kernel.name.starts_with("lacuna_attend_"); });
  ASSERT_NE(attend, kernels.end());
  for (const std::string& violation : violations(attend->code, step_facts(plan)))
    ADD_FAILURE() << violation;
}

INSTANTIATE_TEST_SUITE_P(Specs, Shipped, testing::ValuesIn(kCases), name_of_case);

}  // namespace
}  // namespace lacuna::sass

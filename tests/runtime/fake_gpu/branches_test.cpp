// Launches of several attends: their kernels and stages, where each one's rows begin, and what each
// of them reports.
#include <cstring>

#include "compiler/emit/emit.hpp"
#include "tests/runtime/fake_gpu/count_allocations.hpp"
#include "tests/runtime/fake_gpu/protocol.hpp"

namespace lacuna {
namespace {

constexpr const char* kHalves = R"({
  "version": 1, "name": "halves",
  "branches": [
    { "name": "upper", "dims": "64:128", "weight": "1", "tile": { "q": 128, "k": 64 } },
    { "name": "lower", "dims": "0:64", "weight": "-0.5", "tile": { "q": 64, "k": 64 } }
  ]
})";

class BranchesOnGpu : public Protocol {
 protected:
  /// A pointer of the argument block of the first branch, which the fake keeps.
  static std::size_t pointer(const std::string& member) {
    Diagnostics errors;
    const auto documents = branch_documents(read_spec({"halves.json", kHalves}, errors));
    const LaunchProgram program =
        emit_launch_program(make_plan(documents[0], {}, *find_target("sm_90a"), errors));
    std::size_t address = 0;
    const auto field = std::ranges::find(program.fields, member, &ArgField::name);
    EXPECT_NE(field, program.fields.end()) << member;
    std::memcpy(&address, fake().arguments + field->offset, sizeof(address));
    return address;
  }
  static LaunchArgs halves(const Kernel& kernel) {
    LaunchArgs args = Protocol::arguments(kernel);
    args.counts = {};
    return args;
  }
};

TEST_F(BranchesOnGpu, StagesAreNamedByTheirBranch) {
  const Kernel kernel = prepared(engine(), kHalves, "halves.json");
  const std::string stages =
      R"("stages":["upper.attend","upper.merge_branch","lower.attend","lower.merge_branch"])";
  EXPECT_NE(kernel.info_json().find(stages), std::string::npos) << kernel.info_json();
  EXPECT_NE(kernel.info_json().find(R"("branch":"upper","dims":"64:128")"), std::string::npos)
      << kernel.info_json();
  EXPECT_NE(kernel.signature_json().find(R"("head_dim":128)"), std::string::npos);
  kernel.launch(halves(kernel));
  EXPECT_EQ(fake().launch_count, 4);
}

TEST_F(BranchesOnGpu, RowsBeginWhereTheBandDoes) {
  const Kernel kernel = prepared(engine(), kHalves, "halves.json");
  kernel.launch(halves(kernel));
  constexpr std::size_t kBandBytes = 64 * 2;
  EXPECT_EQ(pointer("q.data"), 0x10000 + kBandBytes);
  EXPECT_EQ(pointer("k.data"), 0x20000 + kBandBytes);
  EXPECT_EQ(pointer("v.data"), 0x30000U);
}

TEST_F(BranchesOnGpu, ReportsAreThoseOfTheBranchAndTakeNoMemory) {
  const Kernel kernel = prepared(engine(), kHalves, "halves.json");
  LaunchArgs args = halves(kernel);
  args.branches = {
      {"upper", Tensor(reinterpret_cast<void*>(std::size_t{0x90000}), i32, {2, 8, 3, 3}, cuda(0))}};
  kernel.launch(args);
  EXPECT_EQ(pointer("counts"), 0x90000U);
  detail::with_raw_args(args, [&](const lacuna_launch_args& raw) {
    ASSERT_EQ(lacuna_launch(kernel.handle(), &raw), LACUNA_OK) << lacuna_last_error();
    const long before = allocations_of_this_thread();
    ASSERT_EQ(lacuna_launch(kernel.handle(), &raw), LACUNA_OK);
    EXPECT_EQ(allocations_of_this_thread() - before, 0);
  });
  args.branches[0].counts =
      Tensor(reinterpret_cast<void*>(std::size_t{0x90000}), i32, {2, 8, 5, 3}, cuda(0));
  Status status;
  kernel.launch(args, status);
  EXPECT_NE(status.text.find("kernel halves-upper, argument counts: q_tiles expected 3, got 5"),
            std::string::npos)
      << status.text;
}

}  // namespace
}  // namespace lacuna

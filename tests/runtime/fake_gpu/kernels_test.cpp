// Launches of several kernels: their order, the workspace, and decisions that serve again.
#include <algorithm>
#include <cstring>

#include "compiler/emit/emit.hpp"
#include "tests/runtime/fake_gpu/count_allocations.hpp"
#include "tests/runtime/fake_gpu/pooled.hpp"

namespace lacuna {
namespace {

class Kernels : public Pooled {
 protected:
  static std::vector<std::string> launched() {
    std::vector<std::string> names;
    for (int n = 0; n < fake().launch_count; ++n) {
      for (int k = 0; k < fake().kernel_count; ++k) {
        if (reinterpret_cast<CUkernel>(fake().launches[n]) == fake_kernel(k)) {
          names.emplace_back(fake().kernels[k]);
        }
      }
    }
    return names;
  }

  /// How many of the launches overlap with the one before, which the first must not.
  static int overlapping() {
    EXPECT_FALSE(fake().overlapping[0]) << "what is before it is not ours";
    return static_cast<int>(
        std::count(fake().overlapping, fake().overlapping + fake().launch_count, true));
  }

  /// A pointer of the argument block.
  static std::size_t pointer(const std::string& member) {
    Diagnostics errors;
    const SpecDocument document = read_spec({"pooled.json", kPooled}, errors);
    const LaunchProgram program =
        emit_launch_program(make_plan(document, {}, *find_target("sm_90a"), errors));
    std::size_t address = 0;
    const auto field = std::ranges::find(program.fields, member, &ArgField::name);
    EXPECT_NE(field, program.fields.end()) << member;
    std::memcpy(&address, fake().arguments + field->offset, sizeof(address));
    return address;
  }
};

const std::vector<std::string> kAll = {"lacuna_prepare_q_pooled",  "lacuna_prepare_k_pooled",
                                       "lacuna_estimate_pooled",   "lacuna_compact_pooled",
                                       "lacuna_order_rows_pooled", "lacuna_attend_pooled"};
const std::vector<std::string> kDecided = {"lacuna_compact_pooled", "lacuna_order_rows_pooled",
                                           "lacuna_attend_pooled"};

TEST_F(Kernels, PrepareFindsEveryKernelAndAllowsItItsMemory) {
  Kernel kernel = engine().compile(Spec::parse(kPooled, "pooled.json"), {128, bf16});
  forget();
  kernel.prepare();
  EXPECT_EQ(count("cuLibraryLoadData"), 6);
  EXPECT_EQ(count("cuLibraryGetKernel"), 6);
  EXPECT_EQ(count("cuFuncLoad"), 6);
  EXPECT_EQ(count("cuKernelSetAttribute"), 6);
}

TEST_F(Kernels, WhatWasLoadedIsUnloadedWhenALaterKernelIsRefused) {
  const TemporaryDirectory fresh;
  Kernel kernel =
      engine_with_store(fresh).compile(Spec::parse(kPooled, "pooled.json"), {128, bf16});
  fake().loads_to_accept = 2;
  fake().loads_to_refuse = 1;
  EXPECT_THROW(kernel.prepare(), Error);
  EXPECT_EQ(count("cuLibraryLoadData"), 3);
  EXPECT_EQ(count("cuLibraryUnload"), 2);
}

TEST_F(Kernels, ALaunchRunsThemInOrder) {
  const Kernel kernel = prepared(engine());
  kernel.launch(arguments(kernel));
  EXPECT_EQ(launched(), kAll);
  EXPECT_EQ(count("cuCtxPushCurrent"), 1);
  EXPECT_EQ(fake().grids[0], 16U * 512 / 128);  // prepare_q: padded tokens
  EXPECT_EQ(fake().grids[5], 16U * 3);
}

TEST_F(Kernels, KernelsOfALaunchOverlap) {
  const Kernel kernel = prepared(engine());
  LaunchArgs args = arguments(kernel);
  Selection selection(reinterpret_cast<void*>(std::size_t{0x90000}),
                      kernel.selection_bytes(kShape));
  args.selection = &selection;
  kernel.launch(args);
  EXPECT_EQ(overlapping(), 5);
  forget();
  kernel.launch(args);  // begins with one that overlaps in other launches
  EXPECT_EQ(launched(), kDecided);
  EXPECT_EQ(overlapping(), 2);
}

TEST_F(Kernels, KernelsDoNotOverlapWhereEventsLieBetweenThem) {
  const Kernel kernel = prepared(engine());
  LaunchArgs args = arguments(kernel);
  args.stage_events.assign(7, reinterpret_cast<void*>(std::size_t{0x7001}));
  kernel.launch(args);
  EXPECT_EQ(overlapping(), 0);
}

TEST_F(Kernels, PointersLieInTheWorkspace) {
  const Kernel kernel = prepared(engine());
  const LaunchArgs args = arguments(kernel);
  kernel.launch(args);
  const auto begin = reinterpret_cast<std::size_t>(args.workspace);
  for (const char* member : {"q_summary", "k_summary", "scores", "kept", "list_indices"}) {
    EXPECT_GE(pointer(member), begin) << member;
    EXPECT_LT(pointer(member), begin + args.workspace_bytes) << member;
    EXPECT_EQ(pointer(member) % 256, 0U) << member;
  }
  EXPECT_EQ(pointer("q_summary"), begin);
}

TEST_F(Kernels, ASelectionCarriesTheDecisionFromLaunchToLaunch) {
  const Kernel kernel = prepared(engine());
  LaunchArgs args = arguments(kernel);
  void* const bits = reinterpret_cast<void*>(std::size_t{0x90000});
  Selection selection(bits, kernel.selection_bytes(kShape));
  args.selection = &selection;
  const std::vector<std::string>* expected[] = {&kAll, &kDecided, &kDecided, &kAll, &kDecided};
  const int calls_after[] = {1, 2, 0, 1, 2};
  for (int i = 0; i < 5; ++i) {
    forget();
    kernel.launch(args);
    EXPECT_EQ(launched(), *expected[i]) << "launch " << i;
    EXPECT_EQ(selection.calls, calls_after[i]) << "launch " << i;
    EXPECT_EQ(pointer("kept"), 0x90000U);
  }
  selection.forget();
  forget();
  kernel.launch(args);
  EXPECT_EQ(launched(), kAll);
}

TEST_F(Kernels, WithoutASelectionEveryLaunchDecides) {
  const Kernel kernel = prepared(engine());
  const LaunchArgs args = arguments(kernel);
  kernel.launch(args);
  forget();
  kernel.launch(args);
  EXPECT_EQ(launched(), kAll);
}

TEST_F(Kernels, AGraphTakesNoSelectionWhoseCountItWouldFreeze) {
  const Kernel kernel = prepared(engine());
  LaunchArgs args = arguments(kernel);
  Selection selection(reinterpret_cast<void*>(std::size_t{0x90000}),
                      kernel.selection_bytes(kShape));
  args.selection = &selection;
  fake().is_capturing = 1;
  const std::string error = error_of(kernel, args);
  EXPECT_NE(error.find("selection: expected null on a stream that is being captured"),
            std::string::npos)
      << error;
  EXPECT_EQ(selection.calls, 0);
  args.selection = nullptr;
  EXPECT_EQ(error_of(kernel, args), "");
  fake().is_capturing = 0;
}

TEST_F(Kernels, AFailedLaunchDoesNotCount) {
  const Kernel kernel = prepared(engine());
  LaunchArgs args = arguments(kernel);
  Selection selection(reinterpret_cast<void*>(std::size_t{0x90000}),
                      kernel.selection_bytes(kShape));
  args.selection = &selection;
  fake().launch_result = 719;
  EXPECT_NE(error_of(kernel, args), "");
  EXPECT_EQ(launched().size(), 1U) << "the kernels behind a failed one are not launched";
  EXPECT_EQ(selection.calls, 0);
}

TEST_F(Kernels, ASelectionThatDoesNotFitIsRefused) {
  const Kernel kernel = prepared(engine());
  LaunchArgs args = arguments(kernel);
  Selection selection(reinterpret_cast<void*>(std::size_t{0x90010}), 8);
  args.selection = &selection;
  const std::string prefix = "pooled.json: error: kernel pooled, selection";
  EXPECT_EQ(error_of(kernel, args),
            prefix + ".data: expected 4096 bytes, got 8 [E0504]\n" + prefix +
                ".data: expected an address aligned to 256 bytes, got one 16 bytes past that "
                "[E0504]\n");
  selection.data = nullptr;
  EXPECT_EQ(error_of(kernel, args), prefix + ".data: expected 4096 bytes, got null [E0504]\n");
  selection.calls = -1;
  EXPECT_EQ(error_of(kernel, args), prefix + ".calls: expected 0 or more, got -1 [E0503]\n");
  selection.struct_size = 8;
  EXPECT_EQ(error_of(kernel, args), prefix + ".struct_size: expected 32, got 8 [E0503]\n");
  EXPECT_EQ(count("cuLaunchKernelEx"), 0);
}

TEST_F(Kernels, AMissingWorkspaceAndABadSelectionAreReportedTogether) {
  const Kernel kernel = prepared(engine());
  LaunchArgs args = arguments(kernel);
  const std::string needed = std::to_string(args.workspace_bytes);
  args.workspace = nullptr;
  Selection selection(nullptr, 0);
  args.selection = &selection;
  EXPECT_EQ(error_of(kernel, args),
            "pooled.json: error: kernel pooled, workspace: expected " + needed +
                " bytes, got null [E0504]\n"
                "pooled.json: error: kernel pooled, selection.data: expected 4096 bytes, got null "
                "[E0504]\n");
}

TEST_F(Kernels, ASpecThatKeepsNothingTakesNoSelection) {
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  EXPECT_EQ(kernel.selection_bytes(kShape), 0U);
  LaunchArgs args = Protocol::arguments();
  Selection selection(reinterpret_cast<void*>(std::size_t{0x90000}), 4096);
  args.selection = &selection;
  EXPECT_EQ(error_of(kernel, args),
            kBsfa +
                ": error: kernel bsfa, selection: expected null, got one: the spec has no "
                "\"predictor\" [E0503]\n");
}

TEST_F(Kernels, WithoutKeysKernelsWithoutBlocksAreLeftOut) {
  const Kernel kernel = prepared(engine());
  LaunchArgs args = arguments(kernel);
  args.k = Tensor(reinterpret_cast<void*>(std::size_t{0x20000}), bf16, {2, 2, 0, 128}, cuda(0));
  args.v = args.k;
  kernel.launch(args);
  EXPECT_EQ(launched(),
            (std::vector<std::string>{"lacuna_prepare_q_pooled", "lacuna_estimate_pooled",
                                      "lacuna_compact_pooled", "lacuna_order_rows_pooled",
                                      "lacuna_attend_pooled"}));
  EXPECT_EQ(pointer("k_summary"), 0U) << "an empty slot";
}

TEST_F(Kernels, InfoListsEveryKernelAndAttendsOwnResources) {
  const std::string info = prepared(engine()).info_json();
  EXPECT_NE(info.find("\"entry\":\"lacuna_attend_pooled\",\"registers\""), std::string::npos);
  std::size_t at = info.find("\"kernels\":[");
  ASSERT_NE(at, std::string::npos) << info;
  for (const std::string& entry : kAll) {
    at = info.find("{\"entry\":\"" + entry + "\"", at);
    ASSERT_NE(at, std::string::npos) << entry << " in " << info;
  }
}

TEST_F(Kernels, ALaunchOfManyKernelsAllocatesNothing) {
  prepared(engine());
  const Kernel kernel = prepared(engine());
  LaunchArgs args = arguments(kernel);
  Selection selection(reinterpret_cast<void*>(std::size_t{0x90000}),
                      kernel.selection_bytes(kShape));
  args.selection = &selection;
  detail::with_raw_args(args, [&](const lacuna_launch_args& raw) {
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 100; ++i) ASSERT_EQ(lacuna_launch(kernel.handle(), &raw), LACUNA_OK);
    EXPECT_EQ(allocations_of_this_thread() - before, 0);
  });
}

}  // namespace
}  // namespace lacuna
